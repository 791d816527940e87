//! What DHAT counts, and its files, which nyquist writes, too.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::Result;
use serde_json::Value;

use super::counted::Counted;
use super::names::site_of;
use super::tool::succeeded;
use crate::bench::alloc::bench::Bench;
use crate::bench::alloc::programs::Program;

/// A `realloc` that is a free, and an allocation by its caller. DHAT otherwise leaves the block at the stack that has
/// allocated it first. The two blocks are never there at once, as they are not for DHAT.
const REALLOC: &str = "#define _GNU_SOURCE
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
void *realloc(void *old, size_t size) {
    if (!old) return malloc(size);
    if (!size) { free(old); return NULL; }
    char small[16384], *copy = small;
    size_t length = malloc_usable_size(old);
    if (length > size) length = size;
    if (length > sizeof small) copy = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (copy == MAP_FAILED) abort();
    memcpy(copy, old, length);
    free(old);
    void *made = malloc(size);
    if (!made) abort();
    memcpy(made, copy, length);
    if (copy != small) munmap(copy, length);
    return made;
}
";

/// As DHAT counts.
pub(super) fn count(bench: &Bench<'_>, program: &Program) -> Result<Counted> {
    count_with(bench, program, None)
}

/// As it counts under the rule of nyquist and heaptrack: a `realloc` is a free, and an allocation by its caller.
pub(super) fn count_by_caller(bench: &Bench<'_>, program: &Program) -> Result<Counted> {
    let (source, library) = (bench.folder.join("realloc.c"), bench.folder.join("librealloc.so"));
    fs::write(&source, REALLOC)?;
    let mut compile = Command::new("gcc");
    // The compiler would make its own function of an allocation and a copy.
    compile.args(["-O1", "-fno-builtin", "-shared", "-fPIC", "-o"]).arg(&library).arg(&source);
    succeeded(&mut compile, "gcc")?;
    count_with(bench, program, Some(&library))
}

/// Counts with a library before the C library.
fn count_with(bench: &Bench<'_>, program: &Program, library: Option<&Path>) -> Result<Counted> {
    let file = bench.folder.join("dhat.out");
    let mut option = OsString::from("--dhat-out-file=");
    option.push(&file);
    let mut command = program.under("valgrind");
    // What the C library frees for valgrind alone, at the end, is live at the end.
    command.args(["--tool=dhat", "--num-callers=40", "--run-libc-freeres=no", "--run-cxx-freeres=no"]);
    if let Some(library) = library {
        // Otherwise its function would be replaced, too.
        command.arg("--soname-synonyms=somalloc=nouserintercepts").env("LD_PRELOAD", library);
    }
    succeeded(command.arg(option).args(&program.args), "valgrind")?;
    of_file(&file)
}

/// Whether it can be run.
pub(super) fn is_there() -> bool {
    Command::new("valgrind").arg("--version").output().is_ok()
}

/// The sums of a file.
pub(super) fn of_file(file: &Path) -> Result<Counted> {
    let json: Value = serde_json::from_str(&fs::read_to_string(file)?)?;
    let frames: Vec<&str> = json["ftbl"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let mut counted = Counted::default();
    for point in json["pps"].as_array().into_iter().flatten() {
        let indices = point["fs"].as_array().into_iter().flatten().filter_map(Value::as_u64);
        let stack = indices.filter_map(|index| frames.get(index as usize)).map(|frame| function_of(frame));
        counted.add(&site_of(stack), ["tb", "tbk", "gb", "eb"].map(|key| point[key].as_f64()));
    }
    Ok(counted)
}

/// The function of a frame such as `0x109166: keeps (t.c:2)`.
fn function_of(frame: &str) -> &str {
    let name = frame.split_once(": ").map_or(frame, |(_, rest)| rest);
    name.rsplit_once(" (").map_or(name, |(name, _)| name)
}
