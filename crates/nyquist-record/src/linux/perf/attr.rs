//! The attributes of the events that are requested from the kernel.

use nyquist_perf::{ReadFormat, RecordFormat, SampleType};
use perf_event_open_sys::bindings::{
    PERF_COUNT_HW_CPU_CYCLES, PERF_COUNT_SW_CPU_CLOCK, PERF_COUNT_SW_DUMMY, PERF_COUNT_SW_TASK_CLOCK,
    PERF_TYPE_HARDWARE, PERF_TYPE_SOFTWARE,
};

use crate::linux::arch;
use crate::linux::options::CallGraph;
use crate::linux::sys::event::perf_event_attr;

/// What triggers a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// The hardware's count of CPU cycles.
    Cycles,
    /// The kernel's clock of CPU time.
    CpuClock,
}

/// What the machine allows and supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Features {
    pub(crate) trigger: Trigger,
    /// Samples in the kernel, with its stack.
    pub(crate) kernel: bool,
    /// Counts of lost samples (Linux 6.0).
    pub(crate) lost: bool,
    /// Code that appears in the kernel while it runs (Linux 5.1).
    pub(crate) kernel_code: bool,
}

impl Features {
    /// Everything that can be requested.
    pub(crate) const ALL: Self =
        Self { trigger: Trigger::Cycles, kernel: true, lost: true, kernel_code: true };

    /// What to try after the kernel has refused these for a reason; `None` if the reason is about something
    /// else.
    pub(crate) fn after(self, errno: i32) -> Option<Self> {
        match errno {
            libc::EACCES | libc::EPERM if self.kernel => Some(Self { kernel: false, ..self }),
            libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV | libc::ENXIO
                if self.trigger == Trigger::Cycles =>
            {
                Some(Self { trigger: Trigger::CpuClock, ..self })
            }
            libc::EINVAL | libc::E2BIG => self.with_less(),
            _ => None,
        }
    }

    fn with_less(self) -> Option<Self> {
        match self {
            Self { lost: true, .. } => Some(Self { lost: false, ..self }),
            Self { kernel_code: true, .. } => Some(Self { kernel_code: false, ..self }),
            // The cycles may have been invalid, so the clock tries everything once more.
            Self { trigger: Trigger::Cycles, kernel, .. } => {
                Some(Self { trigger: Trigger::CpuClock, kernel, ..Self::ALL })
            }
            Self { .. } => None,
        }
    }
}

/// The reach of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// A thread on a CPU, with all its descendants.
    Thread {
        /// Whether it begins when the process calls exec, rather than when it is enabled.
        from_exec: bool,
    },
    /// A thread on a CPU, without its descendants.
    OneThread,
    /// Whatever runs on a CPU, or the part of it that belongs to a control group.
    Cpu,
}

/// What all events of a recording have in common.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CommonAttr {
    pub(crate) features: Features,
    pub(crate) reach: Reach,
    /// Whether the event also reports context switches.
    pub(crate) switches: bool,
    pub(crate) call_graph: CallGraph,
    /// Whether there are additional events, whose samples contain more fields.
    pub(crate) has_additional_events: bool,
    /// Whether nothing is sampled or counted before a request to resume.
    pub(crate) starts_paused: bool,
}

impl CommonAttr {
    /// Whether the samples of additional events can contain the count of their event. Inherited events never
    /// contain it: since Linux 6.12, a thread that has one such event is switched without the kernel's short
    /// cut for threads with the same events, which made programs that switch often up to ten times as slow.
    pub(crate) fn has_additional_event_counts(self) -> bool {
        self.reach == Reach::Cpu
    }

    /// The layout of the records of all events.
    pub(crate) fn format(self) -> RecordFormat {
        let mut sample_type = SampleType::IDENTIFIER
            .with(SampleType::IP)
            .with(SampleType::TID)
            .with(SampleType::TIME)
            .with(SampleType::CPU)
            .with(SampleType::PERIOD);
        if self.call_graph != CallGraph::None {
            sample_type = sample_type.with(SampleType::CALLCHAIN);
        }
        if self.call_graph.copies_stacks() {
            sample_type = sample_type.with(SampleType::REGS_USER).with(SampleType::STACK_USER);
        }
        if self.has_additional_events {
            // All events share one layout, so that a parser need not check which event a record is from.
            sample_type = sample_type.with(SampleType::ADDR).with(SampleType::RAW);
        }
        let mut read_format = ReadFormat::ID;
        if self.features.lost {
            read_format = read_format.with(ReadFormat::LOST);
        }
        RecordFormat {
            sample_type,
            read_format,
            user_registers: if self.call_graph.copies_stacks() { arch::perf::USER_REGISTERS } else { 0 },
            sample_id_all: true,
            ..RecordFormat::default()
        }
    }
}

/// The parameters of the sampling event besides its features.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SamplingParameters {
    pub(crate) rate_hz: u32,
    pub(crate) stack_bytes: u32,
    /// The fill level of the ring in bytes at which its reader is woken.
    pub(crate) wake_at: u32,
    /// The counting unit (PMU) of the CPU's kind of core, if there are several kinds.
    pub(crate) unit: Option<u32>,
}

/// The sampling event. One with larger stack copies is enabled later and replaces the first.
pub(crate) fn sampling(common: CommonAttr, sampling: SamplingParameters) -> perf_event_attr {
    let mut attr = base_attr(common);
    match common.features.trigger {
        Trigger::Cycles => {
            attr.type_ = PERF_TYPE_HARDWARE;
            // The unit's number is in the upper half (`PERF_PMU_TYPE_SHIFT`).
            let unit = u64::from(sampling.unit.unwrap_or(0)) << 32;
            attr.config = u64::from(PERF_COUNT_HW_CPU_CYCLES) | unit;
            attr.set_freq(1);
            attr.__bindgen_anon_1.sample_freq = u64::from(sampling.rate_hz);
        }
        Trigger::CpuClock => {
            attr.type_ = PERF_TYPE_SOFTWARE;
            attr.config = u64::from(PERF_COUNT_SW_CPU_CLOCK);
            attr.__bindgen_anon_1.sample_period = period_ns(sampling.rate_hz);
            // An idle CPU uses no time, but its clock still ticks, unlike a counter of cycles.
            attr.set_exclude_idle(u64::from(common.reach == Reach::Cpu));
        }
    }
    // In the samples' ring, where they cause no wake-up: programs that wait often have thousands a second.
    attr.set_context_switch(u64::from(common.switches));
    // So are data mappings, because nothing has to be opened in time for them: samply's marker files are found
    // by their mappings, and perf searches there for unwind information.
    attr.set_mmap_data(1);
    attr.sample_stack_user = sampling.stack_bytes;
    attr.__bindgen_anon_2.wakeup_watermark = sampling.wake_at;
    attr
}

/// The clock that counts. For a thread, the kernel writes a record of its count for every descendant that
/// ends.
///
/// It is a separate event with a separate ring. When a thread ends, the kernel writes these records from its
/// CPU into the rings of all CPUs. But a ring does not support writers on other CPUs. Such a ring can stop
/// for good, and all later samples of that ring would be lost.
pub(crate) fn totals(common: CommonAttr, wake_at: u32) -> perf_event_attr {
    let mut attr = base_attr(common);
    attr.type_ = PERF_TYPE_SOFTWARE;
    attr.config = if common.reach != Reach::Cpu && common.features.trigger == Trigger::Cycles {
        u64::from(PERF_COUNT_SW_TASK_CLOCK)
    } else {
        u64::from(PERF_COUNT_SW_CPU_CLOCK)
    };
    attr.sample_stack_user = MIN_STACK_COPY;
    attr.set_inherit_stat(attr.inherit());
    attr.__bindgen_anon_2.wakeup_watermark = wake_at;
    attr
}

/// The event that counts nothing, is not inherited, and so keeps the threads that a thread creates from being
/// taken for its copies.
///
/// When the kernel switches between two threads whose events are copies, it exchanges the threads' lists of
/// events in place of switching each event, and exchanges the counts in the order of the lists
/// (`perf_event_sync_stat`). The list of opened events is in the order in which they were opened, but the list
/// of inherited ones is in the order of their counting units, so counts of different events would be exchanged.
pub(crate) fn separator(common: CommonAttr) -> perf_event_attr {
    let mut attr = base_attr(common);
    attr.type_ = PERF_TYPE_SOFTWARE;
    attr.config = u64::from(PERF_COUNT_SW_DUMMY);
    attr.sample_stack_user = MIN_STACK_COPY;
    attr.set_inherit(0);
    attr.set_enable_on_exec(0);
    attr
}

/// Whether a thread and its descendants need a [`separator`]. Events of one unit do not, because they are
/// inherited in the order in which they were opened. But the command of a recording would hold the opened
/// events, whose ends have no records.
pub(crate) fn needs_separator(common: CommonAttr) -> bool {
    match common.reach {
        Reach::Thread { from_exec } => from_exec || !has_one_unit(common),
        Reach::OneThread | Reach::Cpu => false,
    }
}

/// Whether all events of a thread belong to the same counting unit (PMU) of the kernel: the clock of CPU time.
fn has_one_unit(common: CommonAttr) -> bool {
    let CommonAttr { features, reach, has_additional_events, .. } = common;
    reach != Reach::Cpu && features.trigger == Trigger::CpuClock && !has_additional_events
}

/// The event that reports executable mappings, names and tasks. What it counts is not used. If `wake_at` is 1, every
/// record wakes its reader, so that files can be opened while the process that maps them lives.
pub(crate) fn sideband(common: CommonAttr, wake_at: u32) -> perf_event_attr {
    let mut attr = base_attr(common);
    attr.type_ = PERF_TYPE_SOFTWARE;
    attr.config = u64::from(if has_one_unit(common) { PERF_COUNT_SW_CPU_CLOCK } else { PERF_COUNT_SW_DUMMY });
    attr.sample_stack_user = MIN_STACK_COPY;
    attr.set_mmap(1);
    attr.set_mmap2(1);
    attr.set_comm(1);
    attr.set_comm_exec(1);
    attr.set_task(1);
    attr.set_enable_on_exec(u64::from(begins_at_exec(common)));
    // The names of compiled BPF programs that are gone at the end come from these records.
    attr.set_ksymbol(u64::from(common.features.kernel_code && common.features.kernel));
    // Does not request build ids; they are read from the files instead. While one event has them, the kernel
    // marks the mappings of all events on the machine as having build ids. This includes events that did not
    // request them, and perf then exits.
    attr.__bindgen_anon_2.wakeup_watermark = wake_at;
    attr
}

/// Whether events begin when the process calls exec.
fn begins_at_exec(common: CommonAttr) -> bool {
    common.reach == Reach::Thread { from_exec: true }
}

/// The kernel refuses a stack copy of zero bytes. Events that never sample must still state the layout of
/// those that do, because their other records end in the same way.
pub(super) const MIN_STACK_COPY: u32 = 8;

/// The time between two samples.
pub(crate) fn period_ns(rate_hz: u32) -> u64 {
    1_000_000_000 / u64::from(rate_hz.max(1))
}

/// The attributes that all events have in common.
pub(super) fn base_attr(common: CommonAttr) -> perf_event_attr {
    let CommonAttr { features, reach, call_graph, .. } = common;
    let format = common.format();
    let mut attr = perf_event_attr {
        sample_type: format.sample_type.0,
        read_format: format.read_format.0,
        sample_regs_user: format.user_registers,
        clockid: libc::CLOCK_MONOTONIC,
        ..perf_event_attr::default()
    };
    attr.set_disabled(1);
    attr.set_inherit(u64::from(matches!(reach, Reach::Thread { .. })));
    attr.set_enable_on_exec(u64::from(begins_at_exec(common) && !common.starts_paused));
    attr.set_exclude_kernel(u64::from(!features.kernel));
    attr.set_exclude_hv(u64::from(!features.kernel));
    // Newer kernels refuse call chains to users without access to the kernel, unless the kernel's part is
    // excluded.
    attr.set_exclude_callchain_kernel(u64::from(!features.kernel));
    attr.set_exclude_callchain_user(u64::from(call_graph != CallGraph::FramePointers));
    attr.set_sample_id_all(1);
    attr.set_use_clockid(1);
    attr.set_watermark(1);
    attr
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::linux::sys::event::wakeup_watermark;

    /// Names and mappings are reported from the command's start on, in a pause, too.
    #[test]
    fn a_paused_start_has_only_sideband_records() {
        let launched = common(Features::ALL, Reach::Thread { from_exec: true });
        let paused = CommonAttr { starts_paused: true, ..launched };
        let begin = |common| {
            let attrs = [sampling(common, WANTED), totals(common, 1), sideband(common, 1)];
            attrs.map(|attr| attr.enable_on_exec())
        };
        assert_eq!((begin(launched), begin(paused)), ([1, 1, 1], [0, 0, 1]));
    }

    /// The sampling event of a usual recording.
    const WANTED: SamplingParameters =
        SamplingParameters { rate_hz: 1000, stack_bytes: 32 << 10, wake_at: 4 << 20, unit: None };

    /// What events have in common, with copies of stacks and without additional events.
    pub(in crate::linux::perf) fn common(features: Features, reach: Reach) -> CommonAttr {
        CommonAttr {
            features,
            reach,
            switches: false,
            call_graph: CallGraph::Auto,
            has_additional_events: false,
            starts_paused: false,
        }
    }

    /// Repeats a request until the kernel no longer refuses it with an errno. Returns the remaining features.
    fn requested(denied: impl Fn(Features) -> Option<i32>) -> Option<Features> {
        let mut features = Features::ALL;
        for _ in 0..20 {
            match denied(features) {
                None => return Some(features),
                Some(errno) => features = features.after(errno)?,
            }
        }
        panic!("asking never ends");
    }

    #[test]
    fn additional_events_are_laid_out_as_the_clock() {
        let alone = common(Features::ALL, Reach::Cpu).format();
        let with_events =
            CommonAttr { has_additional_events: true, ..common(Features::ALL, Reach::Cpu) }.format();
        let more = SampleType::ADDR.with(SampleType::RAW);
        assert_eq!(with_events.sample_type, alone.sample_type.with(more));
        assert_eq!(
            (with_events.read_format, alone.sample_type.contains(SampleType::RAW)),
            (alone.read_format, false)
        );
    }

    /// Threads that have an event which is not inherited, and the threads that they create, are switched event
    /// by event.
    #[test]
    fn attached_threads_can_exchange_their_events() {
        let attached = common(
            Features { trigger: Trigger::CpuClock, ..Features::ALL },
            Reach::Thread { from_exec: false },
        );
        let events = [sampling(attached, WANTED), totals(attached, 1), sideband(attached, 1)];
        let unit = |attr: &perf_event_attr| (attr.type_, attr.config, attr.inherit());
        let clock = (PERF_TYPE_SOFTWARE, u64::from(PERF_COUNT_SW_CPU_CLOCK), 1);
        assert_eq!(events.each_ref().map(unit), [clock; 3]);
        assert!(!needs_separator(attached));
        let with_events = CommonAttr { has_additional_events: true, ..attached };
        let by_cycles = common(Features::ALL, attached.reach);
        let launched = CommonAttr { reach: Reach::Thread { from_exec: true }, ..attached };
        assert!([with_events, by_cycles, launched].into_iter().all(needs_separator));
    }

    #[test]
    fn without_the_right_no_kernel_data_is_requested() {
        let excludes = |kernel| {
            let attr = base_attr(common(Features { kernel, ..Features::ALL }, Reach::Cpu));
            (attr.exclude_kernel(), attr.exclude_callchain_kernel())
        };
        assert_eq!([true, false].map(excludes), [(0, 0), (1, 1)]);
    }

    #[test]
    fn a_kernel_gives_what_it_has() {
        let clock = Trigger::CpuClock;
        assert_eq!(requested(|_| None), Some(Features::ALL));
        let without_pmu = requested(|f| (f.trigger == Trigger::Cycles).then_some(libc::ENOENT));
        assert_eq!(without_pmu, Some(Features { trigger: clock, ..Features::ALL }));
        let without_privilege = requested(|f| f.kernel.then_some(libc::EACCES));
        assert_eq!(without_privilege, Some(Features { kernel: false, ..Features::ALL }));
        let linux_5_4 = requested(|f| f.lost.then_some(libc::EINVAL));
        assert_eq!(linux_5_4, Some(Features { lost: false, ..Features::ALL }));
        let linux_5_0 = requested(|f| (f.lost || f.kernel_code).then_some(libc::EINVAL));
        assert_eq!(linux_5_0, Some(Features { lost: false, kernel_code: false, ..Features::ALL }));
    }

    /// They would be in the records of other recorders, too.
    #[test]
    fn no_event_asks_for_build_ids() {
        let common = common(Features::ALL, Reach::Cpu);
        let events = [sampling(common, WANTED), sideband(common, 1), totals(common, 1), separator(common)];
        assert_eq!(events.map(|attr| attr.build_id()), [0; 4]);
        assert_eq!(events[1].mmap2(), 1);
    }

    #[test]
    fn cycles_that_are_invalid_cost_nothing_else() {
        let denied = |f: Features| (f.trigger == Trigger::Cycles).then_some(libc::EINVAL);
        assert_eq!(requested(denied), Some(Features { trigger: Trigger::CpuClock, ..Features::ALL }));
    }

    #[test]
    fn a_refusal_of_everything_is_found_out() {
        for errno in [libc::EACCES, libc::EPERM, libc::EINVAL, libc::ENOENT, libc::ESRCH, libc::EMFILE] {
            assert_eq!(requested(|_| Some(errno)), None, "errno {errno}");
        }
    }

    #[test]
    fn nothing_inherits_the_events_of_one_thread() {
        for trigger in [Trigger::Cycles, Trigger::CpuClock] {
            let common = common(Features { trigger, ..Features::ALL }, Reach::OneThread);
            for attr in [sampling(common, WANTED), totals(common, 1)] {
                assert_eq!((attr.inherit(), attr.inherit_stat(), attr.enable_on_exec()), (0, 0, 0));
            }
            assert!(!needs_separator(common));
        }
    }

    /// Since Linux 6.12, one such event makes each switch between threads of the program slow.
    #[test]
    fn no_inherited_event_is_read_with_its_samples() {
        let triggers = [Trigger::Cycles, Trigger::CpuClock];
        let ways =
            triggers.into_iter().flat_map(|trigger| [true, false].map(|from_exec| (trigger, from_exec)));
        for (trigger, from_exec) in ways {
            let features = Features { trigger, ..Features::ALL };
            let common = common(features, Reach::Thread { from_exec });
            for attr in [sampling(common, WANTED), sideband(common, 1), totals(common, 1)] {
                let reads = SampleType(attr.sample_type).contains(SampleType::READ);
                assert_eq!((attr.inherit(), reads), (1, false), "{trigger:?}");
            }
            assert!(!common.has_additional_event_counts());
            assert_eq!(separator(common).inherit(), 0);
        }
    }

    /// A reader that is woken for each of them takes longer than the program needs to map a file.
    #[test]
    fn data_mappings_do_not_wake_the_reader() {
        let common = common(Features::ALL, Reach::Cpu);
        let [sampling, sideband] = [sampling(common, WANTED), sideband(common, 1)];
        assert_eq!([sampling.mmap_data(), sampling.mmap(), sampling.mmap2()], [1, 0, 0]);
        assert_eq!([sideband.mmap_data(), sideband.mmap(), sideband.mmap2()], [0, 1, 1]);
    }

    #[test]
    fn only_what_finds_the_callers_is_requested() {
        let requested = |call_graph| {
            let format = CommonAttr { call_graph, ..common(Features::ALL, Reach::Cpu) }.format();
            let bits = [SampleType::CALLCHAIN, SampleType::REGS_USER, SampleType::STACK_USER];
            (bits.map(|bit| format.sample_type.contains(bit)), format.user_registers != 0)
        };
        assert_eq!(requested(CallGraph::Auto), ([true; 3], true));
        assert_eq!(requested(CallGraph::Dwarf), ([true; 3], true));
        assert_eq!(requested(CallGraph::FramePointers), ([true, false, false], false));
        assert_eq!(requested(CallGraph::None), ([false; 3], false));
    }

    #[test]
    fn readers_are_woken_by_bytes_and_not_by_samples() {
        let common = common(Features::ALL, Reach::Cpu);
        let requested =
            SamplingParameters { rate_hz: 1000, stack_bytes: 32 << 10, wake_at: 4 << 20, unit: None };
        for (attr, wake_at) in
            [(sampling(common, requested), 4 << 20), (sideband(common, 1), 1), (totals(common, 4096), 4096)]
        {
            assert_eq!((attr.watermark(), wakeup_watermark(&attr)), (1, wake_at));
        }
    }
}
