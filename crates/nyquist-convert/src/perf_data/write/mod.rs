//! Writes a profile as a perf.data file, with call chains. Perf, hotspot and samply show it like a recording
//! of perf's own.

mod chains;
mod code;
mod events;
mod options;
mod stand_in;
mod tasks;

use std::io::{self, Seek, Write};

use nyquist_perf::file::{ClockMoment, Features, FileBuildId, FileWriter};
use nyquist_perf::{ByteOrder, RecordFormat, RecordId};
use nyquist_profile::{Meta, Profile};

use chains::Chains;
use code::Code;
use events::{OFF_CPU_ID, SAMPLES_ID, events};
pub use options::WriteOptions;
pub use stand_in::StandIn;
use tasks::{TaskEvent, TaskEventKind, task_events};

/// The profile's zero on the clock of the file, in nanoseconds. It is not 0, because no record may have the
/// time 0.
const ZERO: u64 = 1_000_000_000;
/// After how many records the file states that all older ones have come.
const ROUND: usize = 10_000;

/// Writes a profile as a perf.data file, and returns the file and the stand-ins that belong to it.
///
/// A sample becomes one of `cpu-clock`, with its weight in nanoseconds as its period. A sample of waiting
/// becomes one of `offcpu-time`. Samples that count something else become samples of an event with that name,
/// whose periods are the counts. If a lib's binary is found, its addresses are in a mapping of that binary.
/// So perf names them by the binary's own symbols, inlined functions included. All other functions of
/// programs get their own addresses in a [stand-in](StandIn), which only has their names. Functions of the
/// kernel do too, and their stand-in is mapped as a kernel module. `KSYMBOL` records also name them, for
/// readers that only have the recording. Markers and counters have no place in the format.
///
/// Takes time linear in the samples' frames, and memory linear in samples and stacks.
pub fn write_profile<W: Write + Seek>(
    profile: &Profile,
    options: WriteOptions<'_>,
    out: W,
) -> io::Result<(W, Vec<StandIn>)> {
    let code = Code::of(profile, options);
    let tasks = task_events(profile);
    let events = events(profile, code.has_kernel());
    let writer = ProfileWriter {
        profile,
        format: events.first().map(|event| event.attr.record_format(ByteOrder::Little)).unwrap_or_default(),
        file: FileWriter::new(out, events)?,
        chains: Chains::new(profile, &code),
        code: &code,
        records: 0,
        samples: None,
    };
    let out = writer.write(&tasks)?;
    Ok((out, code.into_stand_ins()))
}

/// The file that is being written.
struct ProfileWriter<'a, W> {
    profile: &'a Profile,
    code: &'a Code,
    chains: Chains<'a>,
    file: FileWriter<W>,
    format: RecordFormat,
    /// How many records were written.
    records: usize,
    /// The times of the first and the last sample.
    samples: Option<(u64, u64)>,
}

impl<W: Write + Seek> ProfileWriter<'_, W> {
    fn write(mut self, tasks: &[TaskEvent<'_>]) -> io::Result<W> {
        if self.code.has_kernel() {
            for mapping in self.code.kernel_mappings() {
                let record = self.format.encode_mmap(&mapping, 1, &at(0, None));
                self.put(&record)?;
            }
        }
        for symbol in self.code.kernel_symbols() {
            let place = (symbol.address.0, symbol.len);
            let record = self.format.encode_kernel_symbol(place, symbol.name.as_bytes(), &at(0, None));
            self.put(&record)?;
        }
        for task in tasks {
            self.task(task)?;
        }
        let features = features(self.profile, self.code.build_ids(), self.samples);
        self.file.finish(&features)
    }

    fn task(&mut self, task: &TaskEvent<'_>) -> io::Result<()> {
        let ids = (task.pid, task.tid);
        let at = at(task.time, Some(ids));
        match task.kind {
            TaskEventKind::Fork { parent } => {
                let record = self.format.encode_fork(&kernel_task(ids, parent, task.time), &at);
                self.put(&record)
            }
            TaskEventKind::Name(name) => self.put(&self.format.encode_comm(ids, name.as_bytes(), false, &at)),
            TaskEventKind::Mappings(process) => {
                let images = self.chains.images_of(process);
                let code = self.code;
                for mapping in code.mappings(&images, task.pid) {
                    let record = self.format.encode_mmap(&mapping, 2, &at);
                    self.put(&record)?;
                }
                Ok(())
            }
            TaskEventKind::Sample(thread, place) => self.sample(task, thread as usize, place as usize),
            TaskEventKind::End => {
                let record = self.format.encode_exit(&kernel_task(ids, ids, task.time), &at);
                self.put(&record)
            }
        }
    }

    fn sample(&mut self, task: &TaskEvent<'_>, thread: usize, place: usize) -> io::Result<()> {
        let Some(sample) = self.profile.threads().get(thread).and_then(|thread| thread.samples.get(place))
        else {
            return Ok(());
        };
        let time = ZERO.saturating_add(task.time);
        let (first, last) = self.samples.unwrap_or((time, time));
        self.samples = Some((first.min(time), last.max(time)));
        let number = if sample.off_cpu { OFF_CPU_ID } else { SAMPLES_ID };
        let period = sample.weight.saturating_mul(self.profile.meta().interval.max(1));
        let id = RecordId { id: Some(number), ..at(task.time, Some((task.pid, task.tid))) };
        let chain = self.chains.chain(sample.stack);
        let record = self.format.encode_sample(chain.mode, (chain.ip, period), chain.words, &id);
        self.put(&record)
    }

    fn put(&mut self, record: &[u8]) -> io::Result<()> {
        self.file.write_records(record)?;
        self.records += 1;
        // Records are in the order of their times.
        if self.records.is_multiple_of(ROUND) { self.file.finish_round() } else { Ok(()) }
    }
}

fn at(time: u64, task: Option<(u32, u32)>) -> RecordId {
    let time = Some(ZERO.saturating_add(time));
    RecordId { task, time, id: Some(SAMPLES_ID), ..RecordId::default() }
}

fn kernel_task(
    (pid, tid): (u32, u32),
    (parent_pid, parent_tid): (u32, u32),
    time: u64,
) -> nyquist_perf::Task {
    nyquist_perf::Task { pid, parent_pid, tid, parent_tid, time: ZERO.saturating_add(time) }
}

/// The file's description of the recording and the machine, as far as the profile has it.
fn features(profile: &Profile, build_ids: Vec<FileBuildId>, samples: Option<(u64, u64)>) -> Features {
    let meta = profile.meta();
    Features {
        hostname: extra(meta, "Machine"),
        os_release: kernel_release(meta),
        version: Some(format!("nyquist {}", env!("CARGO_PKG_VERSION"))),
        arch: arch(profile),
        cpus: meta.logical_cpus.map(|cpus| (cpus, cpus)),
        cpu_name: meta.cpu_name.clone(),
        memory_kb: meta.main_memory.map(|bytes| bytes / 1024),
        command_line: command_line(meta),
        sample_time: samples,
        clock: Some(ClockMoment { clock: 1, wall_ns: meta.start_time.saturating_mul(1000), clock_ns: ZERO }),
        build_ids,
        ..Features::default()
    }
}

fn extra(meta: &Meta, label: &str) -> Option<String> {
    meta.extra.iter().find(|line| line.label == label).map(|line| line.value.clone())
}

/// The words behind `Linux` in the name of the kernel, or in the name of the system, where some profiles have
/// the kernel.
fn kernel_release(meta: &Meta) -> Option<String> {
    let kernel = extra(meta, "Kernel").or_else(|| meta.oscpu.clone())?;
    let (_, release) = kernel.rsplit_once("Linux ")?;
    Some(release.split_whitespace().next()?.to_owned())
}

/// The recorder's command line as perf writes it, which ends with the recorded command.
fn command_line(meta: &Meta) -> Vec<String> {
    let recorded = meta.arguments.as_deref().unwrap_or(&meta.product);
    let recorder = ["nyquist", "record", "--"].into_iter().map(str::to_owned);
    recorder.chain(recorded.split_whitespace().map(str::to_owned)).collect()
}

/// The architecture as `uname -m` prints it.
fn arch(profile: &Profile) -> Option<String> {
    let of_libs = profile.libs().iter().find_map(|lib| lib.arch.as_deref());
    let abi = profile.meta().abi.as_deref().and_then(|abi| abi.split('-').next());
    let name = match abi.or(of_libs)? {
        "arm64" | "aarch64" => "aarch64",
        "x86" => "i686",
        name => name,
    };
    Some(name.to_owned())
}

#[cfg(test)]
mod tests;
