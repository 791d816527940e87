//! Makes a recording as if everything in it had happened so many times, one time after the other:
//! `repeat FILE TIMES OUTPUT`.
//!
//! Only for recordings of `perf record` without compression, in one file: the records are copied, with their times
//! moved on.

use std::fs::{self, File};
use std::io::{BufWriter, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use nyquist_perf::abi::record::SAMPLE;
use nyquist_perf::file::FileReader;
use nyquist_perf::file::{FileHeader, tool_record};
use nyquist_perf::{ByteOrder, Header, RecordFormat, SampleType};

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [file, times, output] = arguments.as_slice() else {
        anyhow::bail!("usage: repeat FILE TIMES OUTPUT")
    };
    repeat(Path::new(file), times.parse()?, Path::new(output))
}

fn repeat(path: &Path, times: u64, output: &Path) -> Result<()> {
    let reader = FileReader::open(path)?;
    let format = reader.events().first().context("the recording has no events")?.format;
    let same = |format: &RecordFormat| (format.sample_type, format.sample_id_all);
    ensure!(
        reader.events().iter().all(|event| same(&event.format) == same(&format)),
        "the events' records differ"
    );
    let mut bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let header = FileHeader::parse(&bytes).context("the header is damaged")?;
    ensure!(header.byte_order == ByteOrder::Little, "only recordings of little-endian machines are repeated");
    let data = header.sections.context("a stream is not repeated")?.data;
    let (start, end) = (usize::try_from(data.offset)?, usize::try_from(data.end())?);
    let places = times_in(bytes.get(start..end).context("the recording is cut")?, &format)?;
    let time = |bytes: &[u8], at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap_or_default());
    // What perf makes up before the recording begins has no time.
    let known = || places.iter().map(|at| time(&bytes, start + at)).filter(|time| *time > 0);
    let span = known().max().unwrap_or_default() - known().min().unwrap_or_default() + 1_000_000;

    let mut out = BufWriter::new(File::create(output)?);
    out.write_all(&bytes[..start])?;
    for _ in 0..times {
        out.write_all(&bytes[start..end])?;
        for at in places.iter().map(|at| start + at) {
            let before = time(&bytes, at);
            if before > 0 {
                bytes[at..at + 8].copy_from_slice(&(before + span).to_le_bytes());
            }
        }
    }
    write_rest(out, path, (start, end), times)
}

/// Where the times of records are, and of the tool's records none.
fn times_in(data: &[u8], format: &RecordFormat) -> Result<Vec<usize>> {
    let count = |bits: &[SampleType]| bits.iter().filter(|bit| format.sample_type.contains(**bit)).count();
    let in_sample = Header::LEN + 8 * count(&[SampleType::IDENTIFIER, SampleType::IP, SampleType::TID]);
    let from_end =
        8 * (1 + count(&[SampleType::ID, SampleType::STREAM_ID, SampleType::CPU, SampleType::IDENTIFIER]));
    ensure!(
        format.sample_type.contains(SampleType::TIME) && format.sample_id_all,
        "the records have no times"
    );
    let (mut places, mut at) = (Vec::new(), 0);
    while at < data.len() {
        let header = Header::parse(&data[at..])?;
        let size = usize::from(header.size);
        ensure!(size >= Header::LEN, "a record of {size} bytes");
        ensure!(header.kind != tool_record::COMPRESSED, "a compressed recording is not repeated");
        if header.kind == SAMPLE {
            places.push(at + in_sample);
        } else if header.kind < tool_record::FIRST {
            places.push(at + size - from_end);
        }
        at += size;
    }
    Ok(places)
}

/// Writes what stands behind the records, whose sections are moved on, and how long the records are now.
fn write_rest(mut out: BufWriter<File>, path: &Path, (start, end): (usize, usize), times: u64) -> Result<()> {
    /// Where the header says how long the records are (`struct perf_file_header`).
    const DATA_SIZE_AT: u64 = 48;
    let mut rest = Vec::new();
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(end as u64))?;
    file.read_to_end(&mut rest)?;
    let len = (end - start) as u64;
    let moved = len * (times - 1);
    // The list of the sections ends where the first of them begins.
    let first = rest.first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
    let list = usize::try_from(first.saturating_sub(end as u64))?.min(rest.len());
    for section in rest[..list].as_chunks_mut::<16>().0 {
        let offset = section.first_chunk_mut::<8>().context("a section has an offset")?;
        *offset = (u64::from_le_bytes(*offset) + moved).to_le_bytes();
    }
    out.write_all(&rest)?;
    let mut out = out.into_inner()?;
    out.seek(SeekFrom::Start(DATA_SIZE_AT))?;
    out.write_all(&(len * times).to_le_bytes())?;
    Ok(())
}
