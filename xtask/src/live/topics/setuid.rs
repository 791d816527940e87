//! Programs whose files give privileges. Under a tracer the kernel does not give them, and a message says so
//! at the right time.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::context::Context;
use super::expect::{Verdict, expect, expect_contains, expect_eq, expect_share, need_root};
use super::invocation::Finished;
use super::test::Test;

pub(super) const TESTS: &[Test] = &[
    Test::new("a_setuid_program_is_warned_about", launched),
    Test::new("the_warning_comes_before_the_program_starts", before_start),
    Test::new("setuid_programs_of_a_script_are_named_once", in_script),
];

/// The message about a program that loses its privileges.
const WARNING: &str = "runs without the privileges of its file";

/// The tests choose the backend, because a filter that a plain user installs takes away setuid as well.
const BY_PTRACE: &[&str] = &["--backend", "ptrace"];

/// A copy of a file that runs as root.
fn setuid_copy(test: &Context<'_>, of: &Path, name: &str) -> Result<PathBuf, anyhow::Error> {
    let program = test.path(name);
    // Another process copies the file. Otherwise, a child that a parallel test creates at this moment would
    // hold the file open for writing, and the file could not be run.
    test.program("cp").path(of).path(&program).run()?.succeeded()?;
    fs::set_permissions(&program, fs::Permissions::from_mode(0o4755))?;
    Ok(program)
}

/// The number of warnings about a program.
fn warnings(finished: &Finished, program: &Path) -> usize {
    let warning = format!("warning: {} {WARNING}", program.display());
    finished.stderr.lines().filter(|line| line.starts_with(&warning)).count()
}

fn launched(test: &Context<'_>) -> Verdict {
    need_root()?;
    let program = setuid_copy(test, &test.workload("shares"), "setuid-shares")?;
    let name = program.display().to_string();
    let recorded = test.record_command(&[&name, "100"]).options(BY_PTRACE).by_plain_user().run_well()?;
    expect_eq("warnings", warnings(&recorded.finished, &program), 1)?;
    expect_share(
        "alpha",
        recorded.profile.total_share("alpha"),
        recorded.true_share("alpha")?,
        recorded.profile.equal_count(),
    )?;
    let as_root = test.record_command(&[&name, "50"]).options(BY_PTRACE).run_well()?;
    expect(!as_root.finished.stderr.contains("privileges"), "root was warned, too")
}

/// If a program cannot start, only a warning before the attempt is visible.
fn before_start(test: &Context<'_>) -> Verdict {
    need_root()?;
    let mut program = fs::read(test.workload("shares"))?;
    let interpreter = b"/lib64/ld-linux";
    let at = program.windows(interpreter.len()).position(|bytes| bytes == interpreter);
    let Some(at) = at else { return expect(false, "the program names no loader") };
    program[at..at + interpreter.len()].copy_from_slice(b"/lib64/no-linux");
    let plain = test.path("without-loader");
    fs::write(&plain, program)?;
    let program = setuid_copy(test, &plain, "setuid-without-loader")?;
    let recording = test.record_command(&[&program.display().to_string()]).options(BY_PTRACE);
    let finished = recording.by_plain_user().prepare().call.run()?;
    expect_eq("warnings", warnings(&finished, &program), 1)?;
    expect_contains("stderr", &finished.stderr, "cannot be run")?;
    expect(!finished.stderr.contains("Sampling"), "it is said to be sampled")
}

/// The programs that a shell runs are only known when they run.
fn in_script(test: &Context<'_>) -> Verdict {
    need_root()?;
    let programs =
        ["setuid-first", "setuid-second"].map(|name| setuid_copy(test, &test.workload("shares"), name));
    let [first, second] = programs;
    let (first, second) = (first?, second?);
    let script = format!("{0} 20; {0} 20; {1} 20", first.display(), second.display());
    let shell = test.record_command(&["sh", "-c", &script]).options(BY_PTRACE);
    let recorded = shell.by_plain_user().run_well()?;
    for program in [&first, &second] {
        expect_eq("warnings", warnings(&recorded.finished, program), 1)?;
    }
    let as_root = test.record_command(&["sh", "-c", &script]).options(BY_PTRACE).run_well()?;
    expect(!as_root.finished.stderr.contains("privileges"), "root was warned, too")?;
    // If a filter takes away all privileges, that is not the tracer's fault.
    let filter = test.workload("deny_perf").display().to_string();
    let filtered = test.record_command(&["sh", "-c", &script]).by_plain_user();
    let filtered = filtered.with(|call| call.under(&[&filter])).run_well()?;
    expect(!filtered.finished.stderr.contains(WARNING), "the tracer is blamed for a filter")
}
