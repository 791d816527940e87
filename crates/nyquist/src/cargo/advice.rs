//! Settings that a build needs for a useful profile, with the lines to add.

use super::build::Built;
use super::launch::Launch;
use crate::args::Verbosity;
use crate::printer::Printer;
use nyquist_object::{Elf, FileSource};
use std::fs::File;
use std::path::Path;

/// Warns about a program without optimisation or without debug info.
pub(super) fn give(built: &Built, launch: &Launch, profile: &str) {
    let printer = Printer::new(Verbosity::default());
    let program = built.program(launch);
    let unoptimised = program.is_some_and(|program| program.profile.opt_level == "0");
    for line in advice(&built.target_name(launch), profile, unoptimised, has_debug_info(&launch.program())) {
        printer.warn(line);
    }
}

fn advice(name: &str, profile: &str, unoptimised: bool, debug_info: bool) -> Vec<String> {
    let mut lines = Vec::new();
    if unoptimised {
        lines.push(format!(
            "`{name}` is built without optimisation (profile `{profile}`): it spends its time elsewhere than a \
             released program does. Leave out `--profile {profile}`, or add to Cargo.toml:\n  \
             [profile.{profile}]\n  opt-level = 3"
        ));
    }
    if !debug_info {
        lines.push(format!(
            "`{name}` has no debug info, so inlined functions, files and lines are missing. A flag of rustc or of \
             the linker takes it out, such as `-C strip`, `-C debuginfo=0` or `-C link-arg=-s` in RUSTFLAGS or in \
             .cargo/config.toml: remove it there. To have it in all builds, add to Cargo.toml:\n  \
             [profile.{profile}]\n  debug = \"limited\"\n  strip = false"
        ));
    }
    lines
}

/// Whether the file has lines and functions, or a reference to them. A file that cannot be read gets no
/// warning here.
fn has_debug_info(program: &Path) -> bool {
    let elf = File::open(program).ok().and_then(|file| Elf::open(FileSource::new(file)).ok());
    elf.is_none_or(|elf| elf.section(".debug_info").is_some() && elf.section(".debug_line").is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_good_build_needs_no_advice() {
        assert!(advice("app", "release", false, true).is_empty());
    }

    #[test]
    fn each_defect_comes_with_the_lines_that_mend_it() {
        let lines = advice("app", "dev", true, false);
        assert!(lines[0].contains("[profile.dev]\n  opt-level = 3"));
        assert!(lines[1].contains("[profile.dev]\n  debug = \"limited\"\n  strip = false"));
    }

    #[test]
    fn this_very_program_has_debug_info() {
        assert!(has_debug_info(&std::env::current_exe().unwrap()));
    }
}
