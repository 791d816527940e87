//! Programs whose allocations cannot be recorded: a sentence says why, CPU time is recorded all the same, and the
//! program works as it does alone.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use anyhow::Context as _;

use super::context::Context;
use super::expect::{Stop, Verdict, expect, expect_contains, expect_eq, need_root, skip};
use super::test::Test;

pub(super) const TESTS: &[Test] = &[
    Test::new("a_static_program_is_recorded_without_them", linked_statically),
    Test::new("an_own_allocator_is_named", own_allocator),
    Test::new("a_setuid_program_allocates_unrecorded", setuid),
    Test::new("a_sanitizer_is_left_alone", sanitizer),
    Test::new("a_program_of_32_bits_runs_as_alone", other_processor),
    Test::new("no_space_for_allocations_is_said", without_space),
    Test::new("a_full_shared_memory_is_said", full_memory),
    Test::new("a_cleared_preload_is_said", cleared),
    Test::new("a_running_program_gets_advice", running),
];

const WORKS: &str = "volatile long i; for (i = 0; i < 50000000; i++);";

/// Compiles a program of C. `None` if the compiler cannot make it.
fn compiled(test: &Context<'_>, name: &str, source: &str, options: &[&str]) -> Result<Option<String>, Stop> {
    let file = test.fresh(&format!("{name}.c"));
    fs::write(&file, source)?;
    let program = test.path(name);
    let built = Command::new("gcc").arg("-O1").args(options).arg("-o").arg(&program).arg(&file).output();
    let is_built = built.is_ok_and(|built| built.status.success());
    Ok(is_built.then(|| program.display().to_string()))
}

/// Checks that a program is recorded without its allocations, and what is said of them.
fn expect_without(test: &Context<'_>, command: &[&str], printed: [&str; 2]) -> Verdict {
    let recorded = test.record_command(command).options(&["--alloc"]).run()?;
    let stderr = &recorded.finished.stderr;
    expect_eq("the status", recorded.finished.code(), 0)?;
    let line = stderr.lines().find(|line| line.contains("allocations are not recorded: "));
    let line = line.with_context(|| format!("nothing is said of allocations: {stderr}"))?;
    for part in printed {
        expect_contains("what is said", line, part)?;
    }
    expect(!recorded.profile.threads.is_empty(), "no CPU time was recorded")
}

fn linked_statically(test: &Context<'_>) -> Verdict {
    let program = test.workload("shares-static").display().to_string();
    // It works for as many milliseconds.
    expect_without(test, &[&program, "50"], ["linked statically", "can wrap its allocator"])
}

fn own_allocator(test: &Context<'_>) -> Verdict {
    let source = format!(
        "#include <stddef.h>\nvoid *malloc(size_t s) {{ static char m[1 << 20]; static size_t n; n += s; return m + n - s; }}\n\
         int main(int argc, char **argv) {{ {WORKS} return argc < 2 || malloc(9) == 0; }}\n"
    );
    let Some(program) = compiled(test, "own", &source, &[])? else { return expect(false, "gcc failed") };
    expect_without(test, &[&program, "x"], ["an allocator of its own (malloc)", "can wrap its allocator"])
}

fn setuid(test: &Context<'_>) -> Verdict {
    need_root()?;
    let program = test.path("setuid-shares");
    test.program("cp").path(&test.workload("shares")).path(&program).run()?.succeeded()?;
    fs::set_permissions(&program, fs::Permissions::from_mode(0o4755))?;
    let name = program.display().to_string();
    let recorded = test.record_command(&[&name, "50"]).options(&["--alloc"]).by_plain_user().run()?;
    let stderr = &recorded.finished.stderr;
    expect_contains("what is said", stderr, "allocations are not recorded: ")?;
    expect_contains("what is said", stderr, "gains privileges")?;
    expect_contains("what works", stderr, "a copy of it without these rights")?;
    // Its CPU time is not for its user to see.
    expect_eq("the status", recorded.finished.code(), 0)
}

fn sanitizer(test: &Context<'_>) -> Verdict {
    let source = format!("#include <stdlib.h>\nint main(void) {{ {WORKS} free(malloc(10)); return 0; }}\n");
    let Some(program) = compiled(test, "sanitized", &source, &["-fsanitize=address"])? else {
        return skip("gcc has no address sanitizer");
    };
    expect_without(test, &[&program], ["built with a sanitizer", "a build without it"])
}

fn other_processor(test: &Context<'_>) -> Verdict {
    let source = "__asm__(\".globl _start\\n_start: movl $300000000, %ecx\\n1: decl %ecx\\njnz 1b\\nmovl $1, %eax\\nxorl %ebx, %ebx\\nint $0x80\\n\");\n";
    let program = compiled(test, "small", source, &["-m32", "-nostdlib", "-static", "-ffreestanding"])?;
    let Some(program) = program.filter(|program| Command::new(program).status().is_ok_and(|it| it.success()))
    else {
        return skip("programs of 32 bits cannot be built or run");
    };
    let recorded = test.record_command(&[&program]).options(&["--alloc"]).run()?;
    expect_contains("what is said", &recorded.finished.stderr, "a program for another processor")?;
    // The loader's complaint about a library of another processor would be the program's own output.
    expect(!recorded.finished.stderr.contains("LD_PRELOAD"), "the loader complains")?;
    expect_eq("the status", recorded.finished.code(), 0)
}

/// The kernel would end a program that makes a longer file than it may. It must not notice.
fn without_space(test: &Context<'_>) -> Verdict {
    let program = test.workload("allocates").display().to_string();
    let command = format!("ulimit -f 100; exec '{program}'");
    let recorded =
        test.record_command(&["sh", "-c", &command]).options(&["--alloc", "--alloc-rate", "1"]).run()?;
    expect_eq("the status", recorded.finished.code(), 0)?;
    expect_eq("the program's output", recorded.finished.stdout_text().as_str(), "done\n")?;
    expect_contains("what is said", &recorded.finished.stderr, "there was no space for the records")?;
    expect_contains("what is said", &recorded.finished.stderr, "`ulimit -f`")
}

/// The records are in files of /dev/shm. Here it has room for a folder, and for no file of a process.
fn full_memory(test: &Context<'_>) -> Verdict {
    need_root()?;
    let small = "mount -t tmpfs -o size=1m tmpfs /dev/shm && exec \"$@\"";
    let recording = test.record(&["allocates", "sums", "16"]).options(&["--alloc", "--alloc-rate", "4096"]);
    let recorded =
        recording.with(move |call| call.under(&["unshare", "-m", "sh", "-c", small, "sh"])).run()?;
    expect_eq("the status", recorded.finished.code(), 0)?;
    expect_eq("the program's output", recorded.finished.stdout_text().as_str(), "done\n")?;
    expect_contains("what is said", &recorded.finished.stderr, "allocations of 1 program are not recorded")?;
    expect_contains("what is said", &recorded.finished.stderr, "/dev/shm is full")?;
    expect(recorded.profile.count() > 0.0, "no CPU time was recorded")
}

fn cleared(test: &Context<'_>) -> Verdict {
    let program = test.workload("allocates").display().to_string();
    let command = format!("unset LD_PRELOAD; exec '{program}' sums 4");
    // The shell itself allocates little, of which a sample is unlikely at this distance.
    let options = ["--alloc", "--alloc-rate", "1073741824"];
    let recorded = test.record_command(&["sh", "-c", &command]).options(&options).run()?;
    expect_eq("the program's output", recorded.finished.stdout_text().as_str(), "done\n")?;
    expect_contains("what is said", &recorded.finished.stderr, "no allocations were recorded")?;
    expect_contains("what is said", &recorded.finished.stderr, "has removed LD_PRELOAD")
}

fn running(test: &Context<'_>) -> Verdict {
    let pid = std::process::id().to_string();
    let refused = test.nyquist(&["record", "--alloc", "-p", &pid, "-d", "1"]).run()?;
    expect_eq("the status", refused.code(), 1)?;
    expect_contains("what is said", &refused.stderr, "not of those that run already")?;
    expect_contains("what works", &refused.stderr, "nyquist record --alloc COMMAND")
}
