//! The converter's options: what is known of a recording, and requested of its profile, before its first event.

use crate::account::cycle_time::{CycleTime, PARTS};
use crate::account::heap::HeapLimits;
use crate::build::seen_addresses::AddressSender;
use crate::event::Timestamp;
use crate::modules::recorded_files::RecordedFiles;
use crate::processes::memory::DEFAULT_PROCESS_MEMORY;
use crate::selection::process_filter::ProcessFilter;
use crate::selection::sample_selection::SampleSelection;
use crate::shape::Shape;
use crate::targets::Targets;
use nyquist_perf::Budget;
use nyquist_profile::Meta;
use nyquist_symbols::KernelSymbols;

/// The converter's options: what is known of a recording, and requested of its profile, before its first event.
#[derive(Debug)]
pub struct Options {
    /// The profile's zero, from which times count.
    pub start: Timestamp,
    /// Properties of the recording and the machine. The interval is the time that a sample of weight 1 stands
    /// for.
    pub meta: Meta,
    /// How long a sample's cycles take, if a counter of cycles triggers the samples.
    pub cycle_time: Option<CycleTime>,
    /// Whether the source may sample the kernel. If not, CPU time without samples is shown separately.
    pub kernel_permitted: bool,
    /// The rows of the profile, and the markers that are made for them.
    pub shape: Shape,
    /// The samples that are requested.
    pub selection: SampleSelection,
    /// The processes whose samples are kept, if the source delivers more than was requested.
    /// [`keep_only`](crate::Converter::keep_only) changes it for later events.
    pub filter: ProcessFilter,
    /// Whether the rows of processes of one name are named by the words in which their command lines differ.
    /// The command lines are read while the processes live.
    pub distinctive_words: bool,
    /// Whether each jitdump is removed from its folder when it has been opened.
    pub unlink_jitdumps: bool,
    /// Limits the memory for names in perf maps and jitdumps. Code beyond the limit has no names, and a
    /// message reports this.
    pub side_files: Budget,
    /// How much memory mappings, arguments, and the names of processes, threads and files may take beside the
    /// profile, in bytes. Beyond that, the largest processes lose their stacks, and a message reports this.
    pub process_memory: u64,
    /// Follows at most this many allocated blocks until they are freed, and holds at most as many stacks that
    /// allocations name by numbers. `None`: as many as a recording that ends needs.
    pub max_blocks: Option<usize>,
    /// Where to look for mapped files, if the recording is read later. `None` if they are opened through
    /// living processes.
    pub recorded_files: Option<RecordedFiles>,
    /// How living processes are accessed. By default, this process does it itself, and waits for what a process
    /// withholds.
    pub targets: Targets,
    /// The symbols of the kernel that is recorded, to find what threads wait for by the functions of the
    /// kernel that they wait in ([`EventKind::SwitchStack`](crate::event::EventKind::SwitchStack)).
    pub kernel_symbols: Option<KernelSymbols>,
    /// Receives each address when it first occurs, so that its name can be looked up meanwhile.
    pub address_sender: Option<AddressSender>,
}

impl Options {
    /// The options of a recording with this zero and these properties, whose kernel may be sampled. All
    /// samples are requested, each thread has a row, and files are those of living processes.
    pub fn new(start: Timestamp, meta: Meta) -> Self {
        Self {
            start,
            meta,
            cycle_time: None,
            kernel_permitted: true,
            shape: Shape::default(),
            selection: SampleSelection::default(),
            filter: ProcessFilter::All,
            distinctive_words: false,
            unlink_jitdumps: false,
            side_files: Budget::default(),
            process_memory: DEFAULT_PROCESS_MEMORY,
            max_blocks: None,
            recorded_files: None,
            targets: Targets::default(),
            kernel_symbols: None,
            address_sender: None,
        }
    }

    /// The options if a counter of cycles triggers the samples. Their periods differ, so weights count parts of
    /// a sampling interval.
    #[must_use]
    pub fn of_cycles(mut self) -> Self {
        let interval = self.interval();
        self.cycle_time = Some(CycleTime::new(interval));
        self.meta.interval = (interval / PARTS).max(1);
        self
    }

    /// The limits of what is known of heaps.
    pub(crate) fn heap_limits(&self) -> HeapLimits {
        let all = HeapLimits::default();
        self.max_blocks
            .map_or(all, |most| HeapLimits { blocks: most.min(all.blocks), stacks: most.min(all.stacks) })
    }

    /// The time that a sample of weight 1 stands for, in nanoseconds.
    pub(crate) fn interval(&self) -> u64 {
        self.meta.interval.max(1)
    }

    /// Whether most samples with copied stacks are converted, and threads appear only in events that other
    /// trackers can follow.
    pub(crate) fn convert_most(&self) -> bool {
        self.selection == SampleSelection::default()
            && matches!(self.filter, ProcessFilter::All | ProcessFilter::FromExec(_))
            && !self.shape.main_threads_only
            && !self.shape.switch_markers
    }
}
