//! `nyquist script`: one sample after another as text, as `perf script` prints them.

use crate::args::ScriptArgs;
use crate::failure::Failure;
use crate::printer::Printer;
use crate::{input, page, selection};
use nyquist_formats::perf_script;
use nyquist_profile::{Profile, Sample, Thread};

/// Runs the subcommand.
pub(crate) fn run(args: &ScriptArgs) -> Result<(), Failure> {
    let profile = input::read(&args.file, &args.symbols, Printer::new(args.verbosity))?;
    let profile = selection::part_of(profile, &args.filter)?;
    if args.limit == 0 {
        return page::write_with(|mut out| perf_script::write(&profile, &mut out));
    }
    page::write_with(|mut out| {
        for (thread, sample) in first_samples(&profile, args.limit) {
            perf_script::write_sample(&profile, thread, sample, &mut out)?;
        }
        Ok(())
    })
}

/// The first samples of all threads. O(samples).
fn first_samples(profile: &Profile, limit: usize) -> Vec<(&Thread, &Sample)> {
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
