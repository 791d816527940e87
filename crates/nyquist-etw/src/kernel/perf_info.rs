//! Samples of CPUs, and how often they are taken: the class `PerfInfo` (MOF `SampledProfile` and
//! `SampledProfileInterval_V3`).

use crate::{Event, PayloadError, fields::EventFields};

pub(super) const SAMPLED_PROFILE: u8 = 46;
pub(super) const SET_INTERVAL: u8 = 72;
pub(super) const COLLECTION_START: u8 = 73;
pub(super) const COLLECTION_END: u8 = 74;

/// The source of samples that is the timer. Others are counters of the CPU, whose intervals are events.
const TIMER: u32 = 0;

/// A CPU was sampled. Its stack comes in [`Stack`](super::Stack) events after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampledProfile {
    /// The instruction pointer.
    pub address: u64,
    /// The thread that ran. It is 0 if the CPU was idle.
    pub thread: u32,
    /// How many intervals passed since the CPU's last sample; 1 but on very old systems.
    pub count: u16,
    /// Whether the CPU ran a deferred procedure call, which works for no thread. Known since Windows 8.
    pub in_deferred_call: bool,
    /// Whether the CPU ran an interrupt's routine, which works for no thread. Known since Windows 8.
    pub in_interrupt: bool,
}

/// How often CPUs are sampled by the timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProfileInterval {
    /// In units of 100 nanoseconds.
    pub interval_100ns: u32,
}

pub(super) fn sample(event: &Event<'_>) -> Result<SampledProfile, PayloadError> {
    let mut fields = EventFields::of(event, "PerfInfo SampledProfile");
    let address = fields.pointer("address")?;
    let thread = fields.u32("thread")?;
    let count = fields.u16("count")?;
    // The meaning of these bits is that of Microsoft's reader PerfView (`SampledProfileTraceData`).
    let flags = fields.u16("flags")?;
    Ok(SampledProfile {
        address,
        thread,
        count,
        in_deferred_call: flags & 1 != 0,
        in_interrupt: flags & 2 != 0,
    })
}

pub(super) fn interval(event: &Event<'_>) -> Result<Option<ProfileInterval>, PayloadError> {
    let mut fields = EventFields::of(event, "PerfInfo SampledProfileInterval");
    let source = fields.u32("source")?;
    let interval_100ns = fields.u32("interval")?;
    Ok((source == TIMER && interval_100ns != 0).then_some(ProfileInterval { interval_100ns }))
}
