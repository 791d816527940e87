//! Names that the recorder writes and the analysis recognises.

/// The category of programs and libraries.
pub const USER: &str = "User";
/// The category of kernel code.
pub const KERNEL: &str = "Kernel";
/// The subcategory of [`USER`] for the outer frames of a stack that were not in its copy. They were read from
/// the running program's memory, some time before and after the sample.
pub const COMPLETED: &str = "Completed from memory";
/// The default category.
pub const OTHER: &str = "Other";

/// The function that stands for kernel time that the recorder was not permitted to sample.
pub const KERNEL_NOT_PERMITTED: &str = "[kernel: not permitted]";

/// The function that stands for CPU time of threads that slept or ended before their next sample, or whose
/// samples were lost.
pub const NOT_SAMPLED: &str = "[not sampled]";

/// The innermost function of a stack whose thread was runnable while other threads had the CPU.
pub const RUNNABLE: &str = "[waiting for a CPU]";

/// The innermost function of waits that ended before the recorder read the thread, or whose stack may not
/// be read.
pub const WAIT_NOT_SEEN: &str = "[waiting: not seen]";

/// The innermost function of the stack of a thread that was stopped by a signal or a debugger.
pub const STOPPED: &str = "[stopped]";

/// The innermost function of the stack of a thread whose control group was frozen.
pub const FROZEN: &str = "[frozen]";

/// The category of waits.
pub const WAITING: &str = "Waiting";

/// The category of waits of a runtime's workers that have nothing to do.
pub const IDLE_WORKERS: &str = "Idle workers";

/// The name of the innermost function of a stack whose thread waits, for example for a `lock`: `[waiting:
/// lock]`. A thread that is `stopped`, `frozen`, or `idle: RUNTIME` waits for nothing of its own: `[stopped]`.
pub fn waiting_for(reason: &str) -> String {
    if is_bare(reason) { format!("[{reason}]") } else { format!("[waiting: {reason}]") }
}

/// What a thread waits for, if its innermost function is `name`: `lock`, `stopped`, `idle: Tokio`. `None`
/// for other functions.
pub fn wait_reason(name: &str) -> Option<&str> {
    let inside = name.strip_prefix('[')?.strip_suffix(']')?;
    if is_bare(inside) { Some(inside) } else { inside.strip_prefix("waiting: ") }
}

/// The reason of the wait of a runtime's worker that has nothing to do.
pub fn idle_worker(runtime: &str) -> String {
    format!("{IDLE}{runtime}")
}

/// The runtime whose worker has nothing to do, given the reason of its wait.
pub fn idle_runtime(reason: &str) -> Option<&str> {
    reason.strip_prefix(IDLE)
}

const IDLE: &str = "idle: ";

/// Whether a reason is the whole name of the innermost function.
fn is_bare(reason: &str) -> bool {
    let [stopped, frozen] = [STOPPED, FROZEN].map(|name| name.trim_matches(['[', ']']));
    reason == stopped || reason == frozen || reason.starts_with(IDLE)
}

/// The kind of markers for times off the CPU. Their fields are, in this order, the reason, the object, and
/// the thread that held it.
pub const WAIT_SCHEMA: &str = "Wait";

/// The key of a wait marker's field with the time of the thread's earlier waits that it stands for, in milliseconds.
/// Where each switch would cost too much, some waits are seen by chance.
pub const WAIT_UNSEEN: &str = "unseen";

/// The label of the line of the information panel that says why a profile has no samples.
pub const NOTHING_SAMPLED: &str = "Nothing was sampled";

/// The kind of markers for intervals in which a control group had used up its CPU time. Their fields are, in this
/// order, the group, and the time that it was held up: the sum of its CPUs, in ms.
pub const QUOTA_SCHEMA: &str = "CpuQuota";

/// The process whose threads are the CPUs. Its samples repeat those of other threads.
pub const CPU_PROCESS: &str = "CPU";

/// The id of the process whose threads are the CPUs. No real process has it.
pub const CPU_PROCESS_ID: &str = "0";

/// The reason for a truncated stack if its process's mappings are not known. Only root may read the
/// mappings of other users' processes.
pub const UNKNOWN_MAPPINGS: &str = "the process's mappings are not known";

/// The start of the name of the root function of a truncated stack.
const TRUNCATED: &str = "(truncated";

/// The name of the root function of a stack that is truncated because of `reason`: `(truncated:
/// reason)`.
pub fn truncated(reason: &str) -> String {
    if reason.is_empty() { format!("{TRUNCATED})") } else { format!("{TRUNCATED}: {reason})") }
}

/// Whether `name` is the root function of a truncated stack.
pub fn is_truncated(name: &str) -> bool {
    truncation_reason(name).is_some()
}

/// The reason for a truncated stack with the root function `name`: empty if it is unknown, `None` for
/// other functions.
pub fn truncation_reason(name: &str) -> Option<&str> {
    let rest = name.strip_prefix(TRUNCATED)?.strip_suffix(')')?;
    if rest.is_empty() { Some(rest) } else { rest.strip_prefix(": ") }
}

/// The prefix of the kinds of markers that represent recorded events.
const EVENT_SCHEMA: &str = "Event: ";

/// The first field of such a marker: the number of occurrences of the event that it stands for.
pub const EVENT_COUNT: &str = "event_count";

/// The kind of markers for the recorded event of this name.
pub fn event_schema(name: &str) -> String {
    format!("{EVENT_SCHEMA}{name}")
}

/// The name of the recorded event for this kind of markers, if it is such a kind.
pub fn event_of_schema(schema: &str) -> Option<&str> {
    schema.strip_prefix(EVENT_SCHEMA)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_of_waits_are_known_again() {
        for (reason, name) in [
            ("lock", "[waiting: lock]"),
            ("stopped", STOPPED),
            ("frozen", FROZEN),
            ("idle: Tokio", "[idle: Tokio]"),
        ] {
            assert_eq!((waiting_for(reason).as_str(), wait_reason(name)), (name, Some(reason)));
        }
        for other in ["lock", "[kernel: not permitted]", "[stopped", RUNNABLE] {
            assert_eq!(wait_reason(other), None, "{other}");
        }
        assert_eq!(idle_runtime(&idle_worker("Go")), Some("Go"));
        assert_eq!(idle_runtime("lock"), None);
    }

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
