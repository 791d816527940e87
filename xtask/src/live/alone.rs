//! The topics whose tests run alone, with the reason for each. The tests of all other topics run in parallel.

/// The tests measure times or shares of time, which other tests would disturb.
const MEASURES: &str = "measures times or shares";
/// The tests change settings or groups that all processes of the machine share.
const GLOBAL: &str = "changes what the whole machine has";
/// The tests load the machine so much that other tests would be late.
const HEAVY: &str = "takes the whole machine";

/// The topics, with their reasons.
const ALONE: &[(&str, &str)] = &[
    ("annotate", MEASURES),
    ("attach", MEASURES),
    ("attach_beside", MEASURES),
    ("cargo", HEAVY),
    ("chosen_cpus", MEASURES),
    ("code_in_memory", MEASURES),
    ("control_groups", GLOBAL),
    ("counters", MEASURES),
    ("deep_stacks", MEASURES),
    ("deepening", MEASURES),
    ("diff", MEASURES),
    ("doctor", GLOBAL),
    ("formats", MEASURES),
    ("front_end", GLOBAL),
    ("go", MEASURES),
    ("hostile_markers", MEASURES),
    ("hostile_modules", MEASURES),
    ("idle", MEASURES),
    ("jit", MEASURES),
    ("job_control", MEASURES),
    ("leaks", MEASURES),
    ("losses", MEASURES),
    ("markers", MEASURES),
    ("names", MEASURES),
    ("options", GLOBAL),
    ("output_files", MEASURES),
    ("output_safety", MEASURES),
    ("own_files", GLOBAL),
    ("perf_data", MEASURES),
    ("perf_data_export", MEASURES),
    ("permissions", GLOBAL),
    ("privileges", GLOBAL),
    ("ptrace", MEASURES),
    ("ptrace_attach", MEASURES),
    ("query", MEASURES),
    ("recording", MEASURES),
    ("report", MEASURES),
    ("samply", HEAVY),
    ("samply_options", GLOBAL),
    ("signals", MEASURES),
    ("stacks", MEASURES),
    ("stat", MEASURES),
    ("storms", HEAVY),
    ("targets", MEASURES),
    ("time_namespaces", MEASURES),
    ("top", MEASURES),
    ("unwind_info", MEASURES),
    ("waits", MEASURES),
    ("walkthrough", HEAVY),
];

/// Why the tests of a topic run alone, if they do.
pub(super) fn reason(topic: &str) -> Option<&'static str> {
    ALONE.iter().find(|(name, _)| *name == topic).map(|(_, why)| *why)
}

#[cfg(test)]
mod tests {
    use super::ALONE;
    use crate::live::TOPICS;
    use crate::rotation::TURNS;

    #[test]
    fn the_topics_of_the_tables_exist() {
        let is_topic = |name: &str| TOPICS.iter().any(|(topic, _)| *topic == name);
        assert!(ALONE.iter().all(|(name, _)| is_topic(name)));
        let is_step = |name: &str| {
            ["oracle", "platforms-lints", "platforms-macos", "platforms-windows", "shipped"].contains(&name)
        };
        let mut parts = TURNS.iter().flat_map(|parts| parts.iter());
        assert!(parts.all(|(name, _)| is_step(name) || is_topic(name)));
    }
}
