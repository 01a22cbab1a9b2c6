//! The rules of the house that a compiler does not check: layers, who may know which library, names, sizes.

use std::path::{Path, PathBuf};

/// The layers, ground first; a module imports only from modules before it in this list.
const LAYERS: [&str; 17] = [
    "fingerprint",
    "message",
    "offset",
    "entry",
    "positions",
    "results",
    "commit",
    "broker",
    "reconcile",
    "rollback",
    "journal",
    "history",
    "control",
    "wire",
    "server",
    "kafka",
    "cli",
];

fn sources(under: &str) -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    let mut folders = vec![root.join(under)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder of ours") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).expect("UTF-8");
                found.push((path.strip_prefix(root).expect("below the root").to_owned(), text));
            }
        }
    }
    assert!(!found.is_empty(), "nothing under {under}");
    found.sort();
    found
}

/// The layer that a file of `src` belongs to.
fn layer(path: &Path) -> Option<usize> {
    let name = path.components().nth(1)?.as_os_str().to_str()?.trim_end_matches(".rs").to_owned();
    LAYERS.iter().position(|layer| *layer == name)
}

/// Lines of code: no comments, which may speak of anything.
fn code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with("//")).map(|(n, line)| (n + 1, line))
}

/// The modules right under `crate` that code names, by a path or in a list (`use crate::{broker::Look, entry}`), each with
/// its line.
fn imports(text: &str) -> Vec<(usize, String)> {
    const ROOT: &str = "crate::";
    // Comments keep their lines, and say nothing.
    let lines = text.lines().map(|line| if line.trim_start().starts_with("//") { "" } else { line });
    let code = lines.collect::<Vec<_>>().join("\n");
    let mut found = Vec::new();
    for (at, _) in code.match_indices(ROOT) {
        let begin = at + ROOT.len();
        let mut depth = 0;
        // Where a name of the first level may begin.
        let mut fresh = true;
        for (place, c) in code[begin..].char_indices() {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 1 => fresh = true,
                c if c.is_whitespace() => {}
                _ if fresh && depth <= 1 => {
                    let name = code[begin + place..].split(|c: char| !c.is_alphanumeric() && c != '_').next();
                    let line = code[..begin + place].matches('\n').count() + 1;
                    found.push((line, name.unwrap_or_default().to_owned()));
                    fresh = false;
                }
                _ => {}
            }
            if depth == 0 {
                break;
            }
        }
    }
    found
}

#[test]
fn imports_are_seen_as_paths_and_in_lists() {
    let text = "use crate::entry::{Body, Draft};\n// crate::cli\nuse crate::{\n    broker::{Look, Seen},\n    offset,\n\
                    server as s,\n};\nlet x = crate::wire::Entry::from(1);\npub(in crate::kafka) fn y() {}";
    let seen: Vec<_> = imports(text).into_iter().map(|(line, name)| format!("{line} {name}")).collect();
    assert_eq!(seen, ["1 entry", "4 broker", "5 offset", "6 server", "8 wire", "9 kafka"]);
}

#[test]
fn each_layer_imports_only_what_stands_below_it() {
    // The state of a group is part of the entry that a prune leaves: the two words know each other.
    let allowed = |from: usize, to: usize| to <= from || (LAYERS[from] == "entry" && LAYERS[to] == "positions");
    let mut wrong = Vec::new();
    for (path, text) in sources("src") {
        let Some(own) = layer(&path) else { continue };
        for (line, name) in imports(&text) {
            let Some(to) = LAYERS.iter().position(|layer| *layer == name) else { continue };
            if !allowed(own, to) {
                wrong.push(format!("{}:{line}: {name}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_module_of_the_crate_has_a_layer() {
    for (path, _) in sources("src") {
        let file = path.file_name().and_then(|name| name.to_str()).expect("UTF-8");
        let top = path.components().count() == 2 && (file == "lib.rs" || file == "main.rs");
        assert!(top || layer(&path).is_some(), "{} is in no layer: add it to LAYERS, in order", path.display());
    }
}

#[test]
fn a_library_is_known_in_one_place_only() {
    let known = [
        ("sled::", "src/journal"),
        ("rdkafka::", "src/kafka"),
        ("rdkafka_sys::", "src/kafka"),
        ("unsafe ", "src/kafka"),
        ("axum::", "src/server"),
        ("clap::", "src/cli"),
        ("SystemTime", "src/cli"),
        ("std::env::", "src/cli"),
    ];
    let mut wrong = Vec::new();
    for (path, text) in sources("src") {
        for (number, line) in code(&text) {
            for (word, place) in known {
                if line.contains(word) && !path.starts_with(place) && path != Path::new("src/main.rs") {
                    wrong.push(format!("{}:{number}: {word} belongs to {place}", path.display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Crates that the library brings along without features: a journal for somebody else's program. Sled's tree is half of it.
const MAX_CRATES: usize = 45;

#[test]
fn without_features_the_library_brings_few_crates() {
    let words = "tree --locked --offline --no-default-features --edges normal --prefix none --no-dedupe";
    let mut cargo = std::process::Command::new(env!("CARGO"));
    let done = cargo.args(words.split(' ')).current_dir(env!("CARGO_MANIFEST_DIR")).output().expect("cargo can be run");
    let tree = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let crates: std::collections::BTreeSet<&str> = tree.lines().filter(|line| !line.starts_with("tidelog ")).collect();
    let all: Vec<_> = crates.iter().copied().collect();
    assert!(crates.len() <= MAX_CRATES, "{} crates, {MAX_CRATES} are the limit:\n{}", crates.len(), all.join("\n"));
    for heavy in ["rdkafka", "axum", "hyper", "clap", "serde_json"] {
        assert!(!crates.iter().any(|name| name.starts_with(&format!("{heavy} "))), "{heavy} is for a feature only");
    }
}

/// Lines of a file, without the examples of its documentation.
fn without_examples(text: &str) -> usize {
    let (mut count, mut in_example) = (0, false);
    for line in text.lines() {
        let fence = line.trim_start().starts_with("/// ```");
        count += usize::from(!in_example && !fence);
        in_example ^= fence;
    }
    count
}

/// Files whose types nobody outside of the crate can name, or that are the program's.
const INSIDE: &[&str] = &[
    "cli/",
    "control/fake.rs",
    "control/rollback/ask.rs",
    "control/rollback/resolve.rs",
    "journal/codec/",
    "journal/health.rs",
    "journal/lock.rs",
    "journal/published.rs",
    "journal/request.rs",
    "journal/runs.rs",
    "journal/sealing.rs",
    "journal/store/",
    "journal/tail",
    "journal/wal/",
    "journal/writer.rs",
    "kafka/properties",
    "kafka/raw/",
    "main.rs",
    "rollback/log.rs",
    "rollback/step.rs",
    "server/ask.rs",
    "server/hub.rs",
    "server/looks.rs",
    "wire/target.rs",
];

/// Within such files, or of a file with both: those that can be named, and those that can't.
const NAMED: &[(&str, &str)] = &[
    ("journal/store/as_of.rs", "AsOf"),
    ("journal/store/mod.rs", "Order"),
    ("journal/store/readers.rs", "Question Reading Readings Portion"),
];
const UNNAMED: &[(&str, &str)] = &[("journal/refusals.rs", "RefusalBook"), ("server/guard.rs", "Caller")];

/// Each public type has an example, which `cargo test` runs: at the type, or at one of its functions.
#[test]
fn each_public_type_has_an_example() {
    let listed = |list: &[(&str, &str)], file: &str, name: &str| {
        list.iter().any(|(of, names)| *of == file && names.split(' ').any(|other| other == name))
    };
    let (mut seen, mut wrong) = (0, Vec::new());
    for (path, text) in sources("src") {
        let file = path.to_string_lossy().trim_start_matches("src/").to_owned();
        let lines: Vec<&str> = text.lines().collect();
        for (at, line) in lines.iter().enumerate() {
            let kind = ["pub struct ", "pub enum ", "pub trait "].iter().find_map(|kind| line.strip_prefix(kind));
            let Some(name) = kind.and_then(|rest| rest.split(|c: char| !c.is_alphanumeric()).next()) else { continue };
            let inside = file.contains("/tests") || INSIDE.iter().any(|begin| file.starts_with(begin));
            if inside && !listed(NAMED, &file, name) || listed(UNNAMED, &file, name) {
                continue;
            }
            seen += 1;
            // The comment above, also beyond an attribute of several lines.
            let above = lines[..at].iter().rev().take_while(|line| !line.is_empty() && **line != "}");
            let own = format!("impl {name} {{");
            let body = lines.iter().skip_while(|line| **line != own).take_while(|line| **line != "}");
            if !above.chain(body).any(|line| line.trim_start().starts_with("/// ```")) {
                wrong.push(format!("{file}: {name}"));
            }
        }
    }
    assert!(seen > 150, "only {seen} public types");
    assert!(wrong.is_empty(), "without an example:\n{}", wrong.join("\n"));
}

#[test]
fn files_stay_readable_and_names_say_something() {
    let mut wrong = Vec::new();
    for (path, text) in
        sources("src").into_iter().chain(sources("tests")).chain(sources("benches")).chain(sources("examples"))
    {
        let lines = without_examples(&text);
        // The ground's words are read in one go, and a byte format stands in one file, encode and decode.
        let whole = ["offset.rs", "positions.rs", "entry.rs"].map(|name| Path::new("src").join(name)).contains(&path)
            || path.starts_with("src/journal/codec");
        let limit = if whole { 700 } else { 500 };
        if lines > limit {
            wrong.push(format!("{}: {lines} lines, past {limit}: two rooms would be clearer", path.display()));
        }
        let stem = path.file_stem().and_then(|stem| stem.to_str()).expect("UTF-8");
        if ["utils", "util", "common", "helpers", "types", "misc"].contains(&stem) {
            wrong.push(format!("{}: a name that says nothing", path.display()));
        }
        if !text.starts_with("//!") {
            wrong.push(format!("{}: no sentence on what it is", path.display()));
        }
        let placeholders = ["todo", "unimplemented"].map(|word| format!("{word}!("));
        let skipped = ["#[ig", "nore"].concat();
        if placeholders.iter().any(|word| text.contains(word)) || text.contains(&skipped) {
            wrong.push(format!("{}: a placeholder or a skipped test", path.display()));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
