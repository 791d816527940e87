//! How many samples a second the recorder's converter takes, if a kept recording came as fast as it can be taken:
//! `converting FILE [ROUNDS]`.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use nyquist_convert::event::Timestamp;
use nyquist_convert::perf::{CounterMeaning, AdditionalEvents, PerfDecoder, Period, Successors};
use nyquist_convert::{AuxFiles, Converter, ConversionResult, Options, RecordedFiles};
use nyquist_object::elf::Architecture;
use nyquist_perf::file::{FileReader, RecordingItem};
use nyquist_perf_data_bench::timed;
use nyquist_profile::Meta;
use nyquist_record::Chunk;
use nyquist_symbols::Finder;

/// The bytes of a chunk, as the recorder's reader hands them over.
const CHUNK_BYTES: usize = 256 << 10;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().context("usage: converting FILE [ROUNDS]")?;
    let rounds: u32 = arguments.next().map_or(Ok(1), |rounds| rounds.parse())?;
    let recording = Recording::read(Path::new(&path))?;
    (0..rounds).try_for_each(|_| recording.convert())
}

/// What a file holds, in memory.
struct Recording {
    format: PerfDecoder,
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
                RecordingItem::CompleteBefore(time) => complete_before = time,
                RecordingItem::Record(record) => {
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
        let format = PerfDecoder {
            format: event.format,
            architecture: Architecture::X86_64,
            kernel: true,
            period: Period::Provided,
            cpus: reader.event_cpus().iter().copied().collect(),
            counters: CounterMeaning::CpuTime,
            successors: Successors::default(),
            additional_events: AdditionalEvents::default(),
        };
        Ok(Self { format, chunks, start: Timestamp(start) })
    }

    /// Converts all of it, and prints what that took.
    fn convert(&self) -> Result<()> {
        let (finished, took) = timed(|| self.converted());
        let samples = finished.statistics.samples;
        ensure!(samples > 0, "a recording without samples");
        let each = |time: Duration| time.as_secs_f64() * 1e6 / samples as f64;
        println!(
            "{samples} samples, {:.0} a second: {:.2} µs each, {:.2} µs of CPU time",
            samples as f64 / took.wall.as_secs_f64(),
            each(took.wall),
            each(took.cpu),
        );
        Ok(())
    }

    fn converted(&self) -> ConversionResult {
        let files = RecordedFiles {
            finder: Finder::default(),
            build_ids: std::iter::empty().collect(),
            symbols: std::iter::empty().collect(),
            aux: AuxFiles { made_here: true, ..AuxFiles::default() },
        };
        let meta = Meta { interval: 1_000_000, ..Meta::default() };
        let options = Options::new(self.start, meta);
        let mut converter = Converter::new(Options { recorded_files: Some(files), ..options });
        let mut events = Vec::new();
        for (bytes, complete_before) in &self.chunks {
            let chunk = Chunk::records(bytes.clone(), self.format.clone(), *complete_before);
            chunk.decode(&mut events);
            events.drain(..).for_each(|event| converter.push(event));
            converter.advance(*complete_before);
        }
        converter.finish()
    }
}
