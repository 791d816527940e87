//! The waits of a thread that were not observed, until an observed one stands for them.

/// How a wait was observed. This determines which other waits it stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitObservation {
    /// A look from outside saw it, `before_ns` nanoseconds after the previous look. Each moment of short
    /// waits is seen with the same probability.
    Look { before_ns: u64 },
    /// The switch was recorded. Each wait is seen with the same probability.
    Switch,
}

/// The waits of a thread that were not seen and are in no sample yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct UnseenWaits {
    /// How long they took, in nanoseconds.
    pub(crate) ns: u64,
    /// How many there were since one was seen.
    count: u64,
}

/// When a thread's unobserved waits sum to this many nanoseconds, they become a sample of their own.
const MAX_UNSEEN_NS: u64 = 1_000_000_000;

impl UnseenWaits {
    /// Whether they are so long that they become a sample of their own.
    pub(crate) fn are_long(self) -> bool {
        self.ns >= MAX_UNSEEN_NS
    }

    /// Adds a wait of that length.
    pub(crate) fn add(&mut self, length_ns: u64) {
        self.ns = self.ns.saturating_add(length_ns);
        self.count = self.count.saturating_add(1);
    }

    /// Takes out the time, in nanoseconds, that a seen wait of this length stands for.
    pub(crate) fn take_share(&mut self, observation: WaitObservation, length_ns: u64) -> u64 {
        let share = match observation {
            WaitObservation::Look { before_ns } if length_ns < before_ns.saturating_mul(2) => self.ns,
            WaitObservation::Look { .. } => 0,
            WaitObservation::Switch => self.ns.min(length_ns.saturating_mul(self.count)),
        };
        *self = Self { ns: self.ns - share, count: 0 };
        share
    }
}
