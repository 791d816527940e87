//! Recordings of nyquist that are kept as perf.data: the same profile results from them, and perf reads them.

use super::context::Context;
use super::expect::{Verdict, expect, expect_contains, expect_eq, need_root, skip};
use super::perf_data::{NOT_IN_CODE, compiler_command, import, perf_record};
use super::profile::Profile;
use super::recorded::{Recorded, Recording};
use super::test::Test;

pub(super) const TESTS: &[Test] = &[
    Test::new("importing_kept_records_gives_the_live_profile", retained).quick(),
    Test::new("importing_some_processes_gives_their_profile", kept_of_some)
        .exclusive("records the whole machine"),
    Test::new("importing_frame_pointers_gives_live_profiles", kept_frame_pointers),
    Test::new("perf_reads_what_was_kept", kept_for_perf),
    Test::new("perf_beside_a_recording_gets_what_it_wants", perf_beside)
        .exclusive("records the whole machine"),
    Test::new("perf_reads_what_was_kept_of_deep_stacks", deep_stacks_for_perf)
        .exclusive("how much is read of a deep stack depends on how soon the recorder gets a CPU"),
];

fn retained(test: &Context<'_>) -> Verdict {
    expect_kept(test, test.record(&["shares", "600"]))?;
    // At this rate, the command is also sampled before it calls exec. Those samples are not in the profile.
    expect_kept(test, test.record(&["shares", "100"]).options(&["-r", "10000"])).map(|_| ())
}

/// The kernel delivers samples of all processes, and only some of them are requested.
fn kept_of_some(test: &Context<'_>) -> Verdict {
    need_root()?;
    let recorded = expect_kept(test, test.record(&["shares", "400"]).options(&["-a", "--name", "shar?s"]))?;
    let others = recorded.profile.threads.iter().map(|thread| &thread.process).find(|name| *name != "shares");
    expect(others.is_none(), format_args!("{others:?}"))
}

/// The program has no frame pointers, and its stacks end where they leave code.
fn kept_frame_pointers(test: &Context<'_>) -> Verdict {
    let command = compiler_command(test)?;
    let args: Vec<&str> = command.iter().map(String::as_str).collect();
    let recorded = expect_kept(test, test.record_command(&args).options(&["--call-graph", "fp"]))?;
    let cut = recorded.profile.total_share(NOT_IN_CODE);
    expect(cut > 0.05, format_args!("only {cut} of the stacks leave code"))
}

/// Records a command, and keeps the kernel's records. Checks that importing the records gives the same
/// samples.
pub(super) fn expect_kept(
    test: &Context<'_>,
    recording: Recording<'_>,
) -> Result<Recorded, super::expect::Stop> {
    let file = test.fresh("kept.data");
    let retained = file.display().to_string();
    let recorded = recording.options(&["--perf-data", &retained]).run_well()?;
    let (imported, _) = import(test, &file, &[])?;
    expect_same_samples(&imported, &recorded.profile)?;
    Ok(recorded)
}

/// Checks that the imported profile has every sample of the recorded one, with the same time, weight and
/// stack.
pub(super) fn expect_same_samples(imported: &Profile, recorded: &Profile) -> Verdict {
    let samples = |profile: &Profile| -> Vec<String> {
        let threads = profile.threads.iter();
        let lines = threads.flat_map(|thread| {
            let whose = format!("{} {} {}", thread.pid, thread.process, thread.name);
            let of_thread = thread.samples.iter().zip(thread.stacks());
            of_thread.map(move |(sample, (stack, _))| {
                format!("{whose} {} {} {:?} {stack:?}", sample.time, sample.weight, sample.cpu_delta)
            })
        });
        lines.collect()
    };
    let (imported, recorded) = (samples(imported), samples(recorded));
    expect_eq("samples", imported.len(), recorded.len())?;
    for (imported, recorded) in imported.iter().zip(&recorded) {
        expect_eq("a sample", imported, recorded)?;
    }
    Ok(())
}

fn kept_for_perf(test: &Context<'_>) -> Verdict {
    let file = test.fresh("kept.data");
    let retained = file.display().to_string();
    test.record(&["shares", "300"]).options(&["--perf-data", &retained]).run_well()?;
    let call =
        test.program("perf").args(&["report", "--stdio", "-g", "none", "--no-children", "-i"]).path(&file);
    let text = match call.run() {
        Ok(finished) => finished.succeeded()?.stdout_text(),
        Err(error) => return skip(format_args!("there is no perf here: {error}")),
    };
    expect_contains("perf report", &text, "alpha")
}

/// The kernel must not put build ids into the mapping events of perf, because perf has not requested them.
fn perf_beside(test: &Context<'_>) -> Verdict {
    need_root()?;
    let output = test.fresh("machine.json.gz");
    let recorder =
        test.nyquist(&["record", "-s", "-a", "-d", "20", "--perf-data"]).path(&test.fresh("machine.data"));
    let recorder = recorder.args(&["-o"]).path(&output).start()?;
    recorder.wait_until_recording()?;
    let recording = perf_record(test, &["-F", "999"], "beside.data")?;
    recorder.signal(libc::SIGINT)?;
    recorder.wait()?.succeeded()?;
    let call = test.program("perf").args(&["script", "--show-mmap-events", "-i"]).path(&recording);
    let text = call.run()?.succeeded()?.stdout_text();
    let mapped: Vec<_> = text.lines().filter(|line| line.contains("PERF_RECORD_MMAP2")).collect();
    // A line with a build id contains `@ 0 <ID>]`; another line contains `@ 0 MAJOR:MINOR INODE GENERATION]`.
    expect(mapped.iter().any(|line| line.contains("/shares")), &text)?;
    let with_id = mapped.iter().find(|line| line.contains('<'));
    expect(with_id.is_none(), format_args!("{with_id:?}"))
}

/// Outer parts of stacks are kept in records of a type that kernels do not write for programs. Perf must be
/// able to read past them.
fn deep_stacks_for_perf(test: &Context<'_>) -> Verdict {
    const SAMPLE: u32 = 9;
    const TEXT_POKE: u32 = 20;
    let file = test.fresh("deep.data");
    let retained = file.display().to_string();
    test.record(&["recursion", "1500", "300"]).options(&["--perf-data", &retained]).run_well()?;
    let kinds = record_types(&std::fs::read(&file)?).unwrap_or_default();
    let count = |expected: u32| kinds.iter().filter(|kind| **kind == expected).count();
    expect(count(TEXT_POKE) > 0, "nothing was read of the running program's memory")?;
    let finished = match test.program("perf").args(&["script", "-F", "tid,time", "-i"]).path(&file).run() {
        Ok(finished) => finished.succeeded()?,
        Err(error) => return skip(format_args!("there is no perf here: {error}")),
    };
    let text = finished.stdout_text();
    expect_eq("samples by perf", text.lines().filter(|line| line.contains(':')).count(), count(SAMPLE))?;
    expect(!finished.stderr.contains("rror"), &finished.stderr)
}

/// The types of the records in a file, in order (`struct perf_file_header`, `struct perf_event_header`).
fn record_types(bytes: &[u8]) -> Option<Vec<u32>> {
    const DATA_AT: usize = 40;
    let word = |at: usize| Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?) as usize);
    let (mut at, len) = (word(DATA_AT)?, word(DATA_AT + 8)?);
    let (end, mut kinds) = (at + len, Vec::new());
    while at < end {
        let header = word(at)?;
        kinds.push(header as u32);
        at += (header >> 48).max(8);
    }
    Some(kinds)
}
