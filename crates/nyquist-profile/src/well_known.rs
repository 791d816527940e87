//! Names that the recorder writes and the analysis recognises.

/// The category of code of programs and libraries.
pub const USER: &str = "User";
/// The category of code of the kernel.
pub const KERNEL: &str = "Kernel";
/// The subcategory of [`USER`] for the outer frames of a stack that were not in its copy. They were read from
/// the running program's memory, some time before and after the sample.
pub const COMPLETED: &str = "Completed from memory";
/// The category of all that has no other.
pub const OTHER: &str = "Other";

/// The function that stands for kernel time that the recorder was not permitted to sample.
pub const KERNEL_NOT_PERMITTED: &str = "[kernel: not permitted]";

/// The function that stands for CPU time of threads that slept or ended before a sample came, or whose samples were lost.
pub const NOT_SAMPLED: &str = "[not sampled]";

/// The innermost function of a stack whose thread was ready to run, and other threads had the CPU.
pub const RUNNABLE: &str = "[waiting for a CPU]";

/// The innermost function of waits that ended before the recorder looked at the thread, or whose stack may not
/// be read.
pub const WAIT_NOT_SEEN: &str = "[waiting: not seen]";

/// The name of the innermost function of a stack whose thread waits for something, as `lock`: `[waiting: lock]`.
pub fn waiting_for(reason: &str) -> String {
    format!("[waiting: {reason}]")
}

/// What a thread waits for whose innermost function is called `name`; `None` for other functions.
pub fn wait_reason(name: &str) -> Option<&str> {
    name.strip_prefix("[waiting: ")?.strip_suffix(']')
}

/// The kind of markers that are times off the CPU. Their fields are, in this order, what was waited for, which one, and the thread that
/// held it.
pub const WAIT_SCHEMA: &str = "Wait";

/// The process whose threads are the CPUs. Its samples are those of other threads, shown a second time.
pub const CPU_PROCESS: &str = "CPU";

/// The number of the process whose threads are the CPUs, which no process has.
pub const CPU_PROCESS_ID: &str = "0";

/// Why a stack could not be finished if its process's mappings are not known. Those of other users' processes
/// may be read by root alone.
pub const UNKNOWN_MAPPINGS: &str = "the process's mappings are not known";

/// How the name of the root function of a stack that could not be finished begins.
const TRUNCATED: &str = "(truncated";

/// The name of the root function of a stack that could not be finished because of `reason`: `(truncated:
/// reason)`.
pub fn truncated(reason: &str) -> String {
    if reason.is_empty() { format!("{TRUNCATED})") } else { format!("{TRUNCATED}: {reason})") }
}

/// Whether `name` is that of the root function of a stack that could not be finished.
pub fn is_truncated(name: &str) -> bool {
    truncation_reason(name).is_some()
}

/// Why a stack could not be finished whose root function is called `name`: empty where that is not said, `None` for
/// other functions.
pub fn truncation_reason(name: &str) -> Option<&str> {
    let rest = name.strip_prefix(TRUNCATED)?.strip_suffix(')')?;
    if rest.is_empty() { Some(rest) } else { rest.strip_prefix(": ") }
}

/// The beginning of the names of the kinds of markers that recorded events become.
const EVENT_SCHEMA: &str = "Event: ";

/// The first field of such a marker: how many times the event has happened that it stands for.
pub const EVENT_COUNT: &str = "event_count";

/// The kind of marker that a recorded event of this name becomes.
pub fn event_schema(name: &str) -> String {
    format!("{EVENT_SCHEMA}{name}")
}

/// The name of the recorded event that becomes markers of this kind, if it is one of these.
pub fn event_of_schema(schema: &str) -> Option<&str> {
    schema.strip_prefix(EVENT_SCHEMA)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncated_roots_are_known_again() {
        assert_eq!(truncated(""), "(truncated)");
        assert_eq!(truncated("no unwind info"), "(truncated: no unwind info)");
        for (name, expected) in [
            ("(truncated)", Some("")),
            ("(truncated: no unwind info)", Some("no unwind info")),
            ("(truncatedly)", None),
            ("truncated", None),
        ] {
            assert_eq!(truncation_reason(name), expected, "{name}");
            assert_eq!(is_truncated(name), expected.is_some(), "{name}");
        }
    }
}
