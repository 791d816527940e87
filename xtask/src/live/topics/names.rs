//! Names: inlined functions and lines, mangling, separate debug files, stripped programs, kernel symbols.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;
use serde_json::Value;

use super::context::Context;
use super::expect::{
    Stop, Verdict, expect, expect_contains, expect_eq, expect_measured, expect_share, need_root, with_note,
};
use super::profile::{Frame, Profile};
use super::recorded::Recorded;
use super::test::{SHARES, Test};

pub(super) const TESTS: &[Test] = &[
    Test::new("inlined_functions_and_lines_are_in_order", |test| inlines(test, "inlines-v0"))
        .quick()
        .in_pairs(SHARES)
        .everywhere(),
    Test::new("old_mangling_has_inlines_and_lines_in_order", |test| inlines(test, "inlines-legacy"))
        .in_pairs(SHARES),
    Test::new("rust_generics_are_demangled", |test| generics(test, "inlines-v0")).in_pairs(SHARES),
    Test::new("rust_generics_are_demangled_from_old_mangling", |test| generics(test, "inlines-legacy"))
        .in_pairs(SHARES),
    Test::new("cpp_names_are_demangled", |test| cpp(test, "names")).in_pairs(SHARES),
    Test::new("members_in_type_units_have_names_and_lines", |test| {
        cpp(test, "names-types4")?;
        cpp(test, "names-types5")
    })
    .in_pairs(SHARES),
    Test::new("inlined_names_of_cpp_have_their_scopes", inlined_cpp).in_pairs(SHARES),
    Test::new("lines_and_files_are_there_in_dwarf_4", |test| lines(test, "shares-dwarf4")).in_pairs(SHARES),
    Test::new("lines_and_files_are_there_in_dwarf_5", |test| lines(test, "shares"))
        .quick()
        .in_pairs(SHARES)
        .everywhere(),
    Test::new("compressed_sections_give_lines_and_files", |test| lines(test, "shares-compressed"))
        .in_pairs(SHARES),
    Test::new("lines_and_files_are_there_by_debug_link", |test| lines(test, "shares-debuglink"))
        .in_pairs(SHARES),
    Test::new("lines_and_files_are_there_by_build_id", by_build_id).in_pairs(SHARES),
    Test::new("a_debug_file_of_another_build_is_not_used", foreign_debug_file).in_pairs(SHARES),
    Test::new("a_stripped_program_has_its_lib_and_addresses", stripped).in_pairs(SHARES),
    Test::new("libc_functions_have_names", libc_names).in_pairs(SHARES),
    Test::new("kernel_functions_have_names", kernel_names).in_pairs(SHARES),
    Test::new("kernel_functions_have_lines_by_debug_info", kernel_lines).in_pairs(SHARES),
    Test::new("bpf_programs_have_names", bpf_names).in_pairs(SHARES),
    Test::new("a_function_including_its_body_is_one_function", included_body).quick().in_pairs(SHARES),
];

/// The line of `inlines.rs` that has this marker.
fn marked_line(marker: &str) -> Result<u64, anyhow::Error> {
    let text = fs::read_to_string(crate::paths::root().join("workloads/inlines.rs"))?;
    let marker = format!("// line: {marker}");
    let line = text.lines().position(|line| line.trim_end().ends_with(&marker));
    line.map(|index| index as u64 + 1).ok_or_else(|| anyhow::anyhow!("no line is marked {marker:?}"))
}

fn inlines(test: &Context<'_>, workload: &str) -> Verdict {
    let recorded = test.record(&[workload, "1000"]).run_well()?;
    let spin = marked_line("spin")?;
    let chain = [
        ("inlines::outer_frame", 0, Some(marked_line("middle_inline")?)),
        ("inlines::middle_inline", 1, Some(marked_line("deepest_inline")?)),
        ("inlines::deepest_inline", 2, None),
    ];
    let in_chain = |stack: &[&Frame]| {
        let start = stack.iter().position(|frame| frame.function == chain[0].0);
        let frames = start.and_then(|start| stack.get(start..start + chain.len()));
        let fits = |(frame, (name, depth, line)): (&&Frame, &(&str, u64, Option<u64>))| {
            frame.function == *name && frame.inline_depth == *depth && (line.is_none() || frame.line == *line)
        };
        frames.is_some_and(|frames| frames.iter().zip(&chain).all(fits))
    };
    let held = recorded.profile.share_of_stacks(in_chain);
    let expected = recorded.true_share("outer_frame")?;
    expect_share("the inlined chain", held, expected, recorded.profile.count())?;
    // The line is the loop's head, into which the counting is inlined, or the loop's body, two lines below.
    let near = |frame: &Frame| frame.line.is_some_and(|line| (spin..=spin + 2).contains(&line));
    let spinning = recorded.profile.share_of_stacks(|stack| {
        stack.iter().any(|frame| frame.function == "inlines::deepest_inline" && near(frame))
    });
    expect_share("the innermost line", spinning, expected, recorded.profile.count())?;
    let same = recorded.profile.stacks().all(|(stack, _)| inlined_share_addresses(&stack));
    expect(same, "an inlined frame has another address than the function that holds it")
}

fn inlined_share_addresses(stack: &[&Frame]) -> bool {
    stack.windows(2).all(|two| two[1].inline_depth == 0 || two[0].address == two[1].address)
}

fn generics(test: &Context<'_>, workload: &str) -> Verdict {
    let recorded = test.record(&[workload, "600"]).run_well()?;
    let share = recorded.profile.share_with(|frame| {
        let name = &frame.function;
        name.starts_with("<inlines::Square<") && name.ends_with("as inlines::Shape>::area")
    });
    let names = recorded.profile.functions();
    let verdict = expect_share("area", share, recorded.true_share("area")?, recorded.profile.count());
    with_note(verdict, format_args!("functions: {:?}", names.keys()))?;
    no_mangled_names(&recorded.profile)
}

fn no_mangled_names(profile: &Profile) -> Verdict {
    let functions = profile.functions();
    let mangled = functions.keys().find(|name| name.starts_with("_R") || name.starts_with("_ZN"));
    expect(mangled.is_none(), format_args!("mangled: {mangled:?}"))
}

fn cpp(test: &Context<'_>, workload: &str) -> Verdict {
    let recorded = test.record(&[workload, "1000"]).run_well()?;
    let expected = [
        ("sort_items", "shop::Shelf<std::pair<int, double> >::sort_items(long)"),
        ("operator()", "shop::Shelf<std::pair<int, double> >::operator()(long)"),
        ("price(int)", "shop::price(int, long)"),
        ("price(string)", "shop::price(std::"),
        ("lambda", "main::{lambda(long)#1}::operator()(long) const"),
    ];
    let functions = recorded.profile.functions();
    for (part, name) in expected {
        let plain = |text: &str| text.replace(' ', "");
        let share = recorded.profile.share_with(|frame| plain(&frame.function).starts_with(&plain(name)));
        let verdict = expect_share(part, share, recorded.true_share(part)?, recorded.profile.count());
        with_note(verdict, format_args!("functions: {:?}", functions.keys()))?;
    }
    let own = |frame: &Frame| {
        let file = frame.file.as_deref().is_some_and(|file| file.ends_with("/names.cpp"));
        frame.function.starts_with("shop::Shelf") && file && frame.line.is_some()
    };
    expect(recorded.profile.frame_of(own).is_some(), "members of the class have no lines")?;
    no_mangled_names(&recorded.profile)
}

/// gcc writes no linkage name for these functions into the debug info.
fn inlined_cpp(test: &Context<'_>) -> Verdict {
    let (program, source) = (test.fresh("scopes"), test.fresh("scopes.cpp"));
    let text = "\
#define INLINE __attribute__((always_inline))
volatile long n;
namespace shop {
namespace {
struct Shelf { INLINE long hidden(long turns) { for (long i = 0; i < turns; i++) n += i; return n; } };
}
template <typename Work> INLINE long apply(Work work) { for (long i = 0; i < 100000000; i++) n += i; return work(); }
}
int main() {
    auto first = []() INLINE { for (long i = 0; i < 100000000; i++) n += i; return n; };
    auto second = []() INLINE { for (long i = 0; i < 100000000; i++) n ^= i; return n; };
    return (shop::Shelf().hidden(100000000) + shop::apply(first) + second()) == 7;
}
";
    fs::write(&source, text)?;
    let (program, source) = (program.display().to_string(), source.display().to_string());
    for format in [&["-gdwarf-5"][..], &["-gdwarf-4"], &["-gdwarf-4", "-fdebug-types-section"]] {
        let options = ["-O1", "-w", "-o", &program, &source];
        test.program("g++").args(format).args(&options).run()?.succeeded()?;
        let recorded = test.record_command(&[&program]).run_well()?;
        let functions = recorded.profile.functions();
        for name in [
            "shop::(anonymous namespace)::Shelf::hidden",
            "shop::apply<main()::<lambda()> >",
            "main::{lambda:10}::operator()",
            "main::{lambda:11}::operator()",
        ] {
            let is_there = functions.contains_key(name);
            expect(is_there, format_args!("{format:?}: no {name} in {:?}", functions.keys()))?;
        }
    }
    Ok(())
}

fn lines(test: &Context<'_>, workload: &str) -> Verdict {
    let recorded = test.record(&[workload, "500"]).run_well()?;
    expect_lines(&recorded)
}

/// Checks the file and the lines of the three functions.
pub(super) fn expect_lines(recorded: &Recorded) -> Verdict {
    let text = fs::read_to_string(crate::paths::root().join("workloads/shares.c"))?;
    for name in ["alpha", "beta", "gamma_"] {
        let line = text
            .lines()
            .position(|line| line.contains(&format!("void {name}(")))
            .map(|index| index as u64 + 1);
        let at_line = recorded.profile.share_with(|frame| {
            let in_file = frame.file.as_deref().is_some_and(|file| file.ends_with("workloads/shares.c"));
            frame.function == name && frame.line == line && in_file
        });
        expect_share(name, at_line, recorded.true_share(name)?, recorded.profile.count())?;
    }
    Ok(())
}

/// A file that exists at a path for the duration of a test.
struct Installed(PathBuf);

impl Installed {
    fn copy(from: &Path, to: PathBuf) -> anyhow::Result<Self> {
        if let Some(folder) = to.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::copy(from, &to)?;
        Ok(Self(to))
    }
}

impl Drop for Installed {
    fn drop(&mut self) {
        drop(fs::remove_file(&self.0));
    }
}

fn by_build_id(test: &Context<'_>) -> Verdict {
    need_root()?;
    let id = crate::workloads::build_id(&test.workload("shares-build-id"))?;
    let name = format!(".build-id/{}/{}.debug", &id[..2], &id[2..]);
    let _installed = Installed::copy(&test.workload(&name), Path::new("/usr/lib/debug").join(&name))?;
    lines(test, "shares-build-id")
}

/// A stripped program with a debug file that has the right name, but comes from another build. Names from
/// that file would be wrong.
fn foreign_debug_file(test: &Context<'_>) -> Verdict {
    let folder = test.path("foreign");
    let program = folder.join("shares-debuglink");
    let _program = Installed::copy(&test.workload("shares-debuglink"), program.clone())?;
    let foreign = test.workload("shares-O0");
    let _debug = Installed::copy(&foreign, folder.join(".debug/shares-debuglink.debug"))?;
    let recorded = test.record_command(&[&program.display().to_string(), "200"]).run_well()?;
    let named: Vec<String> =
        recorded.profile.functions().into_keys().filter(|name| name == "alpha").collect();
    expect(named.is_empty(), "names come from a debug file whose checksum differs")
}

fn stripped(test: &Context<'_>) -> Verdict {
    let recorded = test.record(&["shares-stripped", "500"]).run_well()?;
    let own = |frame: &&Frame| frame.lib.as_deref() == Some("shares-stripped");
    let inner = recorded.profile.share_of_stacks(|stack| stack.last().is_some_and(own));
    expect_measured(
        inner > 0.9,
        format_args!("{inner:.3} of the samples are in the stripped program itself"),
    )?;
    let functions = recorded.profile.functions();
    expect(!functions.contains_key("alpha"), "a stripped program has no name alpha")?;
    // Three functions stay distinct. Each has a hexadecimal address or a name made from it.
    let leaves = recorded.profile.stacks().filter_map(|(stack, _)| stack.last().map(|frame| frame.address));
    let mut leaves: Vec<i64> = leaves.collect();
    leaves.sort_unstable();
    leaves.dedup();
    expect(leaves.len() >= 3 && leaves[leaves.len() - 1] > 0, format_args!("the addresses are {leaves:?}"))?;
    let nameless = recorded.profile.frame_of(|frame| frame.function.is_empty());
    expect(nameless.is_none(), "a frame has an empty name")
}

fn libc_names(test: &Context<'_>) -> Verdict {
    let recorded = test.record(&["shares", "500"]).run_well()?;
    let frame = recorded.profile.frame_of(|frame| frame.function.starts_with("__libc_start_main"));
    expect_eq("its lib", frame.and_then(|frame| frame.lib), Some("libc.so.6".to_owned()))
}

fn kernel_names(test: &Context<'_>) -> Verdict {
    need_root()?;
    let recorded = test.record(&["kernel_heavy", "500", "getpid"]).run_well()?;
    let in_kernel = recorded.profile.share_with(|frame| frame.category == "Kernel");
    expect_measured(in_kernel > 0.2, format_args!("only {in_kernel:.3} of the samples are in the kernel"))?;
    let named =
        recorded.profile.share_with(|frame| frame.category == "Kernel" && frame.function == "do_syscall_64");
    expect_measured(
        named > 0.5 * in_kernel,
        format_args!("{named:.3} of {in_kernel:.3} have do_syscall_64"),
    )?;
    let numbers =
        recorded.profile.share_with(|frame| frame.category == "Kernel" && frame.function.starts_with("0x"));
    expect_measured(numbers < 0.01, format_args!("{numbers:.3} have a kernel frame without a name"))
}

/// A `vmlinux` with the build id of the running kernel. It has lines for `do_syscall_64` at the same offset
/// as in the kernel, but at other addresses.
fn made_up_vmlinux(folder: &Path) -> Result<(), Stop> {
    let kallsyms = fs::read_to_string("/proc/kallsyms")?;
    let symbols = || {
        let address = |word| u64::from_str_radix(word, 16).ok();
        kallsyms.lines().filter_map(move |line| Some((address(line.get(..16)?)?, line.get(19..)?)))
    };
    let find = |name| symbols().find(|(address, symbol)| *symbol == name && *address != 0);
    let (Some((start, _)), Some((call, _))) = (find("_stext"), find("do_syscall_64")) else {
        return Err(Stop::Skipped("the kernel hides its addresses".to_owned()));
    };
    let end = symbols().map(|(address, _)| address).filter(|&address| address > call).min().unwrap_or(call);
    let notes = fs::read("/sys/kernel/notes")?;
    let name = b"GNU\0";
    let at = notes.windows(8).position(|word| word == [&3_u32.to_le_bytes()[..], name].concat());
    let id = at.and_then(|at| notes.get(at + 8..at + 28)).context("the kernel has no build id")?;
    let id: Vec<_> = id.iter().map(|byte| format!("{byte:02x}")).collect();
    // All code of the function belongs to one line.
    let source = format!(
        "void _stext(void) {{}}\n#line 4711 \"/made/up/made_up.c\"\n__attribute__((naked, section(\".call\"))) void \
         do_syscall_64(void) {{ __asm__(\".fill {}, 1, 0x90\"); }}\n",
        end - call
    );
    fs::create_dir_all(folder)?;
    fs::write(folder.join("vmlinux.c"), source)?;
    let base = 0xffff_ffff_9300_0000_u64;
    let built = Command::new("gcc")
        .args([
            "-g",
            "-O1",
            "-nostdlib",
            "-static",
            "-no-pie",
            "-fno-pie",
            "-fcf-protection=none",
            "-Wl,-e,_stext",
        ])
        .arg(format!("-Wl,-Ttext={base:#x}"))
        .arg(format!("-Wl,--section-start=.call={:#x}", base + (call - start)))
        .arg(format!("-Wl,--build-id=0x{}", id.concat()))
        .current_dir(folder)
        .args(["-o", "vmlinux", "vmlinux.c"])
        .output()
        .context("cannot start gcc")?;
    let messages = String::from_utf8_lossy(&built.stderr).into_owned();
    expect(built.status.success(), format_args!("gcc: {messages}"))
}

fn kernel_lines(test: &Context<'_>) -> Verdict {
    need_root()?;
    let folder = test.path("kernel");
    made_up_vmlinux(&folder)?;
    let recorded = test
        .record(&["kernel_heavy", "500", "getpid"])
        .options(&["-v", "--symbol-dir", &folder.display().to_string()])
        .run_well()?;
    let message = format!("symbols from {}", folder.join("vmlinux").display());
    expect_contains("the messages of -v", &recorded.finished.stderr, &message)?;
    let share = |has_line: bool| {
        recorded.profile.share_with(|frame| {
            let line = frame.line == Some(4711) && frame.file.as_deref() == Some("/made/up/made_up.c");
            frame.function == "do_syscall_64" && (line || !has_line)
        })
    };
    expect_measured(share(false) > 0.1, "no samples are in do_syscall_64")?;
    expect_eq("the samples with do_syscall_64 that have its line", share(true), share(false))?;
    let numbers =
        recorded.profile.share_with(|frame| frame.category == "Kernel" && frame.function.starts_with("0x"));
    expect_measured(numbers < 0.01, format_args!("{numbers:.3} have a kernel frame without a name"))
}

fn bpf_names(test: &Context<'_>) -> Verdict {
    need_root()?;
    let probe = Command::new(test.workload("bpf_program")).arg("1").status().context("cannot start it")?;
    if probe.code() == Some(77) {
        return Err(Stop::Skipped("this kernel loads no BPF programs".to_owned()));
    }
    let recorded = test.record(&["bpf_program", "500"]).run_well()?;
    let is_program = |name: &str| {
        let tag = name.strip_prefix("bpf_prog_").and_then(|rest| rest.strip_suffix("_spin"));
        tag.is_some_and(|tag| tag.len() == 16 && tag.bytes().all(|digit| digit.is_ascii_hexdigit()))
    };
    let share = recorded.profile.share_with(|frame| is_program(&frame.function));
    let names = recorded.profile.functions();
    expect_measured(share > 0.7, format_args!("{share:.3} are in the program; functions: {:?}", names.keys()))
}

/// If the body of a function is in two files, its lines belong to one function, each with its own file.
fn included_body(test: &Context<'_>) -> Verdict {
    let folder = test.path("included");
    fs::create_dir_all(&folder)?;
    let spin = "for (unsigned long i = 0; i < 200000000; i++) n += i;";
    fs::write(folder.join("body.inc"), format!("\n\n\n\n\n\n{spin}\n"))?;
    let source = format!(
        "static volatile unsigned long n;\n__attribute__((noinline)) void work(void) {{\n{spin}\n#include \"body.inc\"\n}}\n\
         int main(void) {{ work(); return 0; }}\n"
    );
    fs::write(folder.join("program.c"), source)?;
    let built = Command::new("gcc")
        .args(["-g", "-O1", "-o", "program", "program.c"])
        .current_dir(&folder)
        .status()
        .context("cannot start gcc")?;
    expect(built.success(), "gcc failed")?;
    let recorded = test.record_command(&[&folder.join("program").display().to_string()]).run_well()?;
    let ask = |question: &[&str]| -> Result<Value, Stop> {
        let call = test.nyquist(&["report", "--json"]).args(question).path(&recorded.path);
        Ok(serde_json::from_str(&call.run()?.succeeded()?.stdout_text())?)
    };
    let rows = |report: &Value, member: &str, fits: &dyn Fn(&Value) -> bool| -> Vec<Value> {
        report[member].as_array().into_iter().flatten().filter(|row| fits(row)).cloned().collect()
    };
    let functions = ask(&[])?;
    let found = rows(&functions, "functions", &|row| row["function"] == "work");
    expect_eq("how many functions are called work", found.len(), 1)?;
    expect_contains("its file", found[0]["file"].as_str().unwrap_or_default(), "program.c")?;
    let lines = ask(&["--lines"])?;
    for (name, line) in [("program.c", 3), ("body.inc", 7)] {
        let is_there = |row: &Value| {
            row["line"] == line && row["file"].as_str().is_some_and(|file| file.ends_with(name))
        };
        let found = rows(&lines, "lines", &is_there);
        expect(!found.is_empty(), format_args!("no samples are at {name}:{line}: {lines}"))?;
    }
    Ok(())
}
