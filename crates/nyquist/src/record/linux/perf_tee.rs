//! `record --perf-data`: keeps the kernel's records as a perf.data file, beside the profile.

use crate::failure::Failure;
use crate::output::{Destination, Output};
use crate::printer::Printer;
use nyquist_convert::ProcessFilter;
use nyquist_convert::event::{Event, Timestamp};
use nyquist_convert::perf_data::RecordingWriter;
use nyquist_object::BuildId;
use nyquist_perf::file::{ClockMoment, Features};
use nyquist_profile::Meta;
use nyquist_record::linux::backend::Recording;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write as _};
use std::path::Path;

/// The facts about a recording at its end.
pub(crate) struct RecordingFacts<'a> {
    pub(crate) meta: &'a Meta,
    pub(crate) start: Timestamp,
    /// The build ids of the mapped files, by path.
    pub(crate) build_ids: Vec<(String, BuildId)>,
}

/// The file that is written during the recording, and gets its name when it is complete. If writing fails,
/// the recording continues.
pub(crate) struct PerfTee {
    output: Output,
    state: Result<RecordingWriter<BufWriter<File>>, io::Error>,
}

impl PerfTee {
    /// Opens the file, before the program is started.
    pub(crate) fn open(path: &Path) -> Result<Output, Failure> {
        let opened = Destination::find_seekable(path).and_then(Destination::open);
        opened.map_err(|refused| refused.failure(path, "--perf-data"))
    }

    /// Writes the file's header with the events of a recording; only requested samples are kept. Fails if the
    /// records do not come from the kernel.
    pub(crate) fn begin(
        output: Output,
        recording: &Recording,
        requested: ProcessFilter,
    ) -> Result<Self, Failure> {
        let Recording::Perf(recording) = recording else {
            return Err(Failure::new("a recording by ptrace cannot be saved as perf.data")
                .hint("leave out --perf-data, or permit perf_event_open"));
        };
        let file = output.file();
        let state = file.and_then(|file| {
            let out = BufWriter::with_capacity(1 << 20, file);
            RecordingWriter::new(out, recording.written_events()?, recording.counters())
        });
        let state = state.map(|writer| writer.keeping_only(requested));
        Ok(Self { output, state })
    }

    /// Writes a chunk. `events` are the decoded events of its records.
    pub(crate) fn write(&mut self, records: Option<&[u8]>, events: &[Event], complete_before: Timestamp) {
        if let Ok(writer) = &mut self.state {
            let written = match records {
                Some(records) => writer.write_records(records, events, complete_before),
                None => writer.write_events(events),
            };
            if let Err(error) = written {
                self.state = Err(error);
            }
        }
    }

    /// Finishes the file and prints that.
    ///
    /// # Errors
    /// If it could not be written. The profile can still be saved.
    pub(crate) fn finish(self, about: &RecordingFacts<'_>, printer: Printer) -> Result<(), Failure> {
        let path = self.output.name().to_owned();
        let finished = self.state.and_then(|mut writer| {
            writer.note_build_ids(about.build_ids.iter().cloned());
            writer.finish(features(about.meta, about.start))?.flush()
        });
        finished.and_then(|()| self.output.appear()).map_err(|error| Failure::cannot_write(&path, &error))?;
        printer.say(format_args!("Saved {}", path.display()));
        Ok(())
    }
}

/// The file's description of the recording and of the machine. Its zero is that of the profile.
fn features(meta: &Meta, start: Timestamp) -> Features {
    let read = |path: &str| fs::read_to_string(path).map(|text| text.trim().to_owned()).ok();
    let cpus = meta.logical_cpus.unwrap_or(1);
    Features {
        hostname: read("/proc/sys/kernel/hostname"),
        os_release: read("/proc/sys/kernel/osrelease"),
        version: Some(format!("nyquist {}", env!("CARGO_PKG_VERSION"))),
        arch: Some(std::env::consts::ARCH.to_owned()),
        cpus: Some((cpus, cpus)),
        cpu_name: meta.cpu_name.clone(),
        memory_kb: meta.main_memory.map(|bytes| bytes / 1024),
        command_line: std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect(),
        clock: Some(ClockMoment {
            clock: 1,
            wall_ns: meta.start_time.saturating_mul(1000),
            clock_ns: start.0,
        }),
        ..Features::default()
    }
}
