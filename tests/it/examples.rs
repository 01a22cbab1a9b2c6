//! The examples do what they say: each is run, and ends with 0 only if its result is the right one. `cargo test` builds
//! them; a run of this binary alone takes what was built last.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

#[test]
fn each_example_comes_out_right() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let sources = std::fs::read_dir(folder).expect("a folder of ours");
    let names: BTreeSet<String> = sources
        .map(|file| file.expect("an entry").path())
        .map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned())
        .collect();
    for name in ["consume", "journal", "results"] {
        assert!(names.contains(name), "the example {name} is gone");
    }
    // This test is in `deps`, beside `examples`.
    let own = std::env::current_exe().expect("this program");
    let built = own.parent().and_then(Path::parent).expect("a folder of cargo's").join("examples");
    for name in names {
        let program = built.join(&name);
        assert!(program.exists(), "{} is missing: cargo build --examples makes it", program.display());
        let done = Command::new(&program).output().expect("it can be run");
        let [out, err] = [&done.stdout, &done.stderr].map(|bytes| String::from_utf8_lossy(bytes));
        assert!(done.status.success(), "{name}: {}\n{out}{err}", done.status);
        assert!(!out.is_empty(), "{name} says nothing");
    }
}
