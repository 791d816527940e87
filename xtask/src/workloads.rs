//! The table of workloads, and how each is built.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use anyhow::{Context as _, Result, bail};

/// A program to be built.
#[derive(Clone, Copy)]
struct Workload {
    /// The built file's name.
    name: &'static str,
    /// The compiler.
    compiler: Compiler,
    /// The sources, in `workloads/`, and the compiler flags of this program.
    arguments: &'static str,
    /// What is done with the built file.
    after: After,
}

#[derive(Clone, Copy)]
enum Compiler {
    C,
    Cpp,
    Rust,
}

#[derive(Clone, Copy)]
enum After {
    Nothing,
    /// Removes symbols and debug info.
    Strip,
    /// Moves debug info to `.debug/NAME.debug`, which a debug link names.
    DebugLink,
    /// Moves debug info to `.build-id/xx/yyyy.debug`, which only the build id leads to.
    BuildId,
}

const fn c(name: &'static str, arguments: &'static str) -> Workload {
    Workload { name, compiler: Compiler::C, arguments, after: After::Nothing }
}

const fn cpp(name: &'static str, arguments: &'static str) -> Workload {
    Workload { name, compiler: Compiler::Cpp, arguments, after: After::Nothing }
}

const fn rust(name: &'static str, arguments: &'static str) -> Workload {
    Workload { name, compiler: Compiler::Rust, arguments, after: After::Nothing }
}

const fn then(workload: Workload, after: After) -> Workload {
    Workload { after, ..workload }
}

/// Two libraries with the same build id, whose functions have different names.
const NAMESAKE: &str = "-shared -fPIC -Wl,--build-id=0x00112233445566778899aabbccddeeff00112233 plugin.c";
const FORGED: &str = "-shared -fPIC -Wl,--build-id=0x00112233445566778899aabbccddeeff00112233 -Dplugin_inner=other_inner plugin.c";

/// Builds without unwind information and frame pointers.
const NO_CFI: &str = "-fomit-frame-pointer -fno-asynchronous-unwind-tables -fno-unwind-tables -g0 shares.c";

const WORKLOADS: &[Workload] = &[
    c("shares", "shares.c"),
    c("documented", "-pthread documented.c"),
    c("parts", "parts.c"),
    c("shares-O0", "-O0 shares.c"),
    c("shares-fp", "-fno-omit-frame-pointer shares.c"),
    c(
        "shares-fp-no-cfi",
        "-fno-omit-frame-pointer -fno-asynchronous-unwind-tables -fno-unwind-tables -g0 shares.c",
    ),
    c("shares-no-cfi", NO_CFI),
    then(c("shares-no-cfi-stripped", NO_CFI), After::Strip),
    c("shares-debug-frame", "-fno-asynchronous-unwind-tables -fno-unwind-tables shares.c"),
    c("shares-no-pie", "-no-pie shares.c"),
    c("shares-static", "-static shares.c"),
    c("shares-static-pie", "-static-pie shares.c"),
    c("shares-dwarf4", "-gdwarf-4 shares.c"),
    c("shares-compressed", "-gz=zlib shares.c"),
    c("shares-no-hash-header", "-Wl,--no-eh-frame-hdr shares.c"),
    c(
        "shares-text-sections",
        "-ffunction-sections -Wl,--unique=.text.alpha -Wl,--unique=.text.middle shares.c",
    ),
    then(c("shares-stripped", "shares.c"), After::Strip),
    then(c("shares-debuglink", "-Wl,--build-id=none shares.c"), After::DebugLink),
    then(c("shares-build-id", "shares.c"), After::BuildId),
    c("recursion", "recursion.c"),
    c("alternating", "alternating.c"),
    c("recursion-fp", "-fno-omit-frame-pointer recursion.c"),
    c("skipped_page", "-pthread -fno-stack-clash-protection skipped_page.c"),
    c("threads", "-pthread threads.c"),
    c("threads-fp", "-fno-omit-frame-pointer -pthread threads.c"),
    c("churn", "-pthread churn.c"),
    c("fork_tree", "fork_tree.c"),
    c("exec_step", "exec_step.c"),
    c("renamed", "-pthread renamed.c"),
    c("made_code", "made_code.c"),
    c("moved_code", "moved_code.c"),
    c("from_memory", "from_memory.c"),
    c("withholds", "-pthread withholds.c"),
    c("libexec_between.so", "-shared -fPIC exec_between.c -ldl"),
    c("withheld_memory", "-pthread withheld_memory.c"),
    c("withheld_exec", "withheld_exec.c"),
    c("dumped_code", "dumped_code.c"),
    c("dumped_caller", "dumped_caller.c"),
    c("ending", "ending.c"),
    c("kernel_heavy", "kernel_heavy.c"),
    c("bpf_program", "bpf_program.c"),
    c("libplugin.so", "-shared -fPIC plugin.c"),
    c("libother.so", "-shared -fPIC -Dplugin_inner=other_inner plugin.c"),
    c("libnamesake.so", NAMESAKE),
    c("libforged.so", FORGED),
    c("libother_clock.so", "-shared -fPIC other_clock.c"),
    c("plugin_host", "plugin_host.c"),
    c("plugin_loop", "plugin_loop.c"),
    c("pool", "-pthread pool.c"),
    c("crowd", "-pthread crowd.c"),
    c("storm", "storm.c"),
    c("bits32", "-m32 -nostdlib -static -ffreestanding -fno-pie -no-pie bits32.c"),
    c("closer", "closer.c"),
    c("pid_reuse", "pid_reuse.c"),
    c("waits", "waits.c"),
    c("occurs", "-pthread occurs.c"),
    c("allocates", "-pthread allocates.c"),
    c("reasons", "-pthread reasons.c"),
    c("steps", "-O1 -pthread steps.c"),
    c("futexes", "-pthread futexes.c"),
    c("switches", "-pthread switches.c"),
    c("uses", "-pthread uses.c"),
    c("counted_threads", "-pthread counted_threads.c"),
    c("interrupts", "-pthread interrupts.c"),
    c("disturbed", "disturbed.c"),
    c("stops", "-pthread stops.c"),
    c("tidies_up", "tidies_up.c"),
    c("child_states", "-pthread child_states.c"),
    c("traps", "traps.c"),
    c("queued", "-pthread queued.c"),
    c("swapped", "swapped.c"),
    c("generations", "-pthread generations.c"),
    c("vanishes", "vanishes.c"),
    c("deny_perf", "deny_perf.c"),
    c("thread_exec", "-pthread thread_exec.c"),
    c("many_threads", "-pthread many_threads.c"),
    c("endless", "-pthread endless.c"),
    c("phases", "-pthread phases.c"),
    c("leaderless", "-pthread leaderless.c"),
    c("ticks", "ticks.c"),
    c("signal_frame", "signal_frame.c"),
    c("signal_frame-fp", "-fno-omit-frame-pointer signal_frame.c"),
    c("signal_stack", "signal_stack.c"),
    c("signal_stack-static", "-static signal_stack.c"),
    c("signal_stack_turns", "signal_stack_turns.c"),
    c("signal_frame-fp-static", "-static -fno-omit-frame-pointer signal_frame.c"),
    c("coroutine", "coroutine.c"),
    c("coroutine-static", "-static coroutine.c"),
    c("coroutine-fp", "-static -fno-omit-frame-pointer coroutine.c"),
    c("trampolines", "trampolines.c"),
    c("no_cfi", "no_cfi.c no_cfi.S"),
    c("no_cfi-fp", "-fno-omit-frame-pointer no_cfi.c no_cfi.S"),
    c("assembly", "-fno-omit-frame-pointer assembly.c assembly.S"),
    c("assembly-large", "-fno-omit-frame-pointer -Wa,--defsym,LARGE=1 assembly.c assembly.S"),
    then(
        c("assembly-stripped", "-fno-omit-frame-pointer -Wa,--defsym,LARGE=1 assembly.c assembly.S"),
        After::Strip,
    ),
    c("dynamic_frames", "dynamic_frames.c"),
    c("clock_loop", "clock_loop.c"),
    c("odd_name", "odd_name.c"),
    c("measured", "measured.c"),
    c("markers", "markers.c"),
    c("hostile_markers", "hostile_markers.c"),
    c("hostile_mappings", "hostile_mappings.c"),
    c("fixed_work-fp", "-fno-omit-frame-pointer -pthread fixed_work.c"),
    c("fixed_work-cfi", "-fomit-frame-pointer -pthread fixed_work.c"),
    cpp("names", "names.cpp"),
    cpp("futures", "-pthread futures.cpp"),
    cpp("names-types4", "-gdwarf-4 -fdebug-types-section names.cpp"),
    cpp("names-types5", "-gdwarf-5 -fdebug-types-section names.cpp"),
    rust("inlines-v0", "-C symbol-mangling-version=v0 inlines.rs"),
    rust("inlines-legacy", "-Z unstable-options -C symbol-mangling-version=legacy inlines.rs"),
    rust("inlines-static", "-C target-feature=+crt-static inlines.rs"),
    rust("rust_threads", "rust_threads.rs"),
    rust("rust_waits", "rust_waits.rs"),
];

/// The workloads that are separate cargo packages.
const PACKAGES: &[&str] = &["async_server"];

/// Builds programs that are missing or older than the sources. Returns the folder of the built programs.
pub(crate) fn build_all() -> Result<PathBuf> {
    let built = crate::paths::target().join("workloads");
    fs::create_dir_all(&built).with_context(|| format!("cannot create {}", built.display()))?;
    let sources = crate::paths::root().join("workloads");
    let newest = newest_change(&sources)?;
    for workload in WORKLOADS {
        workload
            .build_if_needed(&sources, &built, newest)
            .with_context(|| format!("cannot build the workload {}", workload.name))?;
    }
    for package in PACKAGES {
        build_package(package, &built).with_context(|| format!("cannot build the workload {package}"))?;
    }
    Ok(built)
}

/// Builds a package with cargo, which detects changes itself.
fn build_package(package: &str, built: &Path) -> Result<()> {
    let manifest = crate::paths::root().join("workloads").join(package).join("Cargo.toml");
    // The target folder is outside the folder of the built programs, because the tests copy that one.
    let target = crate::paths::target().join("workload-packages");
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--quiet", "--release", "--locked", "--manifest-path"]).arg(manifest);
    execute({
        cargo.arg("--target-dir").arg(&target);
        cargo
    })?;
    fs::copy(target.join("release").join(package), built.join(package))?;
    Ok(())
}

impl Workload {
    fn build_if_needed(&self, sources: &Path, built: &Path, newest: SystemTime) -> Result<()> {
        let (output, stamp) = (built.join(self.name), built.join(format!("{}.command", self.name)));
        let command = self.command(sources, &output);
        let requested = format!("{command:?} {}", self.after as u8);
        let made = fs::metadata(&stamp).and_then(|metadata| metadata.modified());
        if made.is_ok_and(|made| made >= newest)
            && fs::read_to_string(&stamp).is_ok_and(|had| had == requested)
        {
            return Ok(());
        }
        execute(command)?;
        self.finish(built)?;
        fs::write(&stamp, requested)?;
        Ok(())
    }

    fn command(&self, sources: &Path, output: &Path) -> Command {
        let (program, flags) = match self.compiler {
            Compiler::C => ("gcc", "-std=gnu17 -O2 -g -Wall -Wextra -Werror -Icommon"),
            Compiler::Cpp => ("g++", "-std=c++17 -O2 -g -Wall -Wextra -Werror -Icommon"),
            Compiler::Rust => ("rustc", "--edition 2024 -C opt-level=2 -C debuginfo=2 -D warnings"),
        };
        let mut command = Command::new(program);
        command.current_dir(sources).args(flags.split(' ')).args(self.arguments.split(' '));
        // This is the only way to get the old mangling, which crates that earlier compilers built still have.
        if matches!(self.compiler, Compiler::Rust) {
            command.env("RUSTC_BOOTSTRAP", "1");
        }
        command.arg("-o").arg(output);
        command
    }

    fn finish(&self, built: &Path) -> Result<()> {
        let cut_off = |debug_file: &str| -> Result<()> {
            fs::create_dir_all(built.join(debug_file).parent().context("a file lies in a folder")?)?;
            binutil(built, "objcopy", &["--only-keep-debug", self.name, debug_file])?;
            binutil(built, "strip", &[self.name])
        };
        match self.after {
            After::Nothing => Ok(()),
            After::Strip => binutil(built, "strip", &[self.name]),
            After::DebugLink => {
                let debug_file = format!(".debug/{}.debug", self.name);
                cut_off(&debug_file)?;
                binutil(built, "objcopy", &[&format!("--add-gnu-debuglink={debug_file}"), self.name])
            }
            After::BuildId => {
                let id = build_id(&built.join(self.name))?;
                cut_off(&format!(".build-id/{}/{}.debug", &id[..2], &id[2..]))
            }
        }
    }
}

/// The GNU build id of a file in hexadecimal digits, as readelf prints it.
pub(crate) fn build_id(file: &Path) -> Result<String> {
    let output = Command::new("readelf").arg("--notes").arg(file).output().context("cannot start readelf")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let id = text.lines().find_map(|line| line.trim().strip_prefix("Build ID: "));
    Ok(id.with_context(|| format!("{} has no build id", file.display()))?.to_owned())
}

fn binutil(built: &Path, program: &str, arguments: &[&str]) -> Result<()> {
    let mut command = Command::new(program);
    command.current_dir(built).args(arguments);
    execute(command)
}

fn execute(mut command: Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot start {command:?}"))?;
    if !status.success() {
        bail!("{command:?} failed ({status})");
    }
    Ok(())
}

fn newest_change(folder: &Path) -> Result<SystemTime> {
    let mut newest = SystemTime::UNIX_EPOCH;
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let entry = entry?;
        let changed = if entry.file_type()?.is_dir() {
            newest_change(&entry.path())?
        } else {
            entry.metadata()?.modified()?
        };
        newest = newest.max(changed);
    }
    Ok(newest)
}
