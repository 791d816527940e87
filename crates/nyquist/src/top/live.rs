//! The growing recording: it receives events, and returns named profiles of the recording so far.

use crate::source_paths::DiskPaths;
use nyquist_convert::event::{Event, Timestamp};
use nyquist_convert::{Converter, LibSource, Progress, Symbolicator};
use nyquist_profile::{AllocationMeasure, LibId, Profile};
use nyquist_record::linux::Companion as _;
use nyquist_record::linux::allocations::{AllocationReader, AllocationSummary};
use nyquist_record::linux::wait_stacks::WaitStacks;
use std::borrow::Cow;
use std::time::Duration;

/// Code that makes new stacks without end would exhaust memory. Beyond this number, older data is dropped;
/// only the last seconds are kept.
const MAX_STACKS: usize = 500_000;

/// The maximum delay of samples on their way here, in ns. The recorder passes them on more often than that.
const ON_ITS_WAY: u64 = 300_000_000;

/// After a silence of this length, in ns, no events of a source are still on their way.
const SILENT: u64 = 1_000_000_000;

/// The shown data at one moment.
#[derive(Debug, Default)]
pub(super) struct Snapshot {
    /// The profile, with names.
    pub(super) profile: Profile,
    /// The end of the profile, in ns since the profile's zero, as all times here.
    pub(super) until: u64,
    /// From this time on, samples have their own times. Older samples are summed up.
    pub(super) detailed_since: u64,
    /// The time of the first samples.
    pub(super) since: u64,
    /// Records that the kernel dropped.
    pub(super) lost: u64,
}

impl Snapshot {
    /// The profile with a measure of allocations in place of its samples, or as it is without one.
    pub(super) fn measured(&self, memory: Option<AllocationMeasure>) -> Cow<'_, Profile> {
        let Some(measure) = memory else { return Cow::Borrowed(&self.profile) };
        let measured = self.profile.clone().with_allocations_as_samples(measure);
        // Before the first allocation there are none.
        Cow::Owned(measured.unwrap_or_else(|| self.profile.without_samples()))
    }
}

/// What could not be read of a recording that has ended.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Unread {
    /// The number of waiting threads that may not be read.
    pub(super) waits: usize,
    /// What is known of the allocations, if they were recorded.
    pub(super) allocations: Option<AllocationSummary>,
}

/// A growing recording.
#[derive(Debug)]
pub(super) struct Live {
    converter: Converter,
    zero: Timestamp,
    /// The time up to which everything is converted.
    complete: Timestamp,
    /// The time of the source's last report.
    heard: Timestamp,
    condensed: Timestamp,
    since: Timestamp,
    ended: bool,
    /// Whether a snapshot includes waits that have not ended.
    counts_waits: bool,
    /// Reads where threads wait, if requested. It also reports waits while no other event happens.
    waits: Option<WaitStacks>,
    /// Reads allocations, if they are recorded.
    allocations: Option<AllocationReader>,
}

/// A snapshot with functions that have no names yet.
#[derive(Debug)]
pub(super) struct UnnamedSnapshot {
    snapshot: Snapshot,
    sources: Vec<(LibId, LibSource)>,
}

impl Live {
    /// A recording that begins at a profile's zero.
    pub(super) fn new(converter: Converter, zero: Timestamp) -> Self {
        Self {
            converter,
            zero,
            complete: zero,
            heard: zero,
            condensed: zero,
            since: zero,
            ended: false,
            counts_waits: false,
            waits: None,
            allocations: None,
        }
    }

    /// The same with a reader of allocations.
    pub(super) fn reading_allocations(self, allocations: Option<AllocationReader>) -> Self {
        Self { allocations, ..self }
    }

    /// The same with a reader of waiting threads.
    pub(super) fn watching(self, waits: Option<WaitStacks>) -> Self {
        Self { waits, ..self }
    }

    /// The same with waits that have not ended in its snapshots, if `counts_waits` is set.
    pub(super) fn counting_waits(self, counts_waits: bool) -> Self {
        Self { counts_waits, ..self }
    }

    /// Receives events. All events older than `complete_before` have now been received.
    pub(super) fn push(
        &mut self,
        events: impl Iterator<Item = Event>,
        complete_before: Timestamp,
        now: Timestamp,
    ) {
        for event in events {
            if let Some(waits) = &mut self.waits {
                waits.notice(&event);
            }
            self.converter.push(event);
        }
        self.collect();
        self.converter.advance(complete_before);
        self.complete = self.complete.max(complete_before.min(now));
        self.heard = now;
    }

    pub(super) fn converter(&mut self) -> &mut Converter {
        &mut self.converter
    }

    /// Takes what was observed of waiting threads and of allocations so far.
    fn collect(&mut self) {
        let mut events = Vec::new();
        if let Some(waits) = &mut self.waits {
            waits.collect(&mut events);
        }
        if let Some(allocations) = &mut self.allocations {
            allocations.collect(&mut events);
        }
        self.take(events);
    }

    fn take(&mut self, events: Vec<Event>) {
        for event in events {
            self.converter.push(event);
        }
    }

    /// Ends the recording. Returns what could not be read.
    pub(super) fn end(&mut self, now: Timestamp) -> Unread {
        self.collect();
        let mut events = Vec::new();
        let allocations = self.allocations.take().map(|reader| reader.finish(&mut events));
        self.take(events);
        // Later observations come too late.
        let waits = self.waits.take().map_or(0, |waits| waits.finish(&mut Vec::new()));
        self.converter.advance(Timestamp(u64::MAX));
        self.complete = now;
        self.ended = true;
        Unread { waits, allocations }
    }

    /// The recording so far, with the last `window` in detail.
    pub(super) fn snapshot(&mut self, window: Duration, now: Timestamp) -> UnnamedSnapshot {
        let until = self.until(now);
        self.forget_detail(Timestamp(until.0.saturating_sub(window.as_nanos() as u64)));
        if self.counts_waits {
            self.converter.count_lasting_waits(until);
        }
        let profile = self.converter.snapshot();
        let snapshot = Snapshot {
            until: self.since_zero(until),
            detailed_since: self.since_zero(self.condensed),
            since: self.since_zero(self.since),
            lost: self.converter.statistics().lost,
            profile,
        };
        UnnamedSnapshot { snapshot, sources: self.converter.lib_sources() }
    }

    /// Forgets everything so far.
    pub(super) fn reset(&mut self, now: Timestamp) {
        let until = self.until(now);
        self.forget(until);
    }

    fn forget(&mut self, before: Timestamp) {
        self.converter.evict(before);
        self.since = self.since.max(before);
        self.condensed = self.condensed.max(before);
    }

    /// The time up to which the recording is complete.
    fn until(&mut self, now: Timestamp) -> Timestamp {
        if self.ended {
            return self.complete;
        }
        self.collect();
        let until = self.complete.max(Timestamp(now.0.saturating_sub(ON_ITS_WAY)));
        if now.0.saturating_sub(self.heard.0) > SILENT {
            // Observations of waiting threads, and allocations, are later than the source's last report.
            let observes = self.waits.is_some() || self.allocations.is_some();
            self.converter.advance(if observes { until } else { self.heard });
        }
        until
    }

    fn forget_detail(&mut self, before: Timestamp) {
        if before <= self.condensed {
            return;
        }
        self.converter.condense(before);
        self.condensed = before;
        if self.converter.stack_count() > MAX_STACKS {
            self.forget(before);
        }
    }

    fn since_zero(&self, time: Timestamp) -> u64 {
        time.0.saturating_sub(self.zero.0)
    }
}

impl UnnamedSnapshot {
    /// The snapshot with names. With `by_place`, the user's files are named by their paths here. Requests
    /// for their text must use the debug info's names.
    pub(super) fn named(self, symbolicator: &mut Symbolicator<'_>, by_place: bool) -> Snapshot {
        let Snapshot { profile, .. } = self.snapshot;
        let mut named = symbolicator.symbolicate(profile, &self.sources, &Progress::default());
        if by_place {
            DiskPaths::of_user().name(&mut named.profile);
        }
        Snapshot { profile: named.profile, ..self.snapshot }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nyquist_convert::Options;
    use nyquist_convert::event::{EventKind, Pid, Sample, SampleState, Tid, UserStack};
    use nyquist_object::Avma;
    use nyquist_profile::Meta;

    const MS: u64 = 1_000_000;
    const SECOND: u64 = 1_000 * MS;

    fn live() -> Live {
        let meta = Meta { interval: MS, ..Meta::default() };
        let options = Options::new(Timestamp(0), meta);
        Live::new(Converter::new(options), Timestamp(0))
    }

    /// Pushes samples at `address`, 100 ms apart, over a range of times.
    fn sample(live: &mut Live, times: std::ops::Range<u64>, address: u64) {
        let sample = || Sample {
            pid: Pid(1),
            tid: Tid(1),
            in_kernel: false,
            state: SampleState::Clocked,
            period_ns: MS,
            cpu_time_ns: None,
            counts_anew: false,
            kernel_stack: Vec::new(),
            user: UserStack::Walked(vec![Avma(address)]),
        };
        let end = times.end;
        let times = times.step_by(100 * MS as usize);
        let events =
            times.map(|time| Event { time: Timestamp(time), cpu: None, kind: EventKind::Sample(sample()) });
        live.push(events, Timestamp(end), Timestamp(end));
    }

    fn weights(live: &mut Live, window: u64, now: u64) -> (Vec<u64>, Snapshot) {
        let snapshot = live.snapshot(Duration::from_secs(window), Timestamp(now)).snapshot;
        let samples = snapshot.profile.threads().iter().flat_map(|thread| &thread.samples);
        (samples.map(|sample| sample.weight).collect(), snapshot)
    }

    #[test]
    fn what_is_older_than_the_window_is_kept_as_sums() {
        let mut live = live();
        sample(&mut live, 0..2 * SECOND, 0x10);
        let (found, snapshot) = weights(&mut live, 1, 2 * SECOND);
        assert_eq!(found, [&[1, 9][..], &[1; 10]].concat());
        assert_eq!((snapshot.since, snapshot.detailed_since, snapshot.until), (0, SECOND, 2 * SECOND));
        // A longer window does not restore the detail.
        assert_eq!(weights(&mut live, 60, 2 * SECOND).1.detailed_since, SECOND);
    }

    #[test]
    fn time_goes_on_while_nothing_is_sampled() {
        let mut live = live();
        sample(&mut live, 0..SECOND, 0x10);
        assert_eq!(weights(&mut live, 5, 9 * SECOND).1.until, 9 * SECOND - ON_ITS_WAY);
        live.end(Timestamp(10 * SECOND));
        assert_eq!(weights(&mut live, 5, 99 * SECOND).1.until, 10 * SECOND);
    }

    #[test]
    fn a_silent_source_keeps_nothing_back() {
        let mut live = live();
        let event = |time| {
            let exit = EventKind::Total { pid: Pid(1), tid: Tid(1), cpu_time_ns: 50 * MS };
            Event { time: Timestamp(time), cpu: None, kind: exit }
        };
        live.push(std::iter::once(event(SECOND)), Timestamp(0), Timestamp(SECOND + MS));
        assert_eq!(weights(&mut live, 5, SECOND + 2 * MS).0, [0_u64; 0]);
        assert_eq!(weights(&mut live, 5, 3 * SECOND).0, [50]);
    }

    #[test]
    fn a_reset_forgets_what_was() {
        let mut live = live();
        sample(&mut live, 0..SECOND, 0x10);
        live.reset(Timestamp(SECOND));
        sample(&mut live, SECOND..SECOND * 12 / 10, 0x20);
        let (found, snapshot) = weights(&mut live, 5, SECOND * 12 / 10);
        assert_eq!((found, snapshot.since), (vec![1, 1], SECOND));
    }
}
