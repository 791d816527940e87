//! What is known of the recording and of the machine.

use crate::measure::Measure;

/// What is known of the recording and of the machine.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Meta {
    /// What was recorded, as the title shows it.
    pub product: String,
    /// The sampling interval in ns: what a sample of weight 1 stands for. If samples count no time, it is a
    /// number of bytes or things.
    pub interval: u64,
    /// What samples count.
    pub measure: Measure,
    /// The profile's zero, in µs since 1970-01-01 UTC.
    pub start_time: u64,
    /// When sampling began, in ns since the profile's zero.
    pub profiling_start: Option<u64>,
    /// When sampling ended, in ns since the profile's zero. What is at this time or later is not in the range
    /// that the Firefox Profiler shows.
    pub profiling_end: Option<u64>,
    /// Whether names are those of symbols. If not, the Firefox Profiler asks a symbol server.
    pub symbolicated: bool,
    /// Whether each sample stands for exactly the stretch of time of its weight that ends at it, as in traces, so that a part
    /// of a sample is known, too. If not, samples were taken now and then, and what they stand for is an estimate.
    pub has_exact_times: bool,
    /// Whether the samples' CPU deltas were measured.
    pub has_cpu_deltas: bool,
    /// The recorded command line.
    pub arguments: Option<String>,
    /// The system and its version, in a few words, as `Debian 12`: the front end has it in the page's title.
    pub oscpu: Option<String>,
    /// The kind of system, as `Linux`.
    pub platform: Option<String>,
    /// The machine's ABI, as `x86_64-gcc3` or `x86_64`.
    pub abi: Option<String>,
    /// The CPU's name.
    pub cpu_name: Option<String>,
    /// How many logical CPUs there are.
    pub logical_cpus: Option<u32>,
    /// How many cores there are.
    pub physical_cpus: Option<u32>,
    /// The memory in bytes.
    pub main_memory: Option<u64>,
    /// What wrote the profile or the file that it was imported from, as `nyquist 0.1.0`.
    pub imported_from: Option<String>,
    /// How many samples were lost on the way from the kernel.
    pub lost_samples: u64,
    /// More that the profile's information panel shows.
    pub extra: Vec<ExtraInfo>,
}

/// A line of the profile's information panel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtraInfo {
    /// The heading that it is below. Lines of the same heading are together.
    pub section: String,
    /// What it is.
    pub label: String,
    /// What is said.
    pub value: String,
}
