//! `nyquist script`: the samples one by one, as text like that of `perf script`, or as JSON.

use crate::args::ScriptArgs;
use crate::failure::Failure;
use crate::printer::Printer;
use crate::{input, page, selection};
use nyquist_formats::perf_script;
use nyquist_profile::{Frame, Profile, Sample, Thread};
use serde_json::{Value, json};

/// Runs the subcommand.
pub(crate) fn run(args: &ScriptArgs) -> Result<(), Failure> {
    let profile =
        input::read(&args.file, &args.read.filter, &args.read.symbols, Printer::new(args.read.verbosity))?;
    let profile = selection::part_of(profile, &args.read.filter)?.without_repetition_by_cpu();
    if args.limit == 0 && !args.json {
        return page::write_text_with(|mut out| perf_script::write(&profile, &mut out));
    }
    let limit = if args.limit == 0 { usize::MAX } else { args.limit };
    let mut samples = first_samples(&profile, limit).into_iter();
    if args.json {
        return page::write_json_with(|mut out| {
            samples.try_for_each(|(thread, sample)| {
                serde_json::to_writer(&mut out, &json(&profile, thread, &sample))?;
                out.write_all(b"\n")
            })
        });
    }
    page::write_text_with(|mut out| {
        samples
            .try_for_each(|(thread, sample)| perf_script::write_sample(&profile, thread, &sample, &mut out))
    })
}

/// The object that `docs/report-json.md` describes.
fn json(profile: &Profile, thread: &Thread, sample: &Sample) -> Value {
    let process = profile.process(thread.process);
    let frame = |frame: &Frame| {
        let func = profile.func(frame.func);
        json!({
            "function": profile.string(func.name),
            "lib": func.lib.map(|lib| &profile.lib(lib).name),
            "address": frame.address,
            "file": profile.frame_source(frame).map(|source| profile.string(profile.source(source).filename)),
            "line": frame.line,
        })
    };
    let frames = sample.stack.into_iter().flat_map(|stack| profile.stack_frames(stack));
    json!({
        "schema": "nyquist-script/1",
        "time_ns": sample.time,
        "process": process.name,
        "pid": process.pid,
        "thread": thread.name,
        "tid": thread.tid,
        "weight": sample.weight,
        "off_cpu": sample.off_cpu,
        "stack": frames.map(frame).collect::<Vec<_>>(),
    })
}

/// The first samples of all threads. O(samples).
fn first_samples(profile: &Profile, limit: usize) -> Vec<(&Thread, Sample)> {
    let threads = profile.threads().iter();
    let mut samples: Vec<_> = threads
        .flat_map(|thread| {
            let counted = thread.samples.iter().filter(|sample| sample.weight > 0);
            counted.take(limit).map(move |sample| (thread, sample))
        })
        .collect();
    samples.sort_by_key(|(_, sample)| sample.time);
    samples.truncate(limit);
    samples
}
