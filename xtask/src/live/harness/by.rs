//! How a test samples programs: by the best method on this machine, or by ptrace where `perf_event_open` is
//! refused.

use super::context::Context;
use super::invocation::Invocation;

/// A way to sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    Best,
    Ptrace,
}

/// Both ways. A test must pass with each of them.
pub(crate) const BOTH: [By; 2] = [By::Best, By::Ptrace];

impl By {
    /// A call of nyquist that samples this way.
    pub(crate) fn adapt<'a>(self, test: &Context<'_>, call: Invocation<'a>) -> Invocation<'a> {
        match self {
            Self::Best => call,
            Self::Ptrace => refused(test, call),
        }
    }
}

/// A call under a filter that refuses `perf_event_open`.
pub(crate) fn refused<'a>(test: &Context<'_>, call: Invocation<'a>) -> Invocation<'a> {
    call.under(&[&test.workload("deny_perf").display().to_string()])
}
