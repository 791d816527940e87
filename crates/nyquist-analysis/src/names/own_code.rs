//! The program's own code: its functions without those of the libraries that it is built from.

use std::path::Path;

use nyquist_profile::{Func, Profile};

use crate::names::is_only_address;

/// Prefixes that the Firefox Profiler gives to paths of Rust's own source and of crates.
const OTHERS_SPECIAL_PATHS: [&str; 2] = ["git:github.com/rust-lang/rust:", "cargo:"];

/// Parts of the paths of source that was not written for the program: Rust's own and that of the crates which
/// its library uses, crates of registries and repositories, the system's.
const OTHERS_FILES: [&str; 7] = [
    "/rustc/",
    "/rust/deps/",
    "/.cargo/registry/",
    "/.cargo/git/",
    "/lib/rustlib/",
    "/usr/include/",
    "/usr/lib/",
];

/// Prefixes of the names of functions of Rust's own crates and of a program's startup code. They are used
/// if no file is known.
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

/// Whether a function belongs to a program's own code. It must be in the program itself. Its file, or
/// otherwise its name, must not belong to a language, a registry's crate or the system. `program` is the
/// program's file name.
pub fn is_own_code(name: &str, lib: Option<&str>, file: Option<&str>, program: &str) -> bool {
    // The name of an attached process comes from the kernel, which keeps only 15 bytes of it.
    let is_program = |lib: &str| lib == program || program.len() == 15 && lib.starts_with(program);
    if !lib.is_some_and(is_program) || is_only_address(name) {
        return false;
    }
    match file {
        Some(file) => {
            let is_special = OTHERS_SPECIAL_PATHS.iter().any(|start| file.starts_with(start));
            !is_special && !OTHERS_FILES.iter().any(|part| file.contains(part))
        }
        // Excludes the `main` that calls `app::main`, and linked code without debug info.
        None => name != "main" && !OTHERS_NAMES.iter().any(|start| name.starts_with(start)),
    }
}

/// The name of a program by its path.
pub(crate) fn file_name(program: &str) -> Option<&str> {
    Path::new(program).file_name()?.to_str()
}

/// For each function of a profile, whether it is of the recorded program's own code. O(functions).
pub fn own_functions(profile: &Profile) -> Vec<bool> {
    let Some(program) = file_name(&profile.meta().product) else {
        return vec![false; profile.funcs().len()];
    };
    let is_own = |func: &Func| {
        let lib = func.lib.map(|lib| &*profile.lib(lib).name);
        let file = func.source.map(|source| profile.string(profile.source(source).filename));
        is_own_code(profile.string(func.name), lib, file, program)
    };
    profile.funcs().iter().map(is_own).collect()
}
