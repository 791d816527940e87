//! The contents of tables: names on narrow terminals, matching rows with filters, no change for equal
//! profiles.

mod terminal;

use nyquist_profile::firefox::{self, FormatVersion, WriteOptions};
use nyquist_profile::{Lib, Meta, Process, ProfileBuilder, Sample, Thread};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A folder with a profile of a busy thread, and a thread that only called `idle`.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("nyquist-tables-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        write_profile(&folder.join("profile.json.gz"));
        Self(folder)
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nyquist"));
        command.args(line.split_whitespace()).current_dir(&self.0).stdin(Stdio::null());
        command.env("TERM", "xterm").env("LC_ALL", "C.UTF-8").env("NO_COLOR", "1").env("HOME", &self.0);
        command
    }

    fn text(&self, line: &str) -> String {
        let output = self.command(line).output().unwrap();
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn write_profile(path: &Path) {
    let meta = Meta { product: "app".into(), interval: 1_000_000, symbolicated: true, ..Meta::default() };
    let mut builder = ProfileBuilder::new(meta);
    builder.add_lib(Lib { name: "libsomething.so.1".into(), path: "/lib/x".into(), ..Lib::default() });
    let process = builder.add_process(Process { pid: "7".into(), name: "app".into(), ..Process::default() });
    for (tid, name, functions) in [
        (
            "7",
            "main",
            &["app::main", "app::some::module::of::it::which_is_long::work<alloc::string::String>"][..],
        ),
        ("8", "pool-idle", &["idle"][..]),
    ] {
        let thread = builder.add_thread(Thread::new(process, tid, name));
        let stack = functions.iter().fold(None, |stack, name| Some(builder.intern_label(stack, name, None)));
        builder.add_sample(thread, Sample { weight: 12_345, ..Sample::new(0, stack, 0) });
    }
    let mut bytes = Vec::new();
    let options = WriteOptions { version: FormatVersion::default(), gzip: true };
    firefox::write(&builder.finish(), options, &mut bytes).unwrap();
    fs::write(path, bytes).unwrap();
}

#[test]
fn threads_without_a_passing_sample_are_left_out() {
    let folder = Folder::new("threads");
    assert!(folder.text("report --threads").contains("pool-idle"));
    let text = folder.text("report --threads --focus work");
    assert!(text.contains("t-0") && !text.contains("pool-idle"), "{text}");
}

#[test]
fn equal_profiles_have_nothing_new() {
    let folder = Folder::new("diff");
    let text = folder.text("diff profile.json.gz profile.json.gz --all");
    assert!(text.contains("Unchanged") && text.contains("work") && text.contains("+0.0%"), "{text}");
    let not_there = ["new", "Slower", "Faster", "app::main"];
    assert!(!not_there.iter().any(|word| text.contains(word)), "{text}");
}

#[test]
fn no_line_of_a_table_is_wider_than_the_terminal() {
    let folder = Folder::new("narrow");
    for columns in [40, 59, 80, 200] {
        for view in ["", "--tree", "--inverted", "--libs", "--threads"] {
            let shown = terminal::shown(&mut folder.command(&format!("report {view}")), columns);
            let shown = String::from_utf8(shown).unwrap().replace("\r\n", "\n");
            // The heading is a sentence, and wraps.
            let (_, table) = shown.split_once("\n\n").unwrap();
            let widest = table.lines().map(|line| line.chars().count()).max().unwrap();
            assert!(widest <= usize::from(columns), "{view} at {columns}: {table}");
            assert!(
                ["--libs", "--threads"].contains(&view) || table.contains("work"),
                "{view} at {columns}: {table}"
            );
        }
    }
}
