//! C++'s operators of allocators that have their own: `new` does not call `malloc` there.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use super::allocation_views::self_sums;
use super::context::Context;
use super::expect::{Stop, Verdict, expect, expect_contains, expect_eq, skip};
use super::test::Test;

pub(super) const TESTS: &[Test] = &[
    Test::new("operators_of_jemalloc_are_seen", of_jemalloc),
    Test::new("operators_of_tcmalloc_are_seen", of_tcmalloc),
    Test::new("operators_of_mimalloc_are_seen", of_mimalloc),
    Test::new("operators_that_are_not_seen_are_said", not_seen),
    Test::new("a_childs_own_cpp_library_works", of_child),
];

const JEMALLOC: &str = "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2";
const TCMALLOC: &str = "/usr/lib/x86_64-linux-gnu/libtcmalloc.so.4";
const MIMALLOC: &str = "/usr/lib/x86_64-linux-gnu/libmimalloc.so.2.0";

/// Allocates by each kind of operator, frees what two of them have made, and ends with 7 if it caught an exception.
/// With another argument, it becomes that program.
const PROGRAM: &str = "#include <cstdlib>
#include <new>
#include <unistd.h>
struct alignas(64) Aligned { char bytes[64]; };
volatile char sink;
#define MAKES(name, type, what) __attribute__((noinline)) type *name(long n) { type *p = what; if (p) *(volatile char *)p = 1; return p; }
MAKES(by_new, char, new char[n])
MAKES(by_one, Aligned, new Aligned)
MAKES(by_aligned, Aligned, new Aligned[n])
MAKES(by_nothrow, char, new (std::nothrow) char[n])
MAKES(by_malloc, char, (char *)malloc(n))
int main(int count, char **args) {
    if (count > 2) return execv(args[1], args + 1);
    for (int i = 0; i < 100; i++) {
        by_new(1000); by_aligned(10); by_malloc(500);
        delete by_one(1);
        delete[] by_nothrow(300);
    }
    if (count == 1) return 0;
    try { by_new(-1); } catch (std::bad_alloc &) { return by_nothrow(-1L >> 2) ? 9 : 7; }
    return 8;
}
";

/// The bytes of each function: all, and those that stay.
const SUMS: [(&str, f64, f64); 5] = [
    ("by_new(long)", 1e5, 1e5),
    ("by_aligned(long)", 64e3, 64e3),
    ("by_malloc(long)", 5e4, 5e4),
    ("by_one(long)", 6400.0, 0.0),
    ("by_nothrow(long)", 3e4, 0.0),
];

/// Compiles a program of C or C++ with a library.
fn compiled(test: &Context<'_>, name: &str, source: &str, options: &[&str]) -> Result<String, Stop> {
    let file = test.fresh(&format!("{name}.cpp"));
    fs::write(&file, source)?;
    let program = test.path(name);
    let mut compiler = Command::new("g++");
    compiler.args(["-std=c++17", "-g", "-O1", "-o"]).arg(&program).arg(&file).args(options);
    let built = compiler.output().map_err(anyhow::Error::from)?;
    expect(built.status.success(), format_args!("g++: {}", String::from_utf8_lossy(&built.stderr)))?;
    Ok(program.display().to_string())
}

fn of_jemalloc(test: &Context<'_>) -> Verdict {
    are_seen(test, JEMALLOC)?;
    throws(test, JEMALLOC)
}

fn of_tcmalloc(test: &Context<'_>) -> Verdict {
    are_seen(test, TCMALLOC)?;
    throws(test, TCMALLOC)
}

/// Without memory, Debian's mimalloc ends a program instead of throwing.
fn of_mimalloc(test: &Context<'_>) -> Verdict {
    are_seen(test, MIMALLOC)
}

fn are_seen(test: &Context<'_>, library: &str) -> Verdict {
    if !Path::new(library).exists() {
        return skip(format!("there is no {library}"));
    }
    let program = compiled(test, "operators", PROGRAM, &[library])?;
    has_sums(test, &[&program], "")
}

/// Checks that all is seen that the program allocates, and that a sentence is printed, if one is expected.
fn has_sums(test: &Context<'_>, command: &[&str], printed: &str) -> Verdict {
    let recorded = test.record_command(command).options(&["--alloc", "--alloc-rate", "1"]).run_well()?;
    expect_contains("what is said", &recorded.finished.stderr, printed)?;
    let [total, live] = ["total", "live"].map(|event| self_sums(test, &recorded, event));
    let (total, live) = (total?, live?);
    for (function, of_total, of_live) in SUMS {
        let of = |sums: &BTreeMap<String, f64>| sums.get(function).copied().unwrap_or(0.0);
        expect_eq(&format!("{function}, in all"), of(&total), of_total)?;
        expect_eq(&format!("{function}, live"), of(&live), of_live)?;
    }
    Ok(())
}

/// An operator that throws does so for the program, and what follows is recorded.
fn throws(test: &Context<'_>, library: &str) -> Verdict {
    let program = compiled(test, "throws", PROGRAM, &[library])?;
    let recorded = test.record_command(&[&program, "x"]).options(&["--alloc", "--alloc-rate", "1"]).run()?;
    expect_eq("the status", recorded.finished.code(), 7)
}

/// Which allocator a shell's child has is not known before it runs. With the library in LD_PRELOAD it is.
fn not_seen(test: &Context<'_>) -> Verdict {
    const SENTENCE: &str = "C++'s `operator new` of 1 program was not seen";
    if !Path::new(JEMALLOC).exists() {
        return skip("there is no libjemalloc");
    }
    let program = compiled(test, "operators", PROGRAM, &[JEMALLOC])?;
    let script = format!("'{program}'; exit 0");
    let command = ["sh", "-c", &script];
    let recorded = test.record_command(&command).options(&["--alloc", "--alloc-rate", "1"]).run_well()?;
    expect_contains("what is said", &recorded.finished.stderr, SENTENCE)?;
    expect_contains("what is said", &recorded.finished.stderr, "the allocator's library in LD_PRELOAD")?;
    let seen = self_sums(test, &recorded, "total")?;
    expect_eq("what malloc has", seen.get("by_malloc(long)").copied(), Some(5e4))?;
    let preload = format!("LD_PRELOAD={JEMALLOC}");
    let command = [&preload, "sh", "-c", &script];
    let recorded = test.record_command(&command).options(&["--alloc", "--alloc-rate", "1"]).run_well()?;
    expect(!recorded.finished.stderr.contains("was not seen"), "the operators were not seen")?;
    has_sums(test, &command, "")
}

/// A program of C that loads a C++ library for itself alone, as Python does.
const HOST: &str = "#include <dlfcn.h>
extern \"C\" int printf(const char *, ...);
int main(int, char **args) {
    void *library = dlopen(args[1], RTLD_NOW | RTLD_LOCAL);
    if (!library) return 1;
    printf(\"%d\\n\", ((int (*)(void))dlsym(library, \"run\"))());
}
";

const LIBRARY: &str = "#include <stdexcept>
#include <string>
#include <vector>
__attribute__((noinline)) char *makes(int n) { char *p = new char[n]; *(volatile char *)p = 1; return p; }
struct alignas(128) Wide { char bytes[128]; };
extern \"C\" int run() {
    std::vector<std::string> all;
    for (int i = 0; i < 100; i++) { all.push_back(std::string(100, 'x')); delete[] makes(3000); delete new Wide; }
    try { throw std::runtime_error(all[5]); } catch (std::exception &it) { return std::string(it.what()).size(); }
}
";

/// The child of a program whose allocator has operators has none, and gets them from a library of its own.
fn of_child(test: &Context<'_>) -> Verdict {
    if !Path::new(JEMALLOC).exists() {
        return skip("there is no libjemalloc");
    }
    let program = compiled(test, "operators", PROGRAM, &[JEMALLOC])?;
    let library = compiled(test, "library.so", LIBRARY, &["-shared", "-fPIC"])?;
    // Without C++'s library, as a program of C.
    let host = compiled(test, "host", HOST, &["-nodefaultlibs", "-lc"])?;
    let command = [&program, &host, &library].map(String::as_str);
    let recorded = test.record_command(&command).options(&["--alloc", "--alloc-rate", "1"]).run_well()?;
    expect_eq("what it prints", recorded.finished.stdout_text().as_str(), "100\n")?;
    for (event, bytes) in [("total", 3e5), ("live", 0.0)] {
        let sums = self_sums(test, &recorded, event)?;
        let made = sums.get("makes(int)").copied().unwrap_or(0.0);
        expect_eq(&format!("{event} of the library"), made, bytes)?;
    }
    Ok(())
}
