//! Facts about the recording and the machine.

use crate::measure::Measure;

/// Facts about the recording and the machine.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Meta {
    /// The recorded program, for the title.
    pub product: String,
    /// The sampling interval in ns: the time that a sample of weight 1 stands for. If samples do not
    /// measure time, it is a number of bytes or items.
    pub interval: u64,
    /// What samples measure.
    pub measure: Measure,
    /// The mean distance of samples in bytes, if samples are allocations that were chosen by chance. Then the
    /// weights are estimates.
    pub sample_distance: Option<u64>,
    /// The profile's zero, in µs since 1970-01-01 UTC.
    pub start_time: u64,
    /// The start of sampling, in ns since the profile's zero.
    pub profiling_start: Option<u64>,
    /// The end of sampling, in ns since the profile's zero. The range that the Firefox Profiler shows ends
    /// before this time.
    pub profiling_end: Option<u64>,
    /// Whether addresses have been resolved to symbols. If not, the Firefox Profiler queries a symbol server.
    pub symbolicated: bool,
    /// Whether each sample stands for exactly the time of its weight that ends at it, as in traces. Then a
    /// part of a sample is meaningful, too. Otherwise samples were taken periodically, and their times are
    /// estimates.
    pub has_exact_times: bool,
    /// Whether the samples' CPU deltas were measured.
    pub has_cpu_deltas: bool,
    /// The recorded command line.
    pub arguments: Option<String>,
    /// The system and its version, in a few words such as `Debian 12`. The front end shows it in the
    /// page's title.
    pub oscpu: Option<String>,
    /// The kind of system, such as `Linux`.
    pub platform: Option<String>,
    /// The machine's ABI, such as `x86_64-gcc3` or `x86_64`.
    pub abi: Option<String>,
    /// The CPU's name.
    pub cpu_name: Option<String>,
    /// The number of logical CPUs.
    pub logical_cpus: Option<u32>,
    /// The number of cores.
    pub physical_cpus: Option<u32>,
    /// The memory in bytes.
    pub main_memory: Option<u64>,
    /// The program that wrote the profile or the imported file, such as `nyquist 0.1.0`.
    pub imported_from: Option<String>,
    /// The number of samples lost between the kernel and the recorder.
    pub lost_samples: u64,
    /// Additional lines of the profile's information panel.
    pub extra: Vec<ExtraInfo>,
}

/// A line of the profile's information panel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtraInfo {
    /// Its heading. Lines with the same heading are grouped.
    pub section: String,
    /// Its label.
    pub label: String,
    /// Its text.
    pub value: String,
}
