//! The arguments of `nyquist export`.

use crate::args::ReadArgs;
use clap::{Args, ValueEnum};
use nyquist_profile::firefox::FormatVersion;
use std::path::{Path, PathBuf};

/// `nyquist export`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  nyquist export profile.json.gz -o profile.pb.gz       For pprof
  nyquist export --format folded | flamegraph.pl > f.svg
  nyquist export --thread worker -o worker.speedscope.json
  nyquist export -o profile.parquet                         For DuckDB and other SQL engines
  nyquist export -o perf.data && perf report                For perf
  nyquist export --format viewer -o profile.html            The viewer in one file, to send to others")]
pub(crate) struct ExportArgs {
    /// The profile, of any format that can be read
    #[arg(default_value = "profile.json.gz")]
    pub(crate) file: PathBuf,
    /// The format (default: what the output's name ends in)
    #[arg(short, long, value_enum)]
    pub(crate) format: Option<ExportFormat>,
    /// Write it there ("-": standard output)
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub(crate) output: PathBuf,
    /// Put the thread's name behind the process's (folded)
    #[arg(long)]
    pub(crate) with_threads: bool,
    /// Put the library's name before each function (folded)
    #[arg(long)]
    pub(crate) with_libs: bool,
    /// The version of the Firefox Profiler's format: 66, or 49 for readers of per-thread tables (firefox)
    #[arg(long, value_name = "VERSION", env = "NYQUIST_PROFILE_VERSION", default_value_t)]
    pub(crate) profile_version: FormatVersion,
    #[command(flatten)]
    pub(crate) read: ReadArgs,
}

/// A format that is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// For pprof: .pb.gz, .pprof
    Pprof,
    /// For OpenTelemetry collectors: .otlp
    Otlp,
    /// A trace with the stacks of samples, for Perfetto: .perfetto-trace, .pftrace
    Perfetto,
    /// A Parquet table, for DuckDB, ClickHouse, Spark and other SQL engines: .parquet
    #[cfg(feature = "parquet")]
    Parquet,
    /// Folded stacks, for flamegraph.pl and inferno: .folded, .collapsed
    Folded,
    /// For speedscope: .speedscope.json
    Speedscope,
    /// A Chrome trace, for Perfetto and chrome://tracing: .trace.json
    Chrome,
    /// For the Firefox Profiler: .json.gz, .json
    Firefox,
    /// As `perf script` prints it: .perf
    PerfScript,
    /// For perf report, hotspot and others that read perf's recordings: .data
    #[value(name = "perf.data", alias = "perf-data")]
    PerfData,
    /// For KCachegrind and callgrind_annotate: .callgrind, callgrind.out.*
    Callgrind,
    /// Allocations, for heaptrack_print and heaptrack_gui: .heaptrack
    Heaptrack,
    /// Allocations, for DHAT's viewer: .dhat.json, dhat.out.*
    Dhat,
    /// The table of functions: .csv
    Csv,
    /// A page with the flame graph and the top functions, which opens without a server: .html
    Html,
    /// The built-in viewer with the selected part, as a page that opens without a server: .html
    Viewer,
}

impl ExportFormat {
    /// The format that a file's name asks for.
    pub(crate) fn of_name(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_string_lossy().to_ascii_lowercase();
        let endings = [
            (".speedscope.json", Self::Speedscope),
            (".trace.json", Self::Chrome),
            (".dhat.json", Self::Dhat),
            (".json.gz", Self::Firefox),
            (".json", Self::Firefox),
            (".pb.gz", Self::Pprof),
            (".pprof", Self::Pprof),
            (".otlp", Self::Otlp),
            (".perfetto-trace", Self::Perfetto),
            (".pftrace", Self::Perfetto),
            #[cfg(feature = "parquet")]
            (".parquet", Self::Parquet),
            (".folded", Self::Folded),
            (".collapsed", Self::Folded),
            (".perf", Self::PerfScript),
            (".data", Self::PerfData),
            (".callgrind", Self::Callgrind),
            (".heaptrack", Self::Heaptrack),
            (".csv", Self::Csv),
            (".html", Self::Html),
        ];
        let named = endings.into_iter().find(|(ending, _)| name.ends_with(ending)).map(|(_, format)| format);
        // The default names of callgrind's and DHAT's files end with the process id.
        let with_id = [("callgrind.out", Self::Callgrind), ("dhat.out", Self::Dhat)];
        let begun = || with_id.into_iter().find(|(start, _)| name.starts_with(start));
        named.or_else(|| begun().map(|(_, format)| format))
    }

    /// Whether it has allocations and nothing else.
    pub(crate) fn is_of_allocations(self) -> bool {
        matches!(self, Self::Heaptrack | Self::Dhat)
    }

    /// Whether it is not for a terminal.
    pub(crate) fn is_binary(self) -> bool {
        #[cfg(feature = "parquet")]
        if self == Self::Parquet {
            return true;
        }
        matches!(self, Self::Pprof | Self::Otlp | Self::Perfetto | Self::Firefox | Self::PerfData)
    }

    /// Whether a file of it is JSON, if it is text at all.
    pub(crate) fn is_json(self) -> bool {
        matches!(self, Self::Speedscope | Self::Chrome | Self::Firefox | Self::Dhat)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_formats() {
        let check =
            |name: &str, expected| assert_eq!(ExportFormat::of_name(Path::new(name)), expected, "{name}");
        check("/tmp/x.pb.gz", Some(ExportFormat::Pprof));
        check("x.speedscope.JSON", Some(ExportFormat::Speedscope));
        check("x.trace.json", Some(ExportFormat::Chrome));
        check("x.json.gz", Some(ExportFormat::Firefox));
        check("x.json", Some(ExportFormat::Firefox));
        check("x.html", Some(ExportFormat::Html));
        check("x.otlp", Some(ExportFormat::Otlp));
        check("x.perfetto-trace", Some(ExportFormat::Perfetto));
        check("x.pftrace", Some(ExportFormat::Perfetto));
        check("x.perf", Some(ExportFormat::PerfScript));
        check("perf.data", Some(ExportFormat::PerfData));
        check("x.callgrind", Some(ExportFormat::Callgrind));
        check("/tmp/callgrind.out.77", Some(ExportFormat::Callgrind));
        #[cfg(feature = "parquet")]
        check("x.parquet", Some(ExportFormat::Parquet));
        check("x.heaptrack", Some(ExportFormat::Heaptrack));
        check("x.dhat.json", Some(ExportFormat::Dhat));
        check("dhat.out.77", Some(ExportFormat::Dhat));
        check("x.svg", None);
        check("-", None);
    }
}
