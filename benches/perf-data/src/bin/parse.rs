//! How fast records are read and parsed, on one core and with nothing done with them: `parse FILE [ROUNDS]`.
//!
//! Prints a line of figures a round: gigabytes a second of wall time and of CPU time. The first round may wait for the
//! disk.

use std::hint::black_box;
use std::path::Path;

use anyhow::{Context as _, Result};
use nyquist_perf::file::{FileReader, RecordingItem};
use nyquist_perf::{RecordBody, parse_record};
use nyquist_perf_data_bench::timed;

/// What was found, so that nothing of the parsing can be left out.
#[derive(Debug, Default, PartialEq, Eq)]
struct ParsedTotals {
    bytes: u64,
    records: u64,
    samples: u64,
    addresses: u64,
    stack_bytes: u64,
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let path = arguments.first().context("usage: parse FILE [ROUNDS]")?;
    let rounds = arguments.get(1).map_or(Ok(5), |rounds| rounds.parse())?;
    for _ in 0..rounds {
        let (found, took) = timed(|| parse(Path::new(path)));
        let found = black_box(found?);
        let rate = |time: std::time::Duration| found.bytes as f64 / 1e9 / time.as_secs_f64();
        println!("{:.3} {:.3}", rate(took.wall), rate(took.cpu));
        eprintln!("{found:?}");
    }
    Ok(())
}

fn parse(path: &Path) -> Result<ParsedTotals> {
    let mut reader = FileReader::open(path)?;
    let formats: Vec<_> = reader.events().iter().map(|event| event.format).collect();
    let mut found = ParsedTotals { bytes: std::fs::metadata(path)?.len(), ..ParsedTotals::default() };
    while let Some(item) = reader.read_next() {
        let RecordingItem::Record(record) = item else { continue };
        found.records += 1;
        let parsed = parse_record(record.bytes, &formats[record.event])?;
        if let RecordBody::Sample(sample) = &black_box(parsed).body {
            found.samples += 1;
            found.addresses += sample.callchain.map_or(0, |chain| chain.len() as u64);
            found.stack_bytes += sample.user_stack.map_or(0, |stack| stack.bytes.len() as u64);
        }
    }
    Ok(found)
}
