//! The known formats, and what their readers can do.

use std::fmt;

/// A known format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// The Firefox Profiler's, read by `nyquist-profile`.
    Firefox,
    /// `perf.data` of perf or simpleperf.
    PerfData,
    /// The output of `perf script`.
    PerfScript,
    /// pprof.
    Pprof,
    /// Folded stacks.
    Folded,
    /// speedscope.
    Speedscope,
    /// A CPU profile of V8.
    V8CpuProfile,
    /// A CPU profile of V8 as Node.js up to version 6 made it.
    V8OldCpuProfile,
    /// A Chrome trace.
    ChromeTrace,
    /// A table of Instruments from `xctrace export`.
    Instruments,
    /// A recording of Java Flight Recorder.
    Jfr,
    /// Profiles of OpenTelemetry.
    Otlp,
    /// A trace of Perfetto.
    Perfetto,
    /// A CPU profile of gperftools.
    GperftoolsCpu,
    /// A profile of Go or gperftools as text.
    PprofText,
    /// A Windows event trace, read by `nyquist-etw`.
    Etl,
    /// Costs of callgrind or cachegrind.
    Callgrind,
    /// A sampled heap profile of V8.
    V8HeapProfile,
    /// Austin's text.
    Austin,
    /// Austin's binary form.
    AustinMojo,
    /// stackprof's JSON.
    Stackprof,
    /// A file of Python's cProfile.
    Pstats,
    /// pyinstrument's JSON.
    Pyinstrument,
    /// The output of macOS' `sample`.
    MacSample,
    /// The output of DTrace: stacks with counts.
    Dtrace,
    /// The output of bpftrace: stacks with counts.
    Bpftrace,
    /// heaptrack's data.
    Heaptrack,
    /// DHAT's JSON.
    Dhat,
    /// Profiles of OpenTelemetry as JSON.
    OtlpJson,
    /// A trace of .NET's EventPipe.
    NetTrace,
    /// simpleperf's report as protobuf.
    SimpleperfReport,
    /// A method trace of Android's runtime.
    ArtTrace,
    /// V8's log (`--prof`).
    V8Log,
    /// GHC's profile as JSON.
    GhcJson,
    /// VTune's tree of calls as a table.
    Vtune,
    /// Visual Studio's tree of calls as a table.
    VisualStudio,
    /// The graph of calls of FreeBSD's pmcstat.
    Pmcstat,
    /// A timeline of Safari.
    Safari,
    /// A recording of the performance panel that Firefox had.
    FirefoxPanel,
    /// A capture of sysprof.
    Sysprof,
    /// A Parquet table.
    Parquet,
    /// A list of Go's goroutines (`debug=2`), which is not read.
    GoText,
    /// Go's execution trace, which is not read.
    GoTrace,
    /// The output of `ls -l`, which is no profile.
    FileList,
    /// What `pprof -raw` prints of a profile.
    PprofRaw,
    /// GHC's report of a profile (`.prof`).
    GhcReport,
    /// Names with numbers, which are no stacks.
    Numbers,
}

impl fmt::Display for Format {
    /// The name with its article, such as `a pprof profile`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Firefox => "a profile of the Firefox Profiler",
            Self::PerfData => "a perf.data file",
            Self::PerfScript => "the output of perf script",
            Self::Pprof => "a pprof profile",
            Self::Folded => "a file of folded stacks",
            Self::Speedscope => "a speedscope profile",
            Self::V8CpuProfile | Self::V8OldCpuProfile => "a CPU profile of V8",
            Self::ChromeTrace => "a Chrome trace",
            Self::Instruments => "an export of Instruments",
            Self::Jfr => "a JFR recording",
            Self::Otlp | Self::OtlpJson => "a profile of OpenTelemetry",
            Self::Perfetto => "a trace of Perfetto",
            Self::GperftoolsCpu => "a CPU profile of gperftools",
            Self::PprofText => "a profile as text",
            Self::Etl => "a Windows event trace (.etl)",
            Self::Callgrind => "a file of callgrind",
            Self::V8HeapProfile => "a heap profile of V8",
            Self::Austin => "a file of Austin",
            Self::AustinMojo => "a binary file of Austin",
            Self::Stackprof => "a profile of stackprof",
            Self::Pstats => "a file of Python's cProfile",
            Self::Pyinstrument => "a profile of pyinstrument",
            Self::MacSample => "the output of sample",
            Self::Dtrace => "the output of DTrace",
            Self::Bpftrace => "the output of bpftrace",
            Self::Heaptrack => "data of heaptrack",
            Self::Dhat => "a file of DHAT",
            Self::NetTrace => "a trace of .NET (.nettrace)",
            Self::SimpleperfReport => "a report of simpleperf",
            Self::ArtTrace => "a method trace of Android",
            Self::V8Log => "a log of V8",
            Self::GhcJson => "a profile of GHC",
            Self::Vtune => "a table of VTune",
            Self::VisualStudio => "a call tree of Visual Studio",
            Self::Pmcstat => "a call graph of pmcstat",
            Self::Safari => "a timeline of Safari",
            Self::FirefoxPanel => "a recording of Firefox' performance panel",
            Self::Sysprof => "a capture of sysprof",
            Self::GoTrace => "an execution trace of Go",
            Self::Parquet => "a Parquet table",
            Self::GoText => "a list of goroutines",
            Self::FileList => "a list of files",
            Self::PprofRaw => "the text that pprof -raw prints",
            Self::GhcReport => "a report of GHC's profiler (.prof)",
            Self::Numbers => "a list of names and numbers",
        })
    }
}

impl Format {
    /// The formats that [`read`](crate::read) supports.
    pub const READ: &[Self] = &[
        Self::PerfScript,
        Self::Pprof,
        Self::Folded,
        Self::Speedscope,
        Self::V8CpuProfile,
        Self::ChromeTrace,
        Self::Instruments,
        Self::Callgrind,
        Self::V8HeapProfile,
        Self::Austin,
        Self::Stackprof,
        Self::Pstats,
        Self::Pyinstrument,
        Self::MacSample,
        Self::Dtrace,
        Self::Bpftrace,
        Self::Heaptrack,
        Self::Dhat,
        Self::Jfr,
        Self::Otlp,
        Self::Perfetto,
        Self::GperftoolsCpu,
        Self::PprofText,
        Self::AustinMojo,
        Self::V8OldCpuProfile,
        Self::OtlpJson,
        Self::NetTrace,
        Self::SimpleperfReport,
        Self::ArtTrace,
        Self::V8Log,
        Self::GhcJson,
        Self::Vtune,
        Self::VisualStudio,
        Self::GhcReport,
        Self::Pmcstat,
        Self::Safari,
        Self::FirefoxPanel,
        Self::Sysprof,
        #[cfg(feature = "parquet")]
        Self::Parquet,
    ];

    /// Whether samples may have several values, of which [`read_value`](crate::read_value) reads one by its
    /// name.
    pub fn has_values(self) -> bool {
        matches!(
            self,
            Self::Pprof
                | Self::PerfScript
                | Self::Jfr
                | Self::Otlp
                | Self::OtlpJson
                | Self::Perfetto
                | Self::PprofText
                | Self::Callgrind
                | Self::Austin
                | Self::AustinMojo
                | Self::Bpftrace
                | Self::Heaptrack
                | Self::Dhat
                | Self::NetTrace
                | Self::SimpleperfReport
                | Self::ArtTrace
                | Self::GhcJson
                | Self::GhcReport
                | Self::VisualStudio
                | Self::Pmcstat
                | Self::Parquet
        )
    }

    /// Whether [`read_in_pieces`](crate::read_in_pieces) reads it.
    pub fn is_read_in_pieces(self) -> bool {
        matches!(self, Self::PerfScript | Self::Folded | Self::V8CpuProfile)
    }

    /// Whether its samples can have labels, by which they can be selected.
    pub fn has_labels(self) -> bool {
        matches!(self, Self::Pprof | Self::Otlp | Self::OtlpJson | Self::Parquet)
    }

    /// Whether its files are binary. Text files might have another encoding.
    pub(crate) fn is_binary(self) -> bool {
        matches!(
            self,
            Self::Pprof
                | Self::Jfr
                | Self::Otlp
                | Self::Perfetto
                | Self::GperftoolsCpu
                | Self::Pstats
                | Self::AustinMojo
                | Self::NetTrace
                | Self::SimpleperfReport
                | Self::ArtTrace
                | Self::Sysprof
                | Self::Parquet
        )
    }

    /// Why a file of this format is not read by [`read`](crate::read), and what to do instead.
    pub(crate) fn unsupported_reason(self) -> String {
        let advice = match self {
            Self::GoText => "with each on its own: get it with debug=1, or without it, then it is a profile",
            Self::GoTrace => {
                "which has more than a profile: `go tool trace -pprof=TYPE FILE` makes profiles of it"
            }
            Self::FileList => "as ls -l prints it, and no profile",
            Self::PprofRaw => "and no profile: give the file that was printed, which can be read",
            Self::Numbers => "such as `size: 40`, and no stacks with counts",
            Self::Parquet => "which this build cannot read: it was made without the feature `parquet`",
            _ => "which cannot be read here",
        };
        format!("it is {self}, {advice}")
    }
}
