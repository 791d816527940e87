//! How large the rings are, how much of a stack is copied, and whether threads get their own events: pure
//! functions of what the machine allows.

/// What is known before a ring is mapped.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RingLimits {
    /// The CPUs that get rings.
    pub(crate) cpus: usize,
    /// The size of a page in bytes.
    pub(crate) page: usize,
    /// The bytes of memory for all rings; `None` if there is no limit.
    pub(crate) bytes: Option<u64>,
    /// Samples per second on every CPU.
    pub(crate) rate_hz: u32,
    /// How much of a stack is copied.
    pub(crate) copies: Copies,
    /// Whether the reader gets a CPU as soon as it is woken.
    pub(crate) reader_at_once: bool,
    /// Whether additional events get a ring as large as the one for samples.
    pub(crate) has_additional_events: bool,
}

/// How much of a stack is copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Copies {
    /// The requested size.
    Fixed(u32),
    /// As much as the rings have room for.
    Largest,
    /// Nothing.
    None,
}

/// The sizes of a CPU's rings in pages without the control page, and of a stack copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RingPlan {
    /// The ring for samples.
    pub(crate) sample_pages: usize,
    /// The ring for mappings, names and tasks; `None` if they share the ring for samples.
    pub(crate) sideband_pages: Option<usize>,
    /// The size of a stack copy in bytes, a multiple of 8.
    pub(crate) stack_bytes: u32,
}

/// The largest ring of a CPU for samples.
const MAX_RING_BYTES: u64 = 32 << 20;
/// The smallest one if there is no memory limit.
const MIN_WANTED_BYTES: u64 = 2 << 20;
/// How long a ring can buffer samples of the largest size if there is no memory limit. The reader then has
/// priority. A larger ring costs time, because the kernel clears each page before anything is recorded: 10 ms
/// of CPU time for 64 MB, and for 8 MB in a virtual machine that first gets the memory from its host. At 1000
/// Hz the ring size is a power of two for copies of 32 and of 64 kB.
const HELD_MS: u64 = 120;
/// How long a ring must buffer samples if its reader gets a CPU at once: it is woken after half of this time.
const HELD_AT_ONCE_MS: u64 = 50;
/// The total of all rings for samples if there is no memory limit, for machines with many CPUs.
const MAX_TOTAL_BYTES: u64 = 1 << 30;
/// A CPU's ring for mappings, names and tasks if there is enough memory.
const MAX_SIDEBAND_BYTES: u64 = 512 << 10;
/// The smallest useful ring for them.
const MIN_SIDEBAND_BYTES: u64 = 32 << 10;
/// The smallest ring for samples that is tried.
const MIN_RING_BYTES: u64 = 32 << 10;

/// A CPU's ring for the CPU time of ended threads, in pages: it holds some two hundred ends between two
/// drains.
pub(crate) const TOTALS_PAGES: usize = 4;

/// The largest stack copy that the ABI allows: a record is shorter than 64 kB.
pub(crate) const MAX_STACK_COPY: u32 = 65_528;
/// The size of a sample with such a copy. The kernel shortens the copy if the rest needs the room.
const MAX_RECORD_BYTES: u64 = 64 << 10;
/// The size of a stack copy if the rings have less room.
const SMALLER_STACK: u32 = 32 << 10;
/// The size of a stack copy if the reader could not keep up with larger ones.
const MIN_STACK_COPY: u32 = 16 << 10;
/// The size of a sample without its stack copy: about 40 words, and 127 of the kernel's call chain.
const SAMPLE_OVERHEAD: u64 = 1536;

impl RingLimits {
    /// The first plan to try: the largest rings within the limits; samples have priority.
    pub(crate) fn plan(&self) -> RingPlan {
        let page = self.page as u64;
        let cpus = self.cpus.max(1) as u64;
        let totals = (TOTALS_PAGES as u64 + 1) * page;
        let each = self.bytes.map_or(u64::MAX, |bytes| (bytes / cpus).saturating_sub(totals));
        let largest = self.requested_ring().min(MAX_TOTAL_BYTES / cpus);
        let sample_rings = 1 + u64::from(self.has_additional_events);
        // Each ring has a control page besides its records.
        let room = each.saturating_sub(MIN_SIDEBAND_BYTES + page) / sample_rings;
        let sample = power_of_two_within(room.saturating_sub(page), MIN_RING_BYTES, largest);
        let rest = each.saturating_sub(sample_rings * (sample + page) + page);
        let sideband = power_of_two_within(rest, MIN_SIDEBAND_BYTES, MAX_SIDEBAND_BYTES);
        self.with_stack(RingPlan {
            sample_pages: (sample / page).max(1) as usize,
            sideband_pages: (sideband <= rest).then_some((sideband / page).max(1) as usize),
            stack_bytes: 0,
        })
    }

    /// The size of a CPU's ring for samples if there is no memory limit.
    fn requested_ring(&self) -> u64 {
        let record = match self.copies {
            Copies::Fixed(bytes) => u64::from(bytes.min(MAX_STACK_COPY)) + SAMPLE_OVERHEAD,
            Copies::Largest => MAX_RECORD_BYTES,
            Copies::None => SAMPLE_OVERHEAD,
        };
        let held = record * u64::from(self.rate_hz) * self.held_ms() / 1000;
        held.next_power_of_two().clamp(MIN_WANTED_BYTES, MAX_RING_BYTES)
    }

    /// How many samples of the largest size a ring holds, as the time in which they arrive. A reader without
    /// the privilege for more memory has no CPU priority either.
    fn held_ms(&self) -> u64 {
        if self.bytes.is_none() { HELD_MS } else { 2 * HELD_MS }
    }

    /// How many full copies a ring must hold before any are made, as the time in which they arrive.
    fn held_deep_ms(&self) -> u64 {
        if self.reader_at_once { HELD_AT_ONCE_MS } else { self.held_ms() }
    }

    /// The next smaller plan, for a machine that allows less than it states: rings of half the size, and
    /// finally no separate ring for the sideband. `None` if nothing can be reduced.
    pub(crate) fn smaller(&self, plan: RingPlan) -> Option<RingPlan> {
        let smallest = MIN_RING_BYTES as usize / self.page;
        let mut next = plan;
        if plan.sample_pages > smallest.max(1) {
            next.sample_pages /= 2;
            next.sideband_pages = plan.sideband_pages.map(|pages| (pages / 2).max(4));
        } else if plan.sideband_pages.is_some() {
            next.sideband_pages = None;
        } else {
            return None;
        }
        Some(self.with_stack(next))
    }

    /// Sets the copy size: up to full copies if the ring holds enough of them, and smaller ones otherwise. It
    /// is smaller still if the ring could fill up before its reader runs. A copy is at most an eighth of the
    /// ring.
    fn with_stack(&self, plan: RingPlan) -> RingPlan {
        let ring = (plan.sample_pages * self.page) as u64;
        let holds_ms = |bytes: u64| 1000 * ring / (bytes * u64::from(self.rate_hz.max(1)));
        let requested = if holds_ms(MAX_RECORD_BYTES) >= self.held_deep_ms() {
            MAX_STACK_COPY
        } else if holds_ms(u64::from(SMALLER_STACK) + SAMPLE_OVERHEAD) >= 20 {
            SMALLER_STACK
        } else {
            MIN_STACK_COPY
        };
        let most = (ring / 8).saturating_sub(SAMPLE_OVERHEAD) as u32 & !7;
        let stack_bytes = match self.copies {
            Copies::Fixed(bytes) => bytes.min(MAX_STACK_COPY).next_multiple_of(8),
            Copies::Largest => requested,
            Copies::None => 0,
        };
        RingPlan { stack_bytes: stack_bytes.min(most), ..plan }
    }
}

/// The cost of attaching to threads individually.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AttachCost {
    /// The CPUs on which each thread gets its events.
    pub(crate) cpus: usize,
    pub(crate) threads: usize,
    /// The number of additional events.
    pub(crate) additional_events: usize,
}

/// The rights of a recorder that attaches to threads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rights {
    /// The limit of open descriptors.
    pub(crate) descriptors: u64,
    /// Whether it may record all activity on a CPU.
    pub(crate) sees_cpus: bool,
}

/// How running threads are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AttachMethod {
    /// Each by its own events.
    Threads,
    /// By events of whole CPUs.
    Cpus,
}

/// The descriptors that are reserved for other uses: mapped files, the output, the server.
const OTHER_DESCRIPTORS: u64 = 512;
/// The maximum number of events if a clock on each CPU would work as well. For each event, the kernel needs a
/// kilobyte or more, and some microseconds.
const MAX_OPTIONAL_EVENTS: u64 = 100_000;

impl AttachCost {
    /// The number of events. Each thread has these on each CPU: one that samples, one that counts, one for
    /// mappings and names, and the additional ones. It has one more for all CPUs.
    pub(crate) fn events(&self) -> u64 {
        let each = 3 + self.additional_events as u64;
        each.saturating_mul(self.cpus as u64).saturating_add(1).saturating_mul(self.threads as u64)
    }

    /// The number of descriptors that must be allowed.
    pub(crate) fn descriptors(&self) -> u64 {
        self.events().saturating_add(OTHER_DESCRIPTORS)
    }

    /// How a recorder with these rights records the threads. Each thread gets its own events if there are
    /// enough descriptors. `None` if neither that nor sampling whole CPUs is possible.
    pub(crate) fn attaching(&self, rights: Rights) -> Option<AttachMethod> {
        let fits = self.descriptors() <= rights.descriptors;
        if rights.sees_cpus && !(fits && self.events() <= MAX_OPTIONAL_EVENTS) {
            return Some(AttachMethod::Cpus);
        }
        fits.then_some(AttachMethod::Threads)
    }
}

/// The largest power of two within `room`, limited to between `least` and `most`.
fn power_of_two_within(room: u64, least: u64, most: u64) -> u64 {
    let room = room.clamp(least, most.max(least));
    1 << room.ilog2()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(cpus: usize, bytes: Option<u64>, rate_hz: u32) -> RingLimits {
        RingLimits {
            cpus,
            page: 4096,
            bytes,
            rate_hz,
            copies: Copies::Largest,
            reader_at_once: false,
            has_additional_events: false,
        }
    }

    /// The memory that the rings of a plan lock, with their control pages: for samples, for the CPU time of
    /// ended threads, and for the sideband, which has two if there is no limit.
    fn locked(limits: &RingLimits, plan: RingPlan) -> u64 {
        let sidebands = if limits.bytes.is_none() { 2 } else { 1 };
        let sideband = plan.sideband_pages.map_or(0, |pages| sidebands * (pages + 1));
        let pages = plan.sample_pages + 1 + TOTALS_PAGES + 1 + sideband;
        (limits.cpus * pages * limits.page) as u64
    }

    #[test]
    fn additional_events_get_a_ring_within_the_limit() {
        for cpus in [1, 2, 16] {
            for bytes in [Some(516_u64 << 10), Some(8 << 20), None] {
                let bytes = bytes.map(|bytes| bytes * cpus as u64);
                let alone = limits(cpus, bytes, 1000);
                let with_events = RingLimits { has_additional_events: true, ..alone };
                let plan = with_events.plan();
                let more = (cpus * (plan.sample_pages + 1) * with_events.page) as u64;
                assert!(plan.sample_pages <= alone.plan().sample_pages, "{plan:?}");
                assert!(
                    bytes.is_none_or(|bytes| locked(&with_events, plan) + more <= bytes),
                    "{cpus} {plan:?}"
                );
            }
        }
    }

    #[test]
    fn rings_hold_an_eighth_of_a_second_at_1000_hz() {
        let plan = limits(2, None, 1000).plan();
        assert_eq!(plan.sample_pages * 4096, 8 << 20);
        let as_requested = RingLimits { copies: Copies::Fixed(32 << 10), ..limits(2, None, 1000) };
        assert_eq!(as_requested.plan().sample_pages * 4096, 4 << 20);
        assert_eq!(plan.sideband_pages, Some(128));
        let copies = |cpus, bytes, rate_hz| limits(cpus, bytes, rate_hz).plan().stack_bytes;
        assert_eq!(copies(2, None, 1000), MAX_STACK_COPY);
        assert_eq!(copies(2, None, 10_000), SMALLER_STACK);
        assert_eq!(copies(2, Some(9_445_376), 500), SMALLER_STACK);
        assert_eq!(copies(2, Some(9_445_376), 250), MAX_STACK_COPY);
        assert_eq!(limits(2, Some(9_445_376), 1000).plan().sample_pages * 4096, 4 << 20);
        assert_eq!(copies(2, Some(9_445_376), 1000), SMALLER_STACK);
        assert_eq!(copies(2, Some(9_445_376), 10_000), MIN_STACK_COPY);
        assert_eq!(copies(256, None, 1000), SMALLER_STACK);
    }

    #[test]
    fn a_prompt_reader_has_full_copies_at_high_rates() {
        let copies = |cpus, bytes, rate_hz| {
            let limits = RingLimits { reader_at_once: true, ..limits(cpus, bytes, rate_hz) };
            limits.plan().stack_bytes
        };
        assert_eq!(copies(2, None, 10_000), MAX_STACK_COPY);
        assert_eq!(copies(2, None, 20_000), SMALLER_STACK);
        assert_eq!(copies(32, None, 10_000), MAX_STACK_COPY);
        assert_eq!(copies(64, None, 10_000), SMALLER_STACK);
        assert_eq!(copies(2, Some(9_445_376), 1000), MAX_STACK_COPY);
        assert_eq!(copies(2, Some(9_445_376), 10_000), MIN_STACK_COPY);
    }

    #[test]
    fn a_copy_has_its_requested_size_within_its_ring() {
        let check = |requested, bytes, expected| {
            let copies = Copies::Fixed(requested);
            let plan = RingLimits { copies, ..limits(2, bytes, 1000) }.plan();
            assert_eq!(plan.stack_bytes, expected, "{requested}");
        };
        check(1024, None, 1024);
        check(1025, None, 1032);
        check(65_535, None, MAX_STACK_COPY);
        check(65_528, Some(1 << 20), 31_232);
        check(65_528, Some(9_445_376), MAX_STACK_COPY);
        let none = RingLimits { copies: Copies::None, ..limits(2, None, 1000) }.plan();
        assert_eq!(none.stack_bytes, 0);
    }

    #[test]
    fn a_plan_keeps_to_what_is_allowed() {
        let check = |cpus: usize, memlock_kb: u64| {
            let limits = limits(cpus, Some((516 * cpus as u64 + memlock_kb) << 10), 1000);
            let plan = limits.plan();
            assert!(locked(&limits, plan) <= limits.bytes.unwrap(), "{cpus} CPUs, {memlock_kb} kB");
            assert!(plan.sample_pages.is_power_of_two());
            assert!(plan.sideband_pages.is_none_or(usize::is_power_of_two));
            assert_eq!(plan.stack_bytes % 8, 0);
        };
        for cpus in [1, 2, 4, 8, 16, 64, 128, 256] {
            for memlock_kb in [0, 64, 8192, 1 << 20] {
                check(cpus, memlock_kb);
            }
        }
    }

    #[test]
    fn half_of_what_is_allowed_is_used_at_least() {
        for cpus in [1, 2, 8, 128] {
            let limits = limits(cpus, Some((516 * cpus as u64 + 8192) << 10), 1000);
            assert!(locked(&limits, limits.plan()) * 2 > limits.bytes.unwrap(), "{cpus} CPUs");
        }
    }

    #[test]
    fn threads_get_own_events_while_descriptors_last() {
        let check = |cpus, threads, descriptors, sees_cpus, expected| {
            let cost = AttachCost { cpus, threads, additional_events: 0 };
            let attaching = cost.attaching(Rights { descriptors, sees_cpus });
            assert_eq!(attaching, expected, "{cpus} CPUs, {threads} threads, {descriptors} descriptors");
        };
        check(2, 500, 1 << 20, false, Some(AttachMethod::Threads));
        check(2, 600, 4096, false, None);
        check(2, 600, 4096, true, Some(AttachMethod::Cpus));
        check(2, 400, 4096, true, Some(AttachMethod::Threads));
        check(128, 150, 524_288, true, Some(AttachMethod::Threads));
        check(128, 1000, 524_288, true, Some(AttachMethod::Cpus));
        check(128, 1000, 524_288, false, Some(AttachMethod::Threads));
        check(128, 1400, 524_288, false, None);
        check(8192, usize::MAX, u64::MAX - 1, true, Some(AttachMethod::Cpus));
    }

    /// The result of attaching to 1,000 threads on 128 CPUs: how they are recorded, the kilobytes that each
    /// CPU's rings lock, and the kilobytes that are copied of each stack.
    fn attached(rights: Rights, bytes: Option<u64>) -> Option<(AttachMethod, u64, u32)> {
        let cost = AttachCost { cpus: 128, threads: 1000, additional_events: 0 };
        let attaching = cost.attaching(rights)?;
        let limits = limits(128, bytes, 1000);
        let plan = limits.plan();
        let locked = locked(&limits, plan);
        assert!(bytes.is_none_or(|bytes| locked <= bytes), "{locked} bytes are locked of {bytes:?}");
        Some((attaching, locked / 128 / 1024, plan.stack_bytes / 1024))
    }

    #[test]
    fn a_thousand_threads_attach_within_all_limits() {
        for descriptors in [1024, 524_288] {
            let root = attached(Rights { descriptors, sees_cpus: true }, None);
            assert_eq!(root, Some((AttachMethod::Cpus, (8 << 10) + 4 + 20 + 2 * 516, 63)));
        }
        for (memlock_kb, locked_kb) in [(64, 256 + 4 + 20 + 132), (8192, 512 + 4 + 20 + 36)] {
            let bytes = Some((516 * 128 + memlock_kb) << 10);
            let plain = |descriptors| attached(Rights { descriptors, sees_cpus: false }, bytes);
            assert_eq!(plain(524_288), Some((AttachMethod::Threads, locked_kb, 16)));
            assert_eq!([1024, 385_511].map(plain), [None, None]);
            assert_eq!(plain(385_512), plain(524_288));
        }
    }

    #[test]
    fn a_thread_costs_three_events_a_cpu_and_one() {
        let cost = AttachCost { cpus: 128, threads: 1000, additional_events: 0 };
        assert_eq!(cost.events(), 385_000);
    }

    #[test]
    fn plans_shrink_until_nothing_is_left_to_save() {
        let limits = limits(4, None, 1000);
        let mut plan = limits.plan();
        let mut steps = 0;
        while let Some(next) = limits.smaller(plan) {
            assert!(locked(&limits, next) < locked(&limits, plan), "{plan:?} {next:?}");
            assert!(next.stack_bytes <= plan.stack_bytes);
            plan = next;
            steps += 1;
        }
        assert!((5..30).contains(&steps));
        assert_eq!(plan, RingPlan { sample_pages: 8, sideband_pages: None, stack_bytes: 2560 });
    }
}
