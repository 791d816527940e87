//! The topics whose tests do not run beside many others, with the reason for each.

/// How a test runs that does not run beside many others, and why.
#[derive(Clone, Copy)]
pub(super) enum Apart {
    /// Beside one other test of this kind.
    InPairs(&'static str),
    /// With the machine to itself.
    Alone(&'static str),
}

/// The tests measure shares of a program's CPU time, which are the same beside a test that leaves it a CPU.
const MEASURES: Apart = Apart::InPairs("measures shares");
/// The tests measure what all programs of the machine do, choose them by name, or measure how soon something happens.
const WHOLE: Apart = Apart::Alone("measures the whole machine");
/// The tests change settings or groups that all processes of the machine share.
const GLOBAL: Apart = Apart::Alone("changes what the whole machine has");
/// The tests load the machine so much that other tests would be late.
const HEAVY: Apart = Apart::Alone("takes the whole machine");

/// The topics, with their reasons.
const APART: &[(&str, Apart)] = &[
    ("annotate", MEASURES),
    ("attach", MEASURES),
    ("attach_beside", WHOLE),
    ("cargo", HEAVY),
    ("chosen_cpus", WHOLE),
    ("code_in_memory", MEASURES),
    ("control_groups", GLOBAL),
    ("counters", WHOLE),
    ("deep_stacks", WHOLE),
    ("diff", MEASURES),
    ("doctor", GLOBAL),
    ("formats", MEASURES),
    ("front_end", GLOBAL),
    ("go", MEASURES),
    ("hostile_markers", MEASURES),
    ("hostile_modules", MEASURES),
    ("idle", WHOLE),
    ("jit", WHOLE),
    ("job_control", WHOLE),
    ("leaks", WHOLE),
    ("losses", WHOLE),
    ("markers", MEASURES),
    ("names", MEASURES),
    ("options", GLOBAL),
    ("output_files", MEASURES),
    ("output_safety", MEASURES),
    ("own_files", GLOBAL),
    ("perf_data", WHOLE),
    ("perf_data_export", MEASURES),
    ("permissions", GLOBAL),
    ("privileges", GLOBAL),
    ("ptrace", WHOLE),
    ("ptrace_attach", WHOLE),
    ("query", MEASURES),
    ("recording", MEASURES),
    ("report", MEASURES),
    ("samply", HEAVY),
    ("samply_options", GLOBAL),
    ("signals", WHOLE),
    ("stacks", MEASURES),
    ("stat", WHOLE),
    ("storms", HEAVY),
    ("targets", WHOLE),
    ("time_namespaces", MEASURES),
    ("top", WHOLE),
    ("unwind_info", MEASURES),
    ("waits", WHOLE),
    ("walkthrough", HEAVY),
];

/// Why the tests of a topic do not run beside many others, if that is so.
pub(super) fn reason(topic: &str) -> Option<Apart> {
    APART.iter().find(|(name, _)| *name == topic).map(|(_, why)| *why)
}

#[cfg(test)]
mod tests {
    use super::APART;
    use crate::live::TOPICS;
    use crate::rotation::TURNS;

    #[test]
    fn the_topics_of_the_tables_exist() {
        let is_topic = |name: &str| TOPICS.iter().any(|(topic, _)| *topic == name);
        assert!(APART.iter().all(|(name, _)| is_topic(name)));
        let is_step = |name: &str| {
            ["oracle", "platforms-lints", "platforms-macos", "platforms-windows", "shipped"].contains(&name)
        };
        let mut parts = TURNS.iter().flat_map(|parts| parts.iter());
        assert!(parts.all(|(name, _)| is_step(name) || is_topic(name)));
    }
}
