//! The program's own code: its own functions, without those of the libraries that it is built from.

use std::path::Path;

use nyquist_profile::{Func, Profile};

use crate::names::is_only_address;

/// How the Firefox Profiler names files of Rust's own source and of crates.
const OTHERS_SPECIAL_PATHS: [&str; 2] = ["git:github.com/rust-lang/rust:", "cargo:"];

/// Where source is that was not written for the program: Rust's own, crates of registries and repositories, the
/// system's.
const OTHERS_FILES: [&str; 6] =
    ["/rustc/", "/.cargo/registry/", "/.cargo/git/", "/lib/rustlib/", "/usr/include/", "/usr/lib/"];

/// How functions of Rust's own crates and of a program's start are called, where no file says whose they are.
const OTHERS_NAMES: [&str; 16] = [
    "core::",
    "alloc::",
    "std::",
    "hashbrown::",
    "<core::",
    "<alloc::",
    "<std::",
    "<hashbrown::",
    "__",
    "_start",
    "<str",
    "<[",
    "<&",
    "_fini",
    "_init",
    "(truncated",
];

/// Whether a function is of a program's own code. It is in the program itself, and its file, or otherwise its
/// name, does not belong to a language, a registry's crate or the system. `program` is the program's file name.
pub fn is_own_code(name: &str, lib: Option<&str>, file: Option<&str>, program: &str) -> bool {
    // The kernel keeps 15 bytes of the name of a process that is attached to.
    let is_program = |lib: &str| lib == program || program.len() == 15 && lib.starts_with(program);
    if !lib.is_some_and(is_program) || is_only_address(name) {
        return false;
    }
    match file {
        Some(file) => {
            let is_special = OTHERS_SPECIAL_PATHS.iter().any(|start| file.starts_with(start));
            !is_special && !OTHERS_FILES.iter().any(|part| file.contains(part))
        }
        // The `main` that calls `app::main`, and what is linked in without debug info.
        None => name != "main" && !OTHERS_NAMES.iter().any(|start| name.starts_with(start)),
    }
}

/// For each function of a profile, whether it is of the recorded program's own code. O(functions).
pub fn own_functions(profile: &Profile) -> Vec<bool> {
    let product = Path::new(&profile.meta().product);
    let Some(program) = product.file_name().and_then(|name| name.to_str()) else {
        return vec![false; profile.funcs().len()];
    };
    let is_own = |func: &Func| {
        let lib = func.lib.map(|lib| &*profile.lib(lib).name);
        let file = func.source.map(|source| profile.string(profile.source(source).filename));
        is_own_code(profile.string(func.name), lib, file, program)
    };
    profile.funcs().iter().map(is_own).collect()
}
