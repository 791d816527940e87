//! The arguments of `nyquist report`.

use crate::args::ReadArgs;
use crate::args::quantity::{percent, whole};
use crate::text::Names;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// `nyquist report`
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("view").multiple(false))]
#[command(after_help = "Examples:
  nyquist report                          The functions with the most self time, of profile.json.gz
  nyquist report p.json.gz --tree         Callers and what they call, as a tree
  nyquist report --inverted --focus malloc    The callers of malloc
  nyquist report p.json.gz --flame        The flame graph, in the terminal
  nyquist report --ratio page-faults/cpu-time    Page faults per second of CPU time, by function
  nyquist report --lines --range 1.2s-3s  The hottest source lines of a part of the recording")]
pub(crate) struct ReportArgs {
    /// The profile, or a recording (perf.data)
    #[arg(default_value = "profile.json.gz")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) view: ViewArgs,
    /// How often event A happened for each event B, by function, as cache-misses/instructions. `cpu-time` stands for
    /// the CPU time
    #[arg(long, value_name = "A/B", conflicts_with_all = ["view", "columns", "depth", "event", "off_cpu", "wall"])]
    pub(crate) ratio: Option<String>,
    /// Leave out what takes less than this share of the whole (trees: 0.5 by default)
    #[arg(long, value_name = "PERCENT", value_parser = |text: &str| percent(text, 0.0..=100.0))]
    pub(crate) percent: Option<f64>,
    /// Show trees to this depth
    #[arg(long, value_name = "N", value_parser = |text: &str| whole::<u32>(text, 1..=u32::MAX))]
    pub(crate) depth: Option<u32>,
    /// Show at most N rows (0: all) [default: 30; trees 200]
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
    /// What the rows are ordered by
    #[arg(long, value_enum, default_value_t, value_name = "COLUMN")]
    pub(crate) sort: SortBy,
    /// The columns, in this order
    #[arg(long, value_enum, value_delimiter = ',', value_name = "COLUMN,...")]
    pub(crate) columns: Vec<ColumnName>,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
    #[command(flatten)]
    pub(crate) read: ReadArgs,
}

/// The view to show. At most one is chosen.
#[derive(Clone, Copy, Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct ViewArgs {
    /// Functions by self and total time (shown by default)
    #[arg(long, group = "view")]
    pub(crate) functions: bool,
    /// The call tree: callers and what they call
    #[arg(long, group = "view")]
    pub(crate) tree: bool,
    /// The inverted tree: from the functions that take the time to their callers
    #[arg(long, group = "view")]
    pub(crate) inverted: bool,
    /// The flame graph, on the whole screen of a terminal; otherwise as text
    #[arg(long, group = "view", conflicts_with = "json")]
    pub(crate) flame: bool,
    /// Source lines
    #[arg(long, group = "view")]
    pub(crate) lines: bool,
    /// Programs and libraries
    #[arg(long, group = "view")]
    pub(crate) libs: bool,
    /// Threads
    #[arg(long, group = "view")]
    pub(crate) threads: bool,
    /// Processes
    #[arg(long, group = "view")]
    pub(crate) processes: bool,
    /// What threads waited for, where, and which thread held it (recorded with `record --off-cpu`)
    #[arg(long, group = "view")]
    pub(crate) waits: bool,
    /// Markers, with their counts and durations
    #[arg(long, group = "view")]
    pub(crate) markers: bool,
}

/// How results are written.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct FormatArgs {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Show names with their generic arguments and parameters
    #[arg(long)]
    pub(crate) full_names: bool,
}

impl FormatArgs {
    /// How names are shown.
    pub(crate) fn names(self) -> Names {
        if self.full_names { Names::Full } else { Names::Short }
    }
}

/// The order of rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum SortBy {
    /// The time in its own code
    #[default]
    #[value(name = "self")]
    Own,
    /// The time with what it calls
    Total,
    /// The name
    Name,
}

/// A column of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColumnName {
    /// The share of the whole in its own code
    #[value(name = "self")]
    SelfShare,
    /// The time in its own code
    SelfTime,
    /// The share of the whole with what it calls
    Total,
    /// The time with what it calls
    TotalTime,
    /// The self share as a bar
    Bar,
    /// The library or program
    Lib,
    /// The function, line, library or thread
    Name,
    /// The source file and line where a function begins
    File,
    /// The handle by which other commands take a function or thread
    Handle,
}
