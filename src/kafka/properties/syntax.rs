//! The syntax of Java's properties files: `name=value`, `name: value` or `name value`, comments with `#` or `!`, a line that
//! ends in a backslash goes on, `\t`, `\n`, `\u0041` and so on.

use std::collections::BTreeMap;
use std::iter::Peekable;
use std::str::Chars;

use crate::offset::Invalid;

/// Lines of a file; one of a client has a few dozen.
const MAX_LINES: usize = 10_000;

/// Bytes of a name; the longest that a client has is half of it.
const MAX_NAME: usize = 100;

/// Names and values; of two with one name the later one.
pub(super) fn parse(text: &str) -> Result<BTreeMap<String, String>, Invalid> {
    let mut found = BTreeMap::new();
    let text = text.trim_start_matches('\u{feff}');
    let mut lines = text.lines().enumerate();
    while let Some((index, line)) = lines.next() {
        if index >= MAX_LINES {
            return Err(Invalid::new("line", index + 1, format!("a properties file has at most {MAX_LINES} lines")));
        }
        let line = line.trim_start_matches(BLANK);
        if line.is_empty() || line.starts_with(['#', '!']) {
            continue;
        }
        let mut whole = line.to_owned();
        while goes_on(&whole) {
            whole.pop();
            let Some((_, more)) = lines.next() else { break };
            whole.push_str(more.trim_start_matches(BLANK));
        }
        let (name, value) = split(&whole);
        let wrong = |why| Invalid::new("line", index + 1, why);
        let name = unescaped(name).map_err(wrong)?;
        if name.is_empty() {
            return Err(wrong("no name in front of the value"));
        }
        // It is never shown: a line of a key that was pasted in looks like a name too.
        if name.len() > MAX_NAME || !name.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'_' | b'-')) {
            return Err(wrong(
                "not a property's name, which has small letters, digits and dots; a value over several lines, such as a \
                 key, wants a backslash at the end of each but the last",
            ));
        }
        found.insert(name, unescaped(value).map_err(wrong)?);
    }
    Ok(found)
}

const BLANK: [char; 3] = [' ', '\t', '\u{c}'];

/// Whether a line ends in a backslash that is not itself escaped.
fn goes_on(line: &str) -> bool {
    line.bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 1
}

/// A name, up to a separator that is not escaped, and the value behind it.
fn split(line: &str) -> (&str, &str) {
    let mut escaped = false;
    let end = line.find(|c: char| {
        let ends = !escaped && (matches!(c, '=' | ':') || BLANK.contains(&c));
        escaped = !escaped && c == '\\';
        ends
    });
    let (name, rest) = line.split_at(end.unwrap_or(line.len()));
    let rest = rest.trim_start_matches(BLANK);
    let value = rest.strip_prefix(['=', ':']).unwrap_or(rest);
    (name, value.trim_start_matches(BLANK))
}

/// The text with its escapes resolved.
fn unescaped(text: &str) -> Result<String, &'static str> {
    let mut found = String::new();
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match (c, if c == '\\' { rest.next() } else { None }) {
            ('\\', Some('t')) => found.push('\t'),
            ('\\', Some('n')) => found.push('\n'),
            ('\\', Some('r')) => found.push('\r'),
            ('\\', Some('f')) => found.push('\u{c}'),
            ('\\', Some('u')) => {
                found.push(unicode(&mut rest).ok_or("\\u wants four hexadecimal digits of a character")?)
            }
            ('\\', Some(other)) => found.push(other),
            ('\\', None) => {}
            (c, _) => found.push(c),
        }
    }
    Ok(found)
}

/// The character of `\uXXXX`, or of two of them that are a surrogate pair.
fn unicode(rest: &mut Peekable<Chars<'_>>) -> Option<char> {
    let first = unit(rest)?;
    if !(0xd800..0xdc00).contains(&first) {
        return char::from_u32(u32::from(first));
    }
    if rest.next() != Some('\\') || rest.next() != Some('u') {
        return None;
    }
    char::decode_utf16([first, unit(rest)?]).next()?.ok()
}

fn unit(rest: &mut Peekable<Chars<'_>>) -> Option<u16> {
    let mut unit = 0;
    for _ in 0..4 {
        unit = unit * 16 + u16::try_from(rest.next()?.to_digit(16)?).ok()?;
    }
    Some(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<String, String> {
        let found = parse(text).map_err(|error| error.to_string())?;
        Ok(found.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("|"))
    }

    #[test]
    fn lines_are_read_as_java_reads_them() {
        for (text, expected) in [
            ("a=1\nb:2\r\nc 3\n\td = 4\n", "a=1|b=2|c=3|d=4"),
            ("# a=1\n  ! b=2\n\n   \nc=3", "c=3"),
            ("a==1=2\nb = = x", "a==1=2|b== x"),
            ("a\nb=\nc:", "a=|b=|c="),
            ("a=1\na=2", "a=2"),
            ("a=one, \\\n   two, \\\n\tthree\nb=1", "a=one, two, three|b=1"),
            ("a=c:\\\\dir\\\\\nb=1", "a=c:\\dir\\|b=1"),
            ("a=1\\", "a=1"),
            ("a\\.b=\\ x ", "a.b= x "),
            ("a=\\t\\n\\u0041\\u00e9\\uD83D\\uDE00\\q", "a=\t\nA\u{e9}\u{1f600}q"),
            ("\u{feff}a=1", "a=1"),
            // No comment behind a value, and none within one that goes on.
            ("a=1 # x\nb=1\\\n# 2", "a=1 # x|b=1# 2"),
        ] {
            assert_eq!(read(text).as_deref(), Ok(expected), "{text:?}");
        }
    }

    #[test]
    fn what_can_not_be_read_is_said_by_line() {
        for (text, said) in [
            ("a=1\nb=\\u00", "line \"2\": \\u wants"),
            ("a=\\uD83D", "line \"1\": \\u wants"),
            ("=secret", "line \"1\": no name"),
            // A key that was pasted in without backslashes; its lines look like names.
            ("a=-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgsecret\n", "line \"2\": not a property's name"),
            ("a=-----BEGIN PRIVATE KEY-----\nsecret/q+A==\n", "line \"2\": not a property's name"),
            ("secret value=1\nsecret\\ value=1", "line \"2\": not a property's name"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.starts_with(said) && !error.contains("secret"), "{text:?}: {error}");
        }
        let million = "a=1\n".repeat(1_000_000);
        assert!(read(&million).unwrap_err().contains("at most 10000 lines"));
    }
}
