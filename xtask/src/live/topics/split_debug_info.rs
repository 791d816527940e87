//! Debug info that compilers write into separate files (split DWARF): single `.dwo` files and `.dwp`
//! packages.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::cargo::{BUSY, cargo_nyquist, manifest};
use super::context::Context;
use super::expect::{Verdict, expect, expect_contains, need_root, skip};
use super::profile::Profile;
use super::test::Test;
use super::tool_chain::with_tool_chain;

pub(super) const TESTS: &[Test] = &[
    Test::new("a_package_of_split_debug_info_is_used", package).quick(),
    Test::new("rusts_split_debug_info_is_used", rust),
    Test::new("cargo_nyquist_uses_split_debug_info", by_cargo),
    Test::new("split_debug_info_in_another_root_is_used", in_another_root),
];

/// The source of a program with an inlined function, whose name is only in the debug info.
fn source(inlined: &str) -> String {
    format!(
        "#include <time.h>\n\
         static inline __attribute__((always_inline)) unsigned long {inlined}(unsigned long n) {{\n\
         \x20   for (int i = 0; i < 20000; i++) n = (n ^ (n >> 7)) * 0x9E3779B97F4A7C15ul;\n\
         \x20   return n;\n}}\n\
         __attribute__((noinline)) unsigned long compute(void) {{\n\
         \x20   unsigned long sum = 0;\n\
         \x20   while (clock() < CLOCKS_PER_SEC / 4) sum ^= {inlined}(sum + 1);\n\
         \x20   return sum;\n}}\n\
         int main(void) {{ return compute() == 1; }}\n"
    )
}

fn succeeds(folder: &Path, args: &[&str]) -> Result<()> {
    let status = Command::new(args[0]).args(&args[1..]).current_dir(folder).status();
    let status = status.with_context(|| format!("cannot start {}", args[0]))?;
    ensure!(status.success(), "{args:?} failed ({status})");
    Ok(())
}

/// The name of a program that makes packages.
fn packer() -> Option<&'static str> {
    let is_there =
        |name: &&str| Command::new(name).arg("--version").output().is_ok_and(|it| it.status.success());
    ["dwp", "llvm-dwp"].into_iter().find(is_there)
}

/// Compiles a program in a folder of the test. Its `.dwo` file is in `objects` there. Old packers do not
/// support version 5.
fn compiled(test: &Context<'_>, folder: &str, inlined: &str) -> Result<PathBuf> {
    let folder = test.path(folder);
    fs::create_dir_all(folder.join("objects"))?;
    fs::write(folder.join("in.c"), source(inlined))?;
    succeeds(
        &folder,
        &["gcc", "-O2", "-g", "-gdwarf-4", "-gsplit-dwarf", "-c", "in.c", "-o", "objects/in.o"],
    )?;
    succeeds(&folder, &["gcc", "objects/in.o", "-o", "split"])?;
    Ok(folder)
}

/// Whether a recording of the program has the inlined function's name, and the messages of `-v`.
fn is_named(test: &Context<'_>, program: &Path, inlined: &str, options: &[&str]) -> Result<(bool, String)> {
    let options = [&["--no-cache", "-v"], options].concat();
    let recorded = test.record_command(&[&program.display().to_string()]).options(&options).run_well()?;
    let is_it = |name: &str| name == inlined || name.ends_with(&format!("::{inlined}"));
    let frame = recorded.profile.frame_of(|frame| is_it(&frame.function) && frame.inline_depth > 0);
    Ok((frame.is_some(), recorded.finished.stderr))
}

fn package(test: &Context<'_>) -> Verdict {
    const IN_PACKAGE: &str = "that was split off is in a package";
    let Some(packer) = packer() else { return skip("there is neither dwp nor llvm-dwp") };
    let folder = compiled(test, "packed", "scramble")?;
    let program = folder.join("split");
    let doctor = || -> Result<String> {
        Ok(test.nyquist(&["doctor"]).path(&program).run()?.succeeded()?.stdout_text())
    };
    succeeds(&folder, &["timeout", "60", packer, "-e", "split", "-o", "split.dwp"])?;
    fs::rename(folder.join("objects"), folder.join("gone"))?;
    expect(is_named(test, &program, "scramble", &[])?.0, "the package beside the program is not used")?;
    expect_contains("with the package", &doctor()?, IN_PACKAGE)?;
    // The package is in a folder that an option names.
    let symbols = test.path("symbols");
    fs::create_dir_all(&symbols)?;
    fs::rename(folder.join("split.dwp"), symbols.join("split.dwp"))?;
    expect(!is_named(test, &program, "scramble", &[])?.0, "there is a name although the package is gone")?;
    let symbols = symbols.display().to_string();
    let named = is_named(test, &program, "scramble", &["--symbol-dir", &symbols])?.0;
    expect(named, "the package in --symbol-dir is not used")?;
    // The package belongs to another program.
    let other = compiled(test, "other", "stir")?;
    succeeds(&other, &["timeout", "60", packer, "-e", "split", "-o", "split.dwp"])?;
    fs::copy(other.join("split.dwp"), folder.join("split.dwp"))?;
    let (_, messages) = is_named(test, &program, "stir", &[])?;
    expect_contains("of another program's package", &messages, "split.dwp: another file (none of the units")?;
    expect(!doctor()?.contains(IN_PACKAGE), "doctor says that a package is used which is another program's")?;
    // The single file lies beside the program.
    fs::remove_file(folder.join("split.dwp"))?;
    fs::copy(folder.join("gone/in.dwo"), folder.join("in.dwo"))?;
    expect(is_named(test, &program, "scramble", &[])?.0, "the .dwo file beside the program is not used")
}

/// Tests both forms of split debug info that rustc makes: packed and unpacked.
fn rust(test: &Context<'_>) -> Verdict {
    for kind in ["packed", "unpacked"] {
        let folder = test.path(kind);
        fs::create_dir_all(&folder)?;
        fs::write(
            folder.join("busy.rs"),
            format!("{BUSY}\nfn main() {{ println!(\"{{}}\", compute(600_000)); }}\n"),
        )?;
        let split = format!("split-debuginfo={kind}");
        let rustc = with_tool_chain(test, test.program("rustc"));
        let rustc = rustc.args(&["-g", "-C", "opt-level=2", "-C", &split, "--out-dir"]).path(&folder);
        rustc.path(&folder.join("busy.rs")).run()?.succeeded()?;
        let (named, messages) = is_named(test, &folder.join("busy"), "scramble", &[])?;
        expect(named, format_args!("{kind}: the inlined function has no name: {messages}"))?;
    }
    Ok(())
}

fn by_cargo(test: &Context<'_>) -> Verdict {
    for kind in ["packed", "unpacked"] {
        let profile = format!("[profile.release]\nsplit-debuginfo = \"{kind}\"\n");
        fs::create_dir_all(test.path("src"))?;
        fs::write(test.path("Cargo.toml"), manifest("demo", &profile))?;
        fs::write(
            test.path("src/main.rs"),
            format!("{BUSY}\nfn main() {{ println!(\"{{}}\", compute(600_000)); }}\n"),
        )?;
        let file = test.fresh("profile.json.gz");
        cargo_nyquist(test, &["-s", "--no-cache", "-o"]).path(&file).run()?.succeeded()?;
        let frame = Profile::read(&file)?
            .frame_of(|frame| frame.function == "demo::scramble" && frame.inline_depth > 0);
        expect(frame.is_some(), format_args!("{kind}: the inlined function has no name"))?;
    }
    Ok(())
}

/// The split debug info is at a path in another root folder, which the recorder does not see.
fn in_another_root(test: &Context<'_>) -> Verdict {
    need_root()?;
    let folder = compiled(test, "elsewhere", "whirl")?;
    let (seen, program) = (folder.display(), folder.join("split"));
    // The program mounts the folder at a path where the recorder sees an empty folder.
    let retained = test.path("kept");
    fs::rename(&folder, &retained)?;
    fs::create_dir(&folder)?;
    let script = format!("mount --bind {} {seen} && exec {}", retained.display(), program.display());
    let args = ["unshare", "-m", "sh", "-c", &script];
    let recorded = test.record_command(&args).options(&["--no-cache", "-v"]).run_well()?;
    let frame = recorded.profile.frame_of(|frame| frame.function == "whirl" && frame.inline_depth > 0);
    expect(frame.is_some(), &recorded.finished.stderr)
}
