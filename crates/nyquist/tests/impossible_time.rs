//! Files that state more CPU time than there can have been: each command that sums it up says so.

use nyquist_profile::firefox::{self, FormatVersion, WriteOptions};
use nyquist_profile::{Meta, Process, ProfileBuilder, Sample, Thread};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// What every command says of ten seconds of CPU time in a tenth of a second.
const WARNING: &str = "That cannot be: 1 thread can use 0.10 s at most";

/// A folder with one profile.
struct Folder(PathBuf);

impl Folder {
    /// Two samples of one thread, a tenth of a second apart, each for so many milliseconds.
    fn new(name: &str, milliseconds: u64) -> Self {
        let folder = std::env::temp_dir().join(format!("nyquist-impossible-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        write_profile(&folder.join("profile.json"), milliseconds);
        Self(folder)
    }

    fn run(&self, line: &str) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nyquist"));
        command.args(line.split_whitespace()).current_dir(&self.0).stdin(Stdio::null()).env("HOME", &self.0);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
        output
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn write_profile(path: &Path, milliseconds: u64) {
    let meta = Meta {
        product: "app".into(),
        interval: 1_000_000,
        logical_cpus: Some(4),
        symbolicated: true,
        ..Meta::default()
    };
    let mut builder = ProfileBuilder::new(meta);
    let process = builder.add_process(Process { pid: "7".into(), name: "app".into(), ..Process::default() });
    let thread = builder.add_thread(Thread::new(process, "7", "app"));
    let stack = Some(builder.intern_label(None, "work", None));
    for time in [0, 100_000_000] {
        builder.add_sample(thread, Sample { weight: milliseconds, ..Sample::new(time, stack, 0) });
    }
    let mut bytes = Vec::new();
    let options = WriteOptions { version: FormatVersion::default(), gzip: false };
    firefox::write(&builder.finish(), options, &mut bytes).unwrap();
    fs::write(path, bytes).unwrap();
}

/// The lines of an output, of the commands with the stream on which each says what it has summed up.
fn said_by(folder: &Folder) -> [(&'static str, String); 4] {
    let stdout = |line| String::from_utf8(folder.run(line).stdout).unwrap();
    let import = folder.run("import -s -o imported.json.gz profile.json").stderr;
    [
        ("report", stdout("report profile.json")),
        ("query", stdout("query profile.json")),
        ("query --json", stdout("query profile.json --json")),
        ("import", String::from_utf8(import).unwrap()),
    ]
}

#[test]
fn every_command_says_that_time_is_impossible() {
    let folder = Folder::new("said", 5000);
    for (command, text) in said_by(&folder) {
        assert!(text.contains(WARNING), "{command}: {text}");
    }
}

#[test]
fn possible_time_is_not_doubted() {
    let folder = Folder::new("not-said", 50);
    for (command, text) in said_by(&folder) {
        assert!(!text.contains("That cannot be"), "{command}: {text}");
    }
}
