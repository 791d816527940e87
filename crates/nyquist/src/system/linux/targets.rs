//! The access to recorded processes by other processes of this program, once it was started.

use nyquist_convert::Targets;
use std::sync::OnceLock;

static TARGETS: OnceLock<Targets> = OnceLock::new();

/// The access to recorded processes; `start` makes it at the first call.
pub(crate) fn get_or_start(start: impl FnOnce() -> Targets) -> &'static Targets {
    TARGETS.get_or_init(start)
}

/// Messages about processes that gave no access.
pub(crate) fn sentences() -> Vec<String> {
    TARGETS.get().map(Targets::sentences).unwrap_or_default()
}

/// Lets the other processes give up the rights that the served user does not have.
pub(crate) fn give_up_rights() {
    if let Some(targets) = TARGETS.get() {
        targets.give_up_rights();
    }
}

/// Ends the other processes, so that this one leaves none behind.
pub(crate) fn end() {
    if let Some(targets) = TARGETS.get() {
        targets.end();
    }
}
