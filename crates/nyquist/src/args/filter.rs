//! The filters, the same flags in every command that reads a profile.

use crate::args::TimeRange;
use clap::Args;

/// The selected part of a profile.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Filters")]
pub(crate) struct FilterArgs {
    /// Only these threads: a thread's id, its handle (t-3), its name, or a regex for names (may be repeated)
    #[arg(long, value_name = "THREAD")]
    pub(crate) thread: Vec<String>,
    /// Only these processes: a process's id, its name, or a regex for names (may be repeated)
    #[arg(long, value_name = "PROCESS")]
    pub(crate) process: Vec<String>,
    /// Only time spent in the code of these libraries: a name or a regex (may be repeated)
    #[arg(long, value_name = "LIB")]
    pub(crate) lib: Vec<String>,
    /// Only this part of the recording, as 1.2s-3s, 500ms-, -250us (seconds where no unit is given)
    #[arg(long, value_name = "START-END", allow_hyphen_values = true)]
    pub(crate) range: Option<TimeRange>,
    /// Only samples with a frame whose function, file or library this regex matches (may be repeated)
    #[arg(long, value_name = "REGEX")]
    pub(crate) focus: Vec<String>,
    /// Leave out samples with a frame that this regex matches (may be repeated)
    #[arg(long, value_name = "REGEX")]
    pub(crate) ignore: Vec<String>,
    /// Show only frames that this regex matches (may be repeated)
    #[arg(long, value_name = "REGEX")]
    pub(crate) show: Vec<String>,
    /// Hide frames that this regex matches; their time goes to their callers (may be repeated)
    #[arg(long, value_name = "REGEX")]
    pub(crate) hide: Vec<String>,
    /// Functions as they were compiled: the time of an inlined function belongs to the function that holds its code
    #[arg(long)]
    pub(crate) no_inline: bool,
    /// Only time spent in code of these categories, as User or Kernel: a name or a regex (may be repeated)
    #[arg(long, value_name = "CATEGORY")]
    pub(crate) category: Vec<String>,
    /// How often this event happened, instead of CPU time: an event recorded with -e, or a value of another
    /// profiler's file by its name, as alloc_space
    #[arg(long, value_name = "EVENT", conflicts_with_all = ["off_cpu", "wall"])]
    pub(crate) event: Option<String>,
    /// Only samples of a pprof file that have this label, as method=GET, or of any value, as method (may be repeated)
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) label: Vec<String>,
    /// Time that threads waited, instead of CPU time
    #[arg(long, conflicts_with = "wall")]
    pub(crate) off_cpu: bool,
    /// All time of threads: CPU time, and time that they waited
    #[arg(long)]
    pub(crate) wall: bool,
}

impl FilterArgs {
    /// Whether all of a profile's CPU time is selected.
    pub(crate) fn is_empty(&self) -> bool {
        let lists =
            [&self.thread, &self.process, &self.lib, &self.focus, &self.ignore, &self.show, &self.hide];
        lists.iter().all(|list| list.is_empty())
            && self.category.is_empty()
            && self.range.is_none()
            && !self.off_cpu
            && !self.wall
            && !self.no_inline
    }
}
