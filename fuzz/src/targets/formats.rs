//! Reading arbitrary bytes as each format of another profiler; the first byte chooses it. What can be read is written
//! in every format.

use nyquist_formats::{
    Format, ProcessLabels, as_named, callgrind, chrome, detect, folded, otlp, parquet, perf_script, perfetto, pprof, read, read_requested,
    speedscope,
};
use nyquist_profile::ProcessIndex;

/// Labels that the seeds have.
const LABELS: [&str; 2] = ["thread.id", "tid"];

/// Takes one input.
pub fn run(bytes: &[u8]) {
    let Some((&choice, bytes)) = bytes.split_first() else { return };
    let _ = detect(bytes, "x");
    let format = Format::READ[usize::from(choice) % Format::READ.len()];
    for label in LABELS.iter().filter(|_| format.has_labels()) {
        let _ = read_requested(format, bytes, None, &[(*label).to_owned()]);
    }
    let Ok(imported) = read(format, bytes) else { return };
    let profile = imported.profile;
    let mut out = Vec::new();
    let labels = |_| ProcessLabels::default();
    let written = pprof::write(&profile, &as_named, &mut out)
        .and_then(|()| otlp::write(&profile, &as_named, &mut out))
        .and_then(|()| perfetto::write(&profile, &as_named, &mut out))
        .and_then(|()| parquet::write(&profile, table_options(&labels), &mut out))
        .and_then(|()| speedscope::write(&profile, &as_named, &mut out))
        .and_then(|()| chrome::write(&profile, &as_named, &mut out))
        .and_then(|()| perf_script::write(&profile, &mut out))
        .and_then(|()| callgrind::write(&profile, &as_named, &mut out))
        .and_then(|()| folded::write(&profile, &mut out, folded::WriteOptions::default()));
    written.expect("memory can be written");
}

/// A table with a row for each second.
fn table_options(labels: &dyn Fn(ProcessIndex) -> ProcessLabels) -> parquet::WriteOptions<'_> {
    parquet::WriteOptions { paths: &as_named, slice: Some(1_000_000_000), labels }
}
