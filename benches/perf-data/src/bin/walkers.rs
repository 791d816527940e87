//! How many samples a second the recorder's converter takes, alone and with threads that walk stacks beside it, if a kept recording
//! came as fast as it can be taken: `walkers FILE [THREADS...]`.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use nyquist_convert::event::Timestamp;
use nyquist_convert::perf::{CounterMeaning, Occurrences, PerfEvents, Period, Successors};
use nyquist_convert::{AuxFiles, Converter, Finished, Options, RecordedFiles};
use nyquist_object::elf::Architecture;
use nyquist_perf::file::{FileReader, Item};
use nyquist_perf_data_bench::{thread_cpu_time, timed};
use nyquist_profile::Meta;
use nyquist_record::{Chunk, Decoder};
use nyquist_symbols::Finder;

/// The bytes of a chunk, as the recorder's reader hands them over.
const CHUNK_BYTES: usize = 256 << 10;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().context("usage: walkers FILE [THREADS...]")?;
    let threads = arguments.map(|threads| threads.parse()).collect::<Result<Vec<usize>, _>>()?;
    let recording = Recording::read(Path::new(&path))?;
    let alone = recording.convert(0)?;
    for threads in threads {
        let together = recording.convert(threads)?;
        ensure!(together.profile == alone.profile, "{threads} threads come to another profile");
    }
    Ok(())
}

/// What a file holds, in memory.
struct Recording {
    format: PerfEvents,
    /// Records, and how far the past is complete with them.
    chunks: Vec<(Bytes, Timestamp)>,
    start: Timestamp,
}

impl Recording {
    /// Reads a recording of nyquist's, whose records all have one layout.
    fn read(path: &Path) -> Result<Self> {
        let mut reader = FileReader::open(path)?;
        let (mut chunks, mut bytes) = (Vec::new(), Vec::new());
        let (mut start, mut complete_before) = (u64::MAX, 0);
        while let Some(item) = reader.read_next() {
            match item {
                Item::CompleteBefore(time) => complete_before = time,
                Item::Record(record) => {
                    start = start.min(record.time.filter(|time| *time > 0).unwrap_or(u64::MAX));
                    bytes.extend_from_slice(record.bytes);
                }
            }
            if bytes.len() >= CHUNK_BYTES {
                chunks.push((Bytes::from(std::mem::take(&mut bytes)), Timestamp(complete_before)));
            }
        }
        chunks.push((Bytes::from(bytes), Timestamp(u64::MAX)));
        let event = reader.events().first().context("a recording without events")?;
        ensure!(
            reader.events().iter().all(|other| other.format == event.format),
            "records of several layouts"
        );
        let format = PerfEvents {
            format: event.format,
            architecture: Architecture::X86_64,
            period: Period::Stated,
            cpus: reader.event_cpus().iter().copied().collect(),
            counters: CounterMeaning::CpuTime,
            successors: Successors::default(),
            occurrences: Occurrences::default(),
        };
        Ok(Self { format, chunks, start: Timestamp(start) })
    }

    /// Converts all of it, and says what that took.
    fn convert(&self, threads: usize) -> Result<Finished> {
        let ((finished, own), took) = timed(|| {
            let before = thread_cpu_time();
            (self.converted(threads), thread_cpu_time().saturating_sub(before))
        });
        let samples = finished.statistics.samples;
        ensure!(samples > 0, "a recording without samples");
        let each = |time: Duration| time.as_secs_f64() * 1e6 / samples as f64;
        println!(
            "{threads} threads beside: {samples} samples, {:.0} a second: {:.2} µs each, {:.2} µs of CPU time, {:.2} µs of it the converting thread's",
            samples as f64 / took.wall.as_secs_f64(),
            each(took.wall),
            each(took.cpu),
            each(own),
        );
        Ok(finished)
    }

    fn converted(&self, threads: usize) -> Finished {
        let files = RecordedFiles {
            finder: Finder::default(),
            build_ids: std::iter::empty().collect(),
            symbols: std::iter::empty().collect(),
            aux: AuxFiles { made_here: true, ..AuxFiles::default() },
        };
        let meta = Meta { interval: 1_000_000, ..Meta::default() };
        let converter = Converter::new(Options { start: self.start, kernel_permitted: true, meta });
        let mut converter = converter.with_recorded_files(files).walking_with(threads);
        let mut decoder = Decoder::new(threads);
        for chunks in self.chunks.chunks(decoder.most_at_once()) {
            let chunk = |(bytes, complete_before): &(Bytes, Timestamp)| {
                Chunk::records(bytes.clone(), self.format.clone(), *complete_before)
            };
            for events in decoder.decode(chunks.iter().map(chunk).collect()) {
                events.drain(..).for_each(|event| converter.push(event));
            }
            converter.advance(chunks.last().map_or(Timestamp(0), |(_, complete_before)| *complete_before));
        }
        converter.finish()
    }
}
