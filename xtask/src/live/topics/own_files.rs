//! Files of a process that are not at the paths in its mappings: they are in a separate mount namespace,
//! replaced, or deleted.

use std::fs;

use super::by::{BOTH, By};
use super::context::Context;
use super::expect::{Verdict, expect, expect_measured, need_root};
use super::invocation::Invocation;
use super::profile::Profile;
use super::running_targets::{OfRunning, WORK, end, process_cpu_ms, record_running, record_working_by};
use super::test::{SHARES, Test};

pub(super) const TESTS: &[Test] = &[
    Test::new("a_process_in_own_namespaces_has_its_own_files", |test| namespaces(test, By::Best))
        .in_pairs(SHARES),
    Test::new("by_ptrace_own_namespaces_have_their_own_files", |test| namespaces(test, By::Ptrace))
        .in_pairs(SHARES),
    Test::new("an_attached_replaced_program_keeps_its_names", replaced).in_pairs(SHARES),
    Test::new("a_program_deleting_its_files_keeps_its_names", |test| deleted(test, |call| call))
        .in_pairs(SHARES),
    Test::new("a_plain_users_deleted_program_keeps_its_names", |test| {
        deleted(test, Invocation::by_plain_user)
    })
    .in_pairs(SHARES),
];

/// The same path is one library for the process and another library for the recorder. The process also has
/// another id in its namespace.
fn namespaces(test: &Context<'_>, by: By) -> Verdict {
    need_root()?;
    let (host, library) = (test.path("plugin_host"), test.path("library.so"));
    fs::copy(test.workload("plugin_host"), &host)?;
    fs::copy(test.workload("libplugin.so"), &library)?;
    let (inner, outer) = (test.workload("libother.so"), library.display().to_string());
    let script = format!("mount --bind {} {outer} && exec {} 900 {outer}", inner.display(), host.display());
    let unshare = ["unshare", "-m", "-p", "-f", "--mount-proc", "sh", "-c", &script];
    let launched = test.record_command(&unshare).by(by).run_well()?;
    expect_inner(&launched.profile)?;
    let ready = test.fresh("ready");
    let call = test.program(unshare[0]).args(&unshare[1..]);
    let target = call.env("WORKLOAD_READY", ready.display().to_string()).start()?;
    target.wait_for_file(&ready)?;
    let profile = record_running(by, test, &["-d", "0.5", "-p", &target.pid().to_string()])?;
    target.wait()?;
    expect_inner(&profile)
}

fn expect_inner(profile: &Profile) -> Verdict {
    let (inner, outer) = (profile.total_share("other_inner"), profile.total_share("plugin_inner"));
    expect_measured(inner > 0.5, format_args!("the library's function has a share of {inner:.3}"))?;
    expect_measured(outer == 0.0, format_args!("a function of the other library has a share of {outer:.3}"))
}

/// The program is rebuilt while it runs, so its path leads to another program.
fn replaced(test: &Context<'_>) -> Verdict {
    for by in BOTH {
        let (program, other) = (test.fresh("program"), test.fresh("rebuilt"));
        fs::copy(test.workload("endless"), &program)?;
        fs::copy(test.workload("shares-O0"), &other)?;
        let ready = test.fresh("ready");
        let call = test.program(&program).args(&["1"]).env("WORKLOAD_READY", ready.display().to_string());
        let target = call.start()?;
        target.wait_for_file(&ready)?;
        fs::rename(&other, &program)?;
        let pid = target.pid();
        let OfRunning { profile, .. } = record_working_by(by, test, &["-p", &pid.to_string()], &[pid])?;
        end(target)?;
        let share = profile.total_share("main_loop");
        let functions = profile.functions();
        expect_measured(
            share > 0.9 || !crate::sys::is_root(),
            format_args!("{by:?}: main_loop has a share of {share:.3}"),
        )?;
        expect(!functions.contains_key("alpha"), "names are those of the program that took its place")?;
    }
    Ok(())
}

/// The files of the program and its library no longer exist, except in the memory of the process.
fn deleted<'a>(test: &'a Context<'a>, adapt: fn(Invocation<'a>) -> Invocation<'a>) -> Verdict {
    let _held = super::permissions::at_paranoid(2)?;
    for by in BOTH {
        let [program, library] = fresh_files(test)?;
        // By ptrace, a busy machine takes about thirty samples in 400 ms, which are too few for shares.
        let args = [program.as_str(), if by == By::Best { "400" } else { "1600" }, &library];
        let recorded = test.record_command(&args).by(by).with(adapt).run_well()?;
        expect_own_names(&recorded.profile)?;
        let [program, library] = fresh_files(test)?;
        let ready = test.fresh("ready");
        let call = test.program(&program).args(&["1000000", &library]);
        let call = adapt(call.env("WORKLOAD_READY", ready.display().to_string()));
        let target = call.start()?;
        target.wait_for_file(&ready)?;
        let output = test.fresh("profile.json.gz");
        let pid = target.pid().to_string();
        let call = test.nyquist(&["record", "-s", "-p", &pid, "-o"]).path(&output);
        let recorder = adapt(by.adapt(test, call)).start()?;
        recorder.wait_until_recording()?;
        let begun = process_cpu_ms(target.pid())?;
        let works = || process_cpu_ms(target.pid()).is_ok_and(|now| now - begun > WORK);
        recorder.wait_until("the process to work", works)?;
        recorder.signal(libc::SIGINT)?;
        recorder.wait()?.succeeded()?;
        end(target)?;
        expect_own_names(&Profile::read(&output)?)?;
    }
    Ok(())
}

/// Copies of a program and its library, in a folder where any user may delete them.
fn fresh_files(test: &Context<'_>) -> Result<[String; 2], anyhow::Error> {
    let copy = |workload: &str, name: &str| {
        let path = test.fresh(name);
        fs::copy(test.workload(workload), &path).map(|_| path.display().to_string())
    };
    Ok([copy("vanishes", "program")?, copy("libplugin.so", "library.so")?])
}

/// Checks that samples have the names of functions in the program and its library, on whole stacks.
fn expect_own_names(profile: &Profile) -> Verdict {
    let roots = profile.roots();
    let sampled = 1.0 - profile.total_share("[not sampled]");
    for (function, file) in [("own_work", "program"), ("plugin_inner", "library.so")] {
        let share = profile.total_share(function);
        expect_measured(
            share > 0.3 * sampled,
            format_args!("{function} has a share of {share:.3}: {roots:?}"),
        )?;
        let frame = profile.frame_of(|frame| frame.function == function);
        let lib = frame.and_then(|frame| frame.lib).unwrap_or_default();
        expect(lib.ends_with(file), format_args!("{function} is in {lib:?}, not in {file}"))?;
    }
    let whole = profile.share_of_stacks(|stack| stack.first().is_some_and(|root| root.function == "_start"));
    expect_measured(whole > 0.9 * sampled, format_args!("{whole:.3} of the stacks are whole: {roots:?}"))
}
