//! The token for a server that is named.

use std::path::Path;

use crate::cli::exit::Failure;

/// The token: from the file that is given; else from TIDELOG_TOKEN, which names a file or is the token.
///
/// # Errors
///
/// The file can't be read, or holds no token.
pub fn given(file: Option<&Path>) -> Result<Option<String>, Failure> {
    if let Some(file) = file {
        return from_file(file).map(Some);
    }
    match std::env::var("TIDELOG_TOKEN").ok().filter(|value| !value.is_empty()) {
        Some(value) if Path::new(&value).is_file() => from_file(Path::new(&value)).map(Some),
        value => Ok(value),
    }
}

fn from_file(path: &Path) -> Result<String, Failure> {
    let text = std::fs::read_to_string(path).map_err(|source| Failure::File { path: path.to_owned(), source })?;
    let token = strongest(&text);
    token.ok_or_else(|| Failure::Usage(format!("{}: holds no token", path.display())))
}

/// The token of the strongest role, or the only one.
fn strongest(text: &str) -> Option<String> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let ranked = lines.filter_map(|line| match line.splitn(3, ':').collect::<Vec<_>>()[..] {
        ["operate", _, token] => Some((3, token)),
        ["commit", _, token] => Some((2, token)),
        ["read", _, token] => Some((1, token)),
        [token] => Some((0, token)),
        _ => None,
    });
    ranked.max_by_key(|(rank, _)| *rank).map(|(_, token)| token.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_holds_one_token_or_roles() {
        assert_eq!(strongest("0123456789abcdef\n").as_deref(), Some("0123456789abcdef"));
        let roles =
            "# ours\nread:page:rrrrrrrrrrrrrrrr\noperate:ann:oooooooooooooooo\ncommit:loader:cccccccccccccccc\n";
        assert_eq!(strongest(roles).as_deref(), Some("oooooooooooooooo"));
        assert_eq!(strongest("read:page:rrrrrrrrrrrrrrrr").as_deref(), Some("rrrrrrrrrrrrrrrr"));
        for none in ["", "\n# nothing\n", "admin:ann:aaaaaaaaaaaaaaaa"] {
            assert_eq!(strongest(none), None, "{none:?}");
        }
    }
}
