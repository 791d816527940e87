//! Code that is made while the program runs: names from jitdumps and perf maps, categories for each runtime,
//! whole stacks.

use std::fs;
use std::path::PathBuf;

use super::by::By;
use super::context::Context;
use super::expect::{
    Stop, Verdict, expect, expect_contains, expect_eq, expect_measured, expect_share, need_root, skip,
    with_note,
};
use super::profile::{Frame, Profile};
use super::recorded::Recorded;
use super::running_targets::record_running;
use super::stacks::in_order;
use super::test::{SHARES, Test};

pub(super) const TESTS: &[Test] = &[
    Test::new("javascript_has_names_from_a_perf_map", |test| javascript(test, "--perf-basic-prof", "perf-"))
        .in_pairs(SHARES),
    Test::new("javascript_has_names_from_a_jitdump", |test| javascript(test, "--perf-prof", "jit-"))
        .in_pairs(SHARES),
    Test::new("javascript_is_unwound_by_its_jitdump", |test| {
        let options = ["--perf-prof", "--perf-prof-unwinding-info"];
        let recorded = record_javascript(test, &options)?;
        expect_whole_stacks(&recorded, "spin")
    })
    .in_pairs(SHARES),
    Test::new("java_has_names_from_a_map_written_at_its_end", java).in_pairs(SHARES),
    Test::new("in_own_namespaces_made_code_has_its_own_names", |test| in_namespaces(test, ""))
        .in_pairs(SHARES),
    Test::new("with_an_own_tmp_made_code_has_its_own_names", |test| in_namespaces(test, OWN_TMP))
        .in_pairs(SHARES),
    Test::new("made_code_without_names_keeps_its_addresses", unnamed).in_pairs(SHARES),
    Test::new("callers_of_dumped_code_are_whole_in_all_forms", dumped_callers).in_pairs(SHARES),
    Test::new("by_ptrace_callers_of_dumped_code_are_whole", |test| {
        dumped_caller(test, "plain", &["--backend", "ptrace"])
    })
    .in_pairs(SHARES),
    Test::new("attached_programs_get_no_advice_they_follow", attached)
        .exclusive("chooses processes by a name that others have"),
];

/// The path of a workload's source.
fn source(name: &str) -> String {
    crate::paths::root().join("workloads").join(name).display().to_string()
}

/// Skips the test if a program is missing.
fn need_program(test: &Context<'_>, program: &str, argument: &str) -> Verdict {
    match test.program(program).args(&[argument]).run() {
        Ok(_) => Ok(()),
        Err(_) => skip(format!("{program} is not installed")),
    }
}

fn record_javascript(test: &Context<'_>, options: &[&str]) -> Result<Recorded, Stop> {
    need_program(test, "node", "--version")?;
    let script = source("jit.js");
    // The jitdump is written into the working directory.
    let folder = test.fresh("jit").display().to_string();
    fs::create_dir_all(&folder)?;
    let enter = "cd \"$0\" && exec node \"$@\"";
    let args: Vec<&str> = ["sh", "-c", enter, &folder]
        .into_iter()
        .chain(options.iter().copied())
        .chain([&*script, "1000"])
        .collect();
    Ok(test.record_command(&args).run_well()?)
}

fn javascript(test: &Context<'_>, option: &str, lib: &str) -> Verdict {
    // Without the second option, every interpreted function has the name of the interpreter.
    let recorded = record_javascript(test, &[option, "--interpreted-frames-native-stack"])?;
    let profile = &recorded.profile;
    for part in ["alpha", "beta"] {
        let requested = recorded.true_share(part)?;
        expect_share(part, profile.total_share(part), requested, profile.count())?;
    }
    let frame = profile.frame_of(|frame| frame.function == "spin").ok_or_else(|| no_frame("spin"))?;
    let tiers = ["interpreter", "baseline", "Maglev", "optimized"].map(|tier| format!("JavaScript ({tier})"));
    expect(tiers.contains(&frame.category), format_args!("its category: {frame:?}"))?;
    expect(profile.json["meta"]["usesOnlyOneStackType"] == false, "no switch for JavaScript")?;
    expect(frame.file.as_deref().is_some_and(|file| file.ends_with("jit.js")), format_args!("{frame:?}"))?;
    expect(frame.lib.as_deref().is_some_and(|name| name.starts_with(lib)), format_args!("{frame:?}"))?;
    let libs = profile.json["libs"].as_array().cloned().unwrap_or_default();
    let made = libs.iter().find(|made| made["name"].as_str().is_some_and(|name| name.starts_with(lib)));
    let id = made.and_then(|made| made["breakpadId"].as_str()).unwrap_or_default();
    // With this id, the front end requests source and instructions.
    expect(id.starts_with("4A4954") && id.len() == 33, format_args!("the id of {lib}: {id:?}"))?;
    expect_whole_stacks(&recorded, "alpha")
}

fn java(test: &Context<'_>) -> Verdict {
    need_program(test, "java", "-version")?;
    // Without frame pointers, stacks are walked by the instructions of the compiled methods.
    ["-XX:-PreserveFramePointer", "-XX:+PreserveFramePointer"]
        .into_iter()
        .try_for_each(|frames| java_with(test, frames))
}

fn java_with(test: &Context<'_>, frames: &str) -> Verdict {
    let source = source("Jit.java");
    let args = ["java", "-XX:+UnlockDiagnosticVMOptions", frames, "-XX:+DumpPerfMapAtExit", &source];
    let recorded = test.record_command(&args).run_well()?;
    let method = "int Jit.fibonacci(int)";
    let profile = &recorded.profile;
    expect_measured(profile.self_share(method) > 0.3, format_args!("{:?}", profile.functions()))?;
    let frame = profile.frame_of(|frame| frame.function == method).ok_or_else(|| no_frame(method))?;
    expect_eq("its category", &*frame.category, "Java")?;
    expect_whole_stacks(&recorded, method)
}

/// A jitdump must never make stacks worse, whatever it lacks.
fn dumped_callers(test: &Context<'_>) -> Verdict {
    let forms = ["described", "plain", "machineless", "late", "unwritten"];
    forms.into_iter().try_for_each(|form| dumped_caller(test, form, &[]))
}

fn dumped_caller(test: &Context<'_>, form: &str, options: &[&str]) -> Verdict {
    let folder = test.fresh("jit").display().to_string();
    fs::create_dir_all(&folder)?;
    let program = test.workload("dumped_caller").display().to_string();
    let args = ["sh", "-c", "cd \"$0\" && exec \"$@\"", &folder, &program, "300", form];
    let recorded = test.record_command(&args).options(options).run_well()?;
    let profile = &recorded.profile;
    let held = profile.share_of_stacks(|stack| {
        let made = |frame: &&&Frame| match form {
            "unwritten" => frame.function.starts_with("0x"),
            _ => frame.function == "dumped_caller",
        };
        let names: Vec<&str> = stack.iter().map(|frame| frame.function.as_str()).collect();
        in_order(&names, &["_start", "main", "outer", "inner"]) && stack.iter().filter(made).count() == 1
    });
    let held = profile.of_taken(held);
    let verdict =
        expect_share("through the code", held, recorded.true_share("inner")?, profile.equal_count());
    with_note(verdict, format_args!("{form}: roots {:?}", profile.roots()))
}

fn unnamed(test: &Context<'_>) -> Verdict {
    let recorded = record_javascript(test, &[])?;
    let profile = &recorded.profile;
    let made = |frame: &Frame| frame.lib.as_deref() == Some("[JIT]") && frame.function.starts_with("0x");
    expect_measured(profile.share_with(made) > 0.5, "code without a name is not there")?;
    need_program(test, "java", "-version")?;
    // A map that the program may write at its end, and does not.
    let profile = test.record_command(&["java", &source("Jit.java")]).run_well()?.profile;
    expect_measured(profile.share_with(made) > 0.5, "Java's code without a name is not there")?;
    let of_map = |lib: &serde_json::Value| lib["name"].as_str().is_some_and(|name| name.starts_with("perf-"));
    let libs = profile.json["libs"].as_array().cloned().unwrap_or_default();
    expect(!libs.iter().any(of_map), format_args!("a lib of a file that is not there: {libs:?}"))
}

/// The names that the program was requested to write are missing. Its command line has the option already, so the
/// message does not recommend it.
fn attached(test: &Context<'_>) -> Verdict {
    need_program(test, "node", "--version")?;
    for (options, expected, not) in [
        (&["--perf-basic-prof"][..], "it was asked for names", "--perf-basic-prof names it"),
        (&[], "--perf-basic-prof names it", "it was asked for names"),
    ] {
        let node = test.program("node").args(options).args(&[&source("jit.js"), "60000"]).start()?;
        let (pid, output) = (node.pid().to_string(), test.fresh("attached.json.gz"));
        let map = PathBuf::from(format!("/tmp/perf-{pid}.map"));
        if !options.is_empty() {
            node.wait_for_file(&map)?;
            fs::remove_file(&map)?;
        }
        let name = fs::read_to_string(format!("/proc/{pid}/comm"))?;
        for target in [["-p", &pid], ["--name", name.trim()]] {
            let call = test.nyquist(&["record", "-s", "-d", "1"]).args(&target).args(&["-o"]).path(&output);
            let printed = call.run()?.succeeded()?.stderr;
            expect_contains("what is said", &printed, expected)?;
            expect(!printed.contains(not), &printed)?;
        }
        node.signal(libc::SIGKILL)?;
    }
    Ok(())
}

/// Mounts a separate file system on the folder for maps. The test's folder ($1) stays at its path.
const OWN_TMP: &str = "mount --bind $1 /mnt; mount -t tmpfs tmpfs /tmp; mkdir -p $1; mount --move /mnt $1;";

/// A program has number 1 in its own namespace, and its map has that number in its name. Another process's
/// map has the number that the recorder sees. In the shell, `adapt` prepares the program's environment.
fn in_namespaces(test: &Context<'_>, adapt: &str) -> Verdict {
    need_root()?;
    let program = test.path("made_code");
    fs::copy(test.workload("made_code"), &program)?;
    // The shell has no `/proc` of its own. So it reads the process id in the machine's namespace from the
    // machine's `/proc`.
    let script = format!(
        "set -e; read -r outer rest < /proc/self/stat; echo '2000000000 1000 outer_code' > /tmp/perf-$outer.map; \
         echo $outer > $1/outer; {adapt} mount -t proc proc /proc; exec $0 900 inner_code"
    );
    let folder = test.path("").display().to_string();
    let unshare = ["unshare", "-m", "-p", "-f", "sh", "-c", &script, &program.display().to_string(), &folder];
    let launched = test.record_command(&unshare).run_well();
    let outer_map = || -> Result<PathBuf, Stop> {
        let outer = fs::read_to_string(test.path("outer"))?;
        Ok(PathBuf::from(format!("/tmp/perf-{}.map", outer.trim())))
    };
    let mut maps = vec![outer_map()?];
    let ready = test.fresh("ready");
    let call = test.program(unshare[0]).args(&unshare[1..]);
    let target = call.env("WORKLOAD_READY", ready.display().to_string()).start()?;
    target.wait_for_file(&ready)?;
    maps.push(outer_map()?);
    let attached = record_running(By::Best, test, &["-d", "0.5", "-p", &target.pid().to_string()]);
    target.wait()?.succeeded()?;
    if adapt.is_empty() {
        maps.push(PathBuf::from("/tmp/perf-1.map"));
    }
    maps.iter().try_for_each(fs::remove_file)?;
    expect_inner_names(&launched?.profile)?;
    expect_inner_names(&attached?)
}

fn expect_inner_names(profile: &Profile) -> Verdict {
    let functions = profile.functions();
    expect(!functions.contains_key("outer_code"), "the map is that of another process")?;
    let inner = profile.total_share("inner_code");
    expect_measured(
        inner > 0.5,
        format_args!("the code that was made has a share of {inner:.3}: {functions:?}"),
    )?;
    let lib = profile.frame_of(|frame| frame.function == "inner_code").and_then(|frame| frame.lib);
    expect_eq("the lib of what was made", lib.as_deref(), Some("perf-1.map"))
}

/// Checks that stacks with this function reach the start of their thread.
fn expect_whole_stacks(recorded: &Recorded, function: &str) -> Verdict {
    let has = |stack: &[&Frame]| stack.iter().any(|frame| frame.function == function);
    let is_whole = |stack: &[&Frame]| {
        stack
            .first()
            .is_some_and(|frame| matches!(&*frame.function, "_start" | "clone3" | "__clone3" | "__clone"))
    };
    let profile = &recorded.profile;
    let (all, whole) =
        (profile.share_of_stacks(has), profile.share_of_stacks(|stack| has(stack) && is_whole(stack)));
    expect_measured(
        whole > 0.98 * all,
        format_args!("{whole} of {all} are whole; roots: {:?}", profile.roots()),
    )
}

fn no_frame(function: &str) -> Stop {
    Stop::Failed(format!("{function} is nowhere"))
}
