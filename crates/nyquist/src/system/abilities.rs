//! What the operating system allows, and the sentences that name it.

/// Whether there are more commands here than those that record and read profiles.
pub(crate) const MEASURES: bool = cfg!(target_os = "linux");

/// Whether this machine or this program can be made ready for recording.
pub(crate) const HAS_SETUP: bool = cfg!(any(target_os = "linux", target_os = "macos"));

/// The processes of a command that a recording leaves out.
pub(crate) const LEFT_OUT: &str = if cfg!(target_os = "linux") {
    "processes that may not be recorded (setuid programs, and programs that you may not read), or that have left the control group"
} else {
    "processes that may not be recorded, or that ended before they were found"
};

/// Why processes that used CPU time can have no sample.
pub(crate) const WITHOUT_SAMPLES: &str = if cfg!(target_os = "linux") {
    "its processes used less CPU time than a sampling interval each, or gained privileges that it keeps from you (setuid)"
} else {
    "its processes used less CPU time than a sampling interval each, or may not be recorded"
};

/// What samples threads that end soon, too, if anything does.
pub(crate) const FOR_SHORT_THREADS: Option<&str> = if cfg!(target_os = "linux") {
    Some("as root, `nyquist record -a --name PROGRAM` samples short-lived threads, too")
} else if cfg!(windows) {
    Some(
        "in a terminal of an administrator, `nyquist record -a --name PROGRAM` samples short-lived threads, too",
    )
} else {
    None
};

#[cfg(all(test, not(target_os = "linux")))]
mod tests {
    use super::*;

    #[test]
    fn no_sentence_names_what_only_linux_has() {
        let all = [LEFT_OUT, WITHOUT_SAMPLES, FOR_SHORT_THREADS.unwrap_or_default()];
        assert!(["setuid", "control group", "root"].iter().all(|word| !all.concat().contains(word)));
    }
}
