//! A Java process that can't outlive the tests.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{self, Sender, SyncSender};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::wait::wait_for;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// A running JVM with one of Kafka's main classes. Dropped, it is killed.
pub struct Jvm {
    child: Child,
    stdout: File,
    stderr: File,
}

impl Jvm {
    pub fn start(class: &str, args: &[&str]) -> Jvm {
        let jars = Path::new(ROOT).join("target/kafka");
        assert!(jars.is_dir(), "no Kafka in {}: tests/run fetches it", jars.display());
        let stdout = tempfile::tempfile().expect("a temporary file can be made");
        let stderr = tempfile::tempfile().expect("a temporary file can be made");
        let mut command = Command::new("setpriv");
        command
            // This process may be killed, too: then nobody is left to kill the JVM but the kernel.
            .args(["--pdeathsig", "KILL", "java", "-Xmx512m", "-XX:TieredStopAtLevel=1"])
            .arg(format!("-Dlog4j2.configurationFile={ROOT}/tests/kafka/log4j2.properties"))
            .arg("-cp")
            .arg(jars.join("*"))
            .arg(class)
            .args(args)
            .stdin(Stdio::null())
            .stdout(stdout.try_clone().expect("a file can be cloned"))
            .stderr(stderr.try_clone().expect("a file can be cloned"));
        let child = spawn(command).expect("setpriv (of util-linux) and java can be run");
        Jvm { child, stdout, stderr }
    }

    /// Waits for its end and returns what it wrote to standard output; panics if it failed.
    pub fn finish(mut self, deadline: Duration) -> String {
        let status = wait_for("a Kafka tool", deadline, || self.ended().ok_or("still running"));
        assert!(status.success(), "a Kafka tool failed, {status}:\n{}", self.output());
        read(&mut self.stdout)
    }

    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("a child can be waited for")
    }

    /// All that it wrote so far.
    pub fn output(&mut self) -> String {
        read(&mut self.stdout) + &read(&mut self.stderr)
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("a child can be signalled");
    }
}

impl Drop for Jvm {
    fn drop(&mut self) {
        // Errors here mean that it is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn read(file: &mut File) -> String {
    let mut bytes = Vec::new();
    file.rewind().and_then(|()| file.read_to_end(&mut bytes)).expect("a temporary file can be read");
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Spawns on a thread that lives as long as this process: the kernel takes the end of the spawning *thread* for the
/// parent's death, and the thread of a test ends long before those that share its broker.
fn spawn(command: Command) -> io::Result<Child> {
    type Job = (Command, SyncSender<io::Result<Child>>);
    static SPAWNER: OnceLock<Sender<Job>> = OnceLock::new();
    let spawner = SPAWNER.get_or_init(|| {
        let (sender, jobs) = mpsc::channel::<Job>();
        thread::spawn(move || {
            for (mut command, reply) in jobs {
                reply.send(command.spawn()).expect("the caller waits for its child");
            }
        });
        sender
    });
    let (reply, child) = mpsc::sync_channel(1);
    spawner.send((command, reply)).expect("the spawning thread never ends");
    child.recv().expect("the spawning thread never ends")
}
