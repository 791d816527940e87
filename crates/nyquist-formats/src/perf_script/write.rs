//! Writes samples in the format of `perf script`.

use std::io::{self, Write};

use nyquist_profile::{Frame, Process, Profile, Sample, Thread};

use super::{INLINED, OFF_CPU_EVENT, UNKNOWN};
use crate::hidden;

/// Writes all samples in the order of their times, as samples of `cpu-clock` whose period is their weight in
/// ns, of `offcpu-time`, or of the event that they count. Addresses are relative to their libs, as in perf's
/// output for position-independent files. O(samples × depth + samples × log samples).
///
/// # Errors
/// If `out` cannot be written.
pub fn write(profile: &Profile, out: &mut impl Write) -> io::Result<()> {
    let threads = profile.threads().iter();
    let mut samples: Vec<(&Thread, Sample)> =
        threads.flat_map(|thread| thread.samples.iter().map(move |sample| (thread, sample))).collect();
    samples.retain(|(_, sample)| sample.weight > 0);
    samples.sort_by_key(|(_, sample)| sample.time);
    for (thread, sample) in samples {
        write_sample(profile, thread, &sample, out)?;
    }
    Ok(())
}

/// Writes one sample of a thread, and the empty line after it. O(depth).
///
/// # Errors
/// If `out` cannot be written.
pub fn write_sample(
    profile: &Profile,
    thread: &Thread,
    sample: &Sample,
    out: &mut impl Write,
) -> io::Result<()> {
    write_head(profile, out, thread, sample)?;
    if let Some(stack) = sample.stack {
        for frame in profile.stack_frames(stack) {
            write_frame(profile, out, frame)?;
        }
    }
    out.write_all(b"\n")
}

fn write_head(profile: &Profile, out: &mut impl Write, thread: &Thread, sample: &Sample) -> io::Result<()> {
    let process = profile.process(thread.process);
    let (seconds, nanoseconds) = (sample.time / 1_000_000_000, sample.time % 1_000_000_000);
    let period = sample.weight.saturating_mul(profile.meta().interval);
    let measure = &profile.meta().measure;
    let event = match (sample.off_cpu, measure.is_cpu_time()) {
        (true, _) => OFF_CPU_EVENT.into(),
        (false, true) => "cpu-clock".into(),
        // Words end at spaces.
        (false, false) => one_line(&measure.name).replace(char::is_whitespace, "_"),
    };
    let (comm, pid, tid) = (comm(process, thread), number(&process.pid), number(&thread.tid));
    writeln!(out, "{comm} {pid}/{tid} {seconds}.{nanoseconds:09}: {period} {event}: ")
}

fn write_frame(profile: &Profile, out: &mut impl Write, frame: &Frame) -> io::Result<()> {
    let func = profile.func(frame.func);
    let name = one_line(profile.string(func.name));
    let name = if name.is_empty() { UNKNOWN } else { &name };
    write!(out, "\t{:16x} {name}", frame.address.unwrap_or(0))?;
    if frame.inline_depth > 0 {
        return writeln!(out, " ({INLINED})");
    }
    let symbol = frame.native_symbol.map(|symbol| profile.native_symbol(symbol));
    let offset = symbol.filter(|symbol| symbol.name == func.name).zip(frame.address);
    if let Some(offset) = offset.and_then(|(symbol, address)| address.checked_sub(symbol.address)) {
        write!(out, "+{offset:#x}")?;
    }
    let lib = func
        .lib
        .map(|lib| profile.lib(lib))
        .map(|lib| if lib.path.is_empty() { &lib.name } else { &lib.path });
    writeln!(out, " ({})", lib.map_or(UNKNOWN.to_owned(), |path| one_line(path)))
}

fn comm(process: &Process, thread: &Thread) -> String {
    let names = [&thread.name, &process.name];
    let name = names.into_iter().map(|name| one_line(name)).find(|name| !name.is_empty());
    name.unwrap_or_else(|| ":0".into())
}

/// An id's number: `77` for `77.1`. 0 if it is not a number.
fn number(id: &str) -> u64 {
    id.split('.').next().and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

/// A name without the characters that end a line, and with hidden ones escaped.
fn one_line(name: &str) -> String {
    let name: String =
        name.trim().chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    hidden::escape(&name).into_owned()
}
