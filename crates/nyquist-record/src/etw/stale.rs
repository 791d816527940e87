//! The names of sessions. Those whose recorders have ended without stopping them are found by their names.

/// What all names of sessions begin with.
const PREFIX: &str = "nyquist-";

/// The name of the session of a recorder with this process number.
pub(crate) fn name_of(pid: u32) -> String {
    format!("{PREFIX}{pid}")
}

/// Of the names of all sessions, those of recorders that have ended. `lives` tells whether a recorder with a
/// process number lives.
pub(crate) fn stale(names: Vec<String>, lives: impl Fn(u32) -> bool) -> Vec<String> {
    let recorder = |name: &str| name.strip_prefix(PREFIX)?.parse::<u32>().ok();
    // A name in another spelling of the number is not of a recorder.
    let is_stale = |name: &String| recorder(name).is_some_and(|pid| name_of(pid) == *name && !lives(pid));
    names.into_iter().filter(is_stale).collect()
}
