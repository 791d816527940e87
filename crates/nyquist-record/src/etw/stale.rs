//! The names of sessions. Those whose recorders have ended without stopping them are found by their names.

/// What all names of sessions begin with.
const PREFIX: &str = "nyquist-";

/// The name of the session of a recorder with this process number.
pub(crate) fn name_of(pid: u32) -> String {
    format!("{PREFIX}{pid}")
}

/// Of the names of all sessions, those of recorders that have ended. This recorder is given with its process number
/// and the name of its program's file, if that is known, and all processes that run likewise.
pub(crate) fn stale(
    names: Vec<String>,
    (own_pid, own_name): (u32, Option<&str>),
    running: &[(u32, String)],
) -> Vec<String> {
    // Another program can have the number of a recorder that has ended.
    let is_recorder = |name: &str| own_name.is_none_or(|own| name.eq_ignore_ascii_case(own));
    // This recorder has no session yet: one of its name is of a recorder that had its number.
    let lives =
        |pid: u32| pid != own_pid && running.iter().any(|(number, name)| *number == pid && is_recorder(name));
    let recorder = |name: &str| name.strip_prefix(PREFIX)?.parse::<u32>().ok();
    // A name in another spelling of the number is not of a recorder.
    let is_stale = |name: &String| recorder(name).is_some_and(|pid| name_of(pid) == *name && !lives(pid));
    names.into_iter().filter(is_stale).collect()
}
