//! The arguments of `nyquist import`, and the options for recordings that all reading commands have.

use crate::args::{RowArgs, ServerArgs, SymbolArgs, TimeRange, Verbosity};
use clap::Args;
use nyquist_convert::Selection;
use nyquist_convert::event::{Pid, Tid};
use nyquist_object::elf::Architecture;
use nyquist_profile::firefox::FormatVersion;
use std::path::PathBuf;

/// `nyquist import`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  nyquist import perf.data -s -o profile.json.gz      Convert a recording of `perf record`
  perf record -o - ./app | nyquist import - -s        Convert it while it is made
  nyquist import perf.data --event page-faults        Show where pages were first touched
  nyquist import app.pprof -s                         Convert a profile of pprof, as all that `load` takes")]
pub(crate) struct ImportArgs {
    /// The recording (perf.data, a file or a folder) or a profile of another program ("-": standard input)
    pub(crate) file: PathBuf,
    /// Save the profile there, in the format that the name ends in ("-": standard output)
    #[arg(short, long, value_name = "FILE", default_value = "profile.json.gz")]
    pub(crate) output: PathBuf,
    /// Save the profile and end, without serving it
    #[arg(short, long)]
    pub(crate) save_only: bool,
    /// The version of the Firefox Profiler's format to write: 66, or 49 for readers of per-thread tables
    #[arg(long, value_name = "VERSION", env = "NYQUIST_PROFILE_VERSION", default_value_t)]
    pub(crate) profile_version: FormatVersion,
    #[command(flatten)]
    pub(crate) recording: RecordingArgs,
    #[command(flatten)]
    pub(crate) symbols: SymbolArgs,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    #[command(flatten)]
    pub(crate) verbosity: Verbosity,
}

/// Options for reading a recording that another program made. Not for saved profiles.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Of a recording (perf.data)")]
pub(crate) struct RecordingArgs {
    /// Only samples of this process (may be repeated)
    #[arg(long, value_name = "PID", value_delimiter = ',')]
    pub(crate) pid: Vec<u32>,
    /// Only samples of this thread (may be repeated)
    #[arg(long, value_name = "TID", value_delimiter = ',')]
    pub(crate) tid: Vec<u32>,
    /// Only samples of processes and threads of this name (may be repeated)
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Vec<String>,
    /// Only samples between these times, counted from the first sample: 1.5s-2s, 200ms-, -3s
    #[arg(long, value_name = "FROM-TO", allow_hyphen_values = true)]
    pub(crate) time_range: Option<TimeRange>,
    /// Only samples on this CPU (may be repeated)
    #[arg(long, value_name = "CPU", value_delimiter = ',')]
    pub(crate) cpu: Vec<u32>,
    /// Only samples of this event (may be repeated; default: the first clock or cycle counter); if the
    /// samples of another profiler's file have several values, this value, as alloc_space or jdk.ThreadPark
    #[arg(long, value_name = "EVENT")]
    pub(crate) event: Vec<String>,
    /// Only samples of a pprof or OpenTelemetry file that have this label, as method=GET, or of any value, as method (may be repeated)
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) label: Vec<String>,
    /// The profile's name (default: the recorded command's)
    #[arg(long, value_name = "NAME")]
    pub(crate) profile_name: Option<String>,
    /// Look in this folder for jitdumps, perf maps and marker files that are not where they were (may be repeated)
    #[arg(long, value_name = "DIR")]
    pub(crate) aux_file_dir: Vec<PathBuf>,
    /// The architecture that was recorded, where the recording does not say it: x86_64, x86, aarch64
    #[arg(long, value_name = "ARCH", value_parser = architecture)]
    pub(crate) override_arch: Option<Architecture>,
    /// Keep addresses, and look up no names
    #[arg(long)]
    pub(crate) no_symbols: bool,
    #[command(flatten)]
    pub(crate) rows: RowArgs,
}

impl RecordingArgs {
    /// Which samples are wanted.
    pub(crate) fn selection(&self) -> Selection {
        Selection {
            pids: self.pid.iter().copied().map(Pid).collect(),
            tids: self.tid.iter().copied().map(Tid).collect(),
            names: self.name.clone(),
            cpus: self.cpu.clone(),
            time: self.time_range.map(TimeRange::times),
        }
    }

    /// An option that was given and leaves samples out.
    pub(crate) fn selecting(&self) -> Option<&'static str> {
        let others = [
            "--event",
            "--profile-name",
            "--aux-file-dir",
            "--override-arch",
            "--no-symbols",
            "--reuse-threads",
            "--fold-recursive-prefix",
            "--per-cpu-threads",
            "--main-thread-only",
            "--cswitch-markers",
            "--jit-markers",
        ];
        self.given_other_than(&others)
    }

    /// The name of an option that was given, other than these. A saved profile lacks the data that the others
    /// need.
    pub(crate) fn given_other_than(&self, others: &[&str]) -> Option<&'static str> {
        let options = [
            ("--pid", !self.pid.is_empty()),
            ("--tid", !self.tid.is_empty()),
            ("--name", !self.name.is_empty()),
            ("--time-range", self.time_range.is_some()),
            ("--cpu", !self.cpu.is_empty()),
            ("--event", !self.event.is_empty()),
            ("--label", !self.label.is_empty()),
            ("--profile-name", self.profile_name.is_some()),
            ("--aux-file-dir", !self.aux_file_dir.is_empty()),
            ("--override-arch", self.override_arch.is_some()),
            ("--no-symbols", self.no_symbols),
            ("--reuse-threads", self.rows.reuse_threads),
            ("--fold-recursive-prefix", self.rows.fold_recursive_prefix),
            ("--per-cpu-threads", self.rows.per_cpu_threads),
            ("--main-thread-only", self.rows.main_thread_only),
            ("--cswitch-markers", self.rows.cswitch_markers),
            ("--jit-markers", self.rows.jit_markers),
        ];
        options.into_iter().find(|(name, given)| *given && !others.contains(name)).map(|(name, _)| name)
    }
}

/// Reads the name of an architecture, in any of the spellings that kernels, compilers and Android have for it.
fn architecture(name: &str) -> Result<Architecture, String> {
    match name.to_ascii_lowercase().as_str() {
        "x86_64" | "x86-64" | "amd64" | "x64" => Ok(Architecture::X86_64),
        "x86" | "i386" | "i686" => Ok(Architecture::X86),
        "aarch64" | "arm64" => Ok(Architecture::Aarch64),
        _ => Err("the registers of x86_64, x86 and aarch64 are known".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn architectures_have_several_names() {
        for (name, expected) in
            [("arm64", Architecture::Aarch64), ("AMD64", Architecture::X86_64), ("i686", Architecture::X86)]
        {
            assert_eq!(architecture(name), Ok(expected), "{name}");
        }
        assert!(architecture("mips").is_err());
    }
}
