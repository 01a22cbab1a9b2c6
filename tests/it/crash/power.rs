//! Killed at any moment, and the power cut at any moment; and who takes over from a killed process.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tidelog::journal::Journal;

use super::{DIR, check, child, options, read, spawn};

#[test]
fn a_killed_process_loses_nothing_acknowledged() {
    if let Some(dir) = std::env::var_os(DIR) {
        return child(Path::new(&dir));
    }
    const TEST: &str = "crash::power::a_killed_process_loses_nothing_acknowledged";
    let dir = tempfile::tempdir().expect("a temporary directory");
    let mut acknowledged = 0;
    for round in 0..200 {
        let mut child = spawn(TEST, dir.path(), None, u64::MAX >> 1);
        let mut said = BufReader::new(child.stdout.take().expect("piped"));
        // Killed after a while that differs: in the middle of opening, of a commit, of a seal.
        let mut lines = String::new();
        for _ in 0..(round * 37) % 300 {
            said.read_line(&mut lines).expect("text");
        }
        child.kill().expect("a kill");
        said.read_to_string(&mut lines).expect("text");
        child.wait().expect("the child ends");
        acknowledged = acknowledged.max(read(&lines).acknowledged);
        if round % 10 == 9 {
            check(dir.path(), acknowledged, &format!("round {round}"));
            acknowledged = Journal::open(dir.path(), options()).expect("it opens").with_state(|s| s.seq).as_u64();
        }
    }
    assert!(acknowledged > 2_000, "only {acknowledged} entries in 200 rounds");
}

/// A file system of its own whose device can be copied at any moment, as a power cut would leave it.
struct Device {
    image: PathBuf,
    mount: PathBuf,
}

impl Device {
    fn mounted(image: PathBuf, mount: PathBuf) -> Device {
        std::fs::create_dir_all(&mount).expect("a mount point");
        tool("mount", &["-o", "loop", image.to_str().expect("UTF-8"), mount.to_str().expect("UTF-8")]);
        Device { image, mount }
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        let status = Command::new("umount").arg(&self.mount).status();
        assert!(std::thread::panicking() || status.is_ok_and(|status| status.success()), "umount {:?}", self.mount);
    }
}

fn tool(name: &str, args: &[&str]) {
    let done = Command::new(name).args(args).output();
    let done = done.unwrap_or_else(|error| panic!("{name}: {error}; this test wants Linux, root and e2fsprogs"));
    assert!(done.status.success(), "{name} {args:?}: {}", String::from_utf8_lossy(&done.stderr));
}

#[test]
fn a_power_cut_loses_nothing_acknowledged() {
    if let Some(dir) = std::env::var_os(DIR) {
        return child(Path::new(&dir));
    }
    const TEST: &str = "crash::power::a_power_cut_loses_nothing_acknowledged";
    let root = tempfile::tempdir().expect("a temporary directory");
    let image = root.path().join("disk.img");
    let file = std::fs::File::create(&image).expect("an image");
    file.set_len(256 << 20).expect("a sparse file");
    tool("mkfs.ext4", &["-q", "-F", image.to_str().expect("UTF-8")]);
    let device = Device::mounted(image, root.path().join("disk"));
    let journal = device.mount.join("journal");
    let mut child = spawn(TEST, &journal, None, u64::MAX >> 1);
    let mut said = BufReader::new(child.stdout.take().expect("piped"));
    let pid = child.id().to_string();
    let mut lines = String::new();
    for cut in 0..20 {
        for _ in 0..200 + 61 * (cut % 7) {
            said.read_line(&mut lines).expect("text");
        }
        tool("kill", &["-STOP", &pid]);
        // What the stopped child has acknowledged but we have not read yet only makes the check weaker by those.
        let acknowledged = read(&lines).acknowledged;
        let copy = root.path().join("copy.img");
        // The file system's own cache is not in the image: only what was written to the device.
        std::fs::copy(&device.image, &copy).expect("a copy");
        tool("kill", &["-CONT", &pid]);
        let cut_off = Device::mounted(copy, root.path().join("cut"));
        check_at_least(&cut_off.mount.join("journal"), acknowledged, &format!("cut {cut}"));
    }
    child.kill().expect("a kill");
    child.wait().expect("the child ends");
}

/// Like [`check`], for a child that went on acknowledging while its answers waited in the pipe.
fn check_at_least(dir: &Path, acknowledged: u64, what: &str) {
    let journal = Journal::open(dir, options()).unwrap_or_else(|error| panic!("{what}: {error}"));
    let newest = journal.with_state(|state| state.seq).as_u64();
    drop(journal);
    assert!(newest >= acknowledged, "{what}: {newest} entries, {acknowledged} acknowledged");
    check(dir, newest, what);
}

#[test]
fn a_second_process_is_told_who_holds_the_journal() {
    if let Some(dir) = std::env::var_os(DIR) {
        return child(Path::new(&dir));
    }
    const TEST: &str = "crash::power::a_second_process_is_told_who_holds_the_journal";
    let dir = tempfile::tempdir().expect("a temporary directory");
    let mut child = spawn(TEST, dir.path(), None, u64::MAX >> 1);
    let mut line = String::new();
    let mut said = BufReader::new(child.stdout.take().expect("piped"));
    while !line.contains("seq") {
        said.read_line(&mut line).expect("text");
    }
    let mut options = options();
    options.lock_wait = Duration::from_millis(50);
    let refused = Journal::open(dir.path(), options.clone()).err().expect("the child holds it").to_string();
    assert!(refused.contains(&child.id().to_string()), "{refused}");
    child.kill().expect("a kill");
    child.wait().expect("the child ends");
    // A restart under a supervisor waits a moment for the lock, and takes over.
    options.lock_wait = Duration::from_secs(5);
    Journal::open(dir.path(), options).expect("nobody holds it any more");
}
