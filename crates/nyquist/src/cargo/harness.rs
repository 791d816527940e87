//! The harness that runs the tests and benchmarks inside a program: libtest, Criterion, or one of its own.

use super::launch::Launch;
use crate::failure::Failure;
use crate::identity;
use std::ffi::OsString;
use std::path::Path;
use std::process::Stdio;

/// Whether the program's harness is Criterion, or another that knows Criterion's option.
///
/// It searches the program's file for the options. Running the program could run all benchmarks, if its
/// harness ignores options.
pub(super) fn is_criterion(program: &Path) -> Result<bool, Failure> {
    holds(program, b"profile-time")
}

/// Whether the program's harness is libtest: it reads this variable.
pub(super) fn is_libtest(program: &Path) -> Result<bool, Failure> {
    holds(program, b"RUST_TEST_NOCAPTURE")
}

fn holds(program: &Path, needle: &[u8]) -> Result<bool, Failure> {
    let bytes = std::fs::read(program)
        .map_err(|error| Failure::because(format_args!("cannot read {}", program.display()), &error))?;
    Ok(contains(&bytes, needle))
}

fn contains(bytes: &[u8], needle: &[u8]) -> bool {
    let Some(&first) = needle.first() else { return true };
    let mut rest = bytes;
    while let Some(at) = rest.iter().position(|byte| *byte == first) {
        rest = &rest[at..];
        if rest.starts_with(needle) {
            return true;
        }
        rest = &rest[1..];
    }
    false
}

/// The names of the program's tests.
pub(super) fn list_tests(launch: &Launch) -> Result<Vec<String>, Failure> {
    list(launch, ": test")
}

/// Whether the program has benchmarks. The tests of other harnesses than libtest cannot be listed from
/// outside.
pub(super) fn has_benchmarks(launch: &Launch) -> Result<bool, Failure> {
    Ok(!is_libtest(&launch.program())? || !list(launch, ": benchmark")?.is_empty())
}

/// The names that libtest lists with this suffix.
fn list(launch: &Launch, ending: &str) -> Result<Vec<String>, Failure> {
    let program = launch.program();
    let mut command = identity::command(&program);
    command.args(["--list", "--format=terse"]).envs(&launch.variables).current_dir(&launch.folder);
    let output = command.stderr(Stdio::inherit()).output();
    let output = output.map_err(|error| {
        Failure::because(format_args!("cannot list the tests of {}", program.display()), &error)
    })?;
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.lines().filter_map(|line| line.strip_suffix(ending)).map(str::to_owned).collect())
}

/// libtest's arguments to run one test: alone, on the main thread, ignored or not, with its output.
pub(super) fn one_test(name: &str) -> Vec<OsString> {
    [name, "--exact", "--include-ignored", "--nocapture", "--test-threads=1"].map(OsString::from).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_found_wherever_they_are() {
        let check = |bytes: &[u8], expected| assert_eq!(contains(bytes, b"aab"), expected, "{bytes:?}");
        check(b"", false);
        check(b"aa", false);
        check(b"aab", true);
        check(b"\xffaaab\x00", true);
        check(b"aaaaa", false);
    }

    #[test]
    fn this_very_program_is_tested_by_libtest() {
        let program = std::env::current_exe().unwrap();
        assert!(is_libtest(&program).unwrap());
    }
}
