//! Compares the records of a recording as nyquist-perf and linux-perf-data read them: `compare FILE...`. Fails on a
//! difference that is not on the list of known ones.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::BufReader;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use linux_perf_data::linux_perf_event_reader::EventRecord;
use linux_perf_data::{PerfFileReader, PerfFileRecord};
use nyquist_perf::file::{FileReader, RecordingItem};
use nyquist_perf::{RecordBody, Record, parse_record};
use nyquist_perf_data_bench::known;

/// What is compared of a record. What a record says of itself is one number, for millions of them are held in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Seen {
    time: Option<u64>,
    kind: u32,
    event: usize,
    task: Option<(u32, u32)>,
    cpu: Option<u32>,
    ip: Option<u64>,
    /// The call chain's length and a digest of it.
    chain: Option<(usize, u64)>,
    /// A digest of the registers and the stack, or of what another record says.
    rest: u64,
}

fn main() -> Result<()> {
    let paths: Vec<String> = std::env::args().skip(1).collect();
    ensure!(!paths.is_empty(), "usage: compare FILE...");
    for path in paths {
        compare(Path::new(&path)).with_context(|| format!("comparing {path}"))?;
    }
    Ok(())
}

fn compare(path: &Path) -> Result<()> {
    let (mut ours, mut theirs) = (ours(path)?, theirs(path)?);
    // The peer gives out records by time and nyquist-perf as they stand in the file.
    ours.sort_unstable();
    theirs.sort_unstable();
    let mut of_kind = BTreeMap::<u32, usize>::new();
    for seen in ours.iter().chain(&theirs) {
        *of_kind.entry(seen.kind).or_default() += 1;
    }
    println!("{}: {} records, {} by linux-perf-data", path.display(), ours.len(), theirs.len());
    for (what, count) in differences(&ours, &theirs) {
        let kind = what.split(' ').nth(1).and_then(|kind| kind.parse().ok()).unwrap_or_default();
        let reason = known::check(&what, count, of_kind.get(&kind).copied().unwrap_or_default())?;
        println!("{count} records: {what} ({reason})");
    }
    Ok(())
}

/// The records that one of two sorted lists lacks, by what differs, and how many there are.
fn differences(ours: &[Seen], theirs: &[Seen]) -> BTreeMap<String, usize> {
    let mut found = BTreeMap::new();
    let (mut left, mut right) = (ours.iter().peekable(), theirs.iter().peekable());
    loop {
        let what = match (left.peek(), right.peek()) {
            (None, None) => return found,
            (Some(our), Some(their)) if our == their => {
                (left.next(), right.next());
                continue;
            }
            (Some(our), Some(their)) if (our.time, our.kind) == (their.time, their.kind) => {
                let what = fields(our, their);
                (left.next(), right.next());
                what
            }
            (Some(our), their) if their.is_none_or(|their| *our < *their) => {
                let what = format!("type {} only by nyquist-perf", our.kind);
                left.next();
                what
            }
            (_, their) => {
                let what = format!("type {} only by linux-perf-data", their.map_or(0, |their| their.kind));
                right.next();
                what
            }
        };
        *found.entry(what).or_default() += 1;
    }
}

/// Which fields of a record differ.
fn fields(our: &Seen, their: &Seen) -> String {
    let fields = [
        ("event", our.event == their.event),
        ("task", our.task == their.task),
        ("CPU", our.cpu == their.cpu),
        ("instruction pointer", our.ip == their.ip),
        ("call chain", our.chain == their.chain),
        ("rest", our.rest == their.rest),
    ];
    let different: BTreeSet<_> = fields.iter().filter(|(_, same)| !same).map(|(name, _)| *name).collect();
    let different: Vec<_> = different.into_iter().collect();
    format!("type {} differs in {}", our.kind, different.join(", "))
}

fn digest(value: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

fn ours(path: &Path) -> Result<Vec<Seen>> {
    let mut reader = FileReader::open(path)?;
    let formats: Vec<_> = reader.events().iter().map(|event| event.format).collect();
    let mut seen = Vec::new();
    while let Some(item) = reader.read_next() {
        let RecordingItem::Record(found) = item else { continue };
        let format = formats.get(found.event).context("an event of the file")?;
        seen.push(our_record(found.event, &parse_record(found.bytes, format)?));
    }
    let damages = reader.damages();
    ensure!(damages.is_empty(), "the recording is damaged: {damages:?}");
    Ok(seen)
}

fn our_record(event: usize, record: &Record<'_>) -> Seen {
    let (mut ip, mut chain) = (None, None);
    let rest = match &record.body {
        RecordBody::Sample(sample) => {
            ip = sample.ip;
            chain = sample.callchain.map(|words| (words.len(), digest(words.iter().collect::<Vec<_>>())));
            let registers = sample.user_registers.filter(|registers| registers.abi.is_some());
            let registers: Vec<_> = registers
                .into_iter()
                .flat_map(|registers| (0..64).filter_map(move |register| registers.get(register)))
                .collect();
            let stack = sample.user_stack.filter(|stack| stack.room > 0).map(|stack| stack.bytes);
            digest((sample.period, registers, stack))
        }
        RecordBody::Mmap(map) => digest((map.pid, map.tid, map.address, map.len, map.page_offset, map.path)),
        RecordBody::Comm(comm) => digest((comm.pid, comm.tid, comm.name, comm.exec)),
        RecordBody::Fork(task) | RecordBody::Exit(task) => {
            digest((task.pid, task.tid, task.parent_pid, task.parent_tid, task.time))
        }
        RecordBody::Lost(lost) => digest((lost.id, lost.records)),
        _ => 0,
    };
    let kind = record.header.kind;
    Seen { time: record.id.time, kind, event, task: record.id.task, cpu: record.id.cpu, ip, chain, rest }
}

fn theirs(path: &Path) -> Result<Vec<Seen>> {
    let reader = BufReader::with_capacity(1 << 20, File::open(path)?);
    let PerfFileReader { mut perf_file, mut record_iter } = PerfFileReader::parse_file(reader)?;
    let mut seen = Vec::new();
    while let Some(record) = record_iter.next_record(&mut perf_file)? {
        let PerfFileRecord::EventRecord { attr_index, record } = record else { continue };
        let common = record.common_data()?;
        let (mut ip, mut chain) = (None, None);
        let rest = match record.parse()? {
            EventRecord::Sample(sample) => {
                ip = sample.ip;
                chain = sample.callchain.map(|words| {
                    let words: Vec<u64> = (0..words.len()).filter_map(|at| words.get(at)).collect();
                    (words.len(), digest(words))
                });
                let registers: Vec<_> = sample
                    .user_regs
                    .iter()
                    .flat_map(|registers| (0..64).filter_map(move |register| registers.get(register)))
                    .collect();
                let stack = sample.user_stack.map(|(stack, len)| {
                    let bytes = stack.as_slice();
                    bytes[..bytes.len().min(usize::try_from(len).unwrap_or(usize::MAX))].to_vec()
                });
                digest((sample.period, registers, stack.as_deref()))
            }
            EventRecord::Mmap(map) => {
                let path = &*map.path.as_slice();
                digest((map.pid as u32, map.tid as u32, map.address, map.length, map.page_offset, path))
            }
            EventRecord::Mmap2(map) => {
                let path = &*map.path.as_slice();
                digest((map.pid as u32, map.tid as u32, map.address, map.length, map.page_offset, path))
            }
            EventRecord::Comm(comm) => {
                digest((comm.pid as u32, comm.tid as u32, &*comm.name.as_slice(), comm.is_execve))
            }
            EventRecord::Fork(task) | EventRecord::Exit(task) => {
                digest((task.pid as u32, task.tid as u32, task.ppid as u32, task.ptid as u32, task.timestamp))
            }
            EventRecord::Lost(lost) => digest((lost.id, lost.count)),
            _ => 0,
        };
        seen.push(Seen {
            time: common.timestamp,
            kind: record.record_type.0,
            event: attr_index,
            task: common.pid.zip(common.tid).map(|(pid, tid)| (pid as u32, tid as u32)),
            cpu: common.cpu,
            ip,
            chain,
            rest,
        });
    }
    Ok(seen)
}
