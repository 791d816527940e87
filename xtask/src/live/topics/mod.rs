//! The live tests by topic. They check what a user sees.
//!
//! A new topic is a file here with `TESTS`, its `mod` line, and a row of `TOPICS`, which says in which conditions the
//! tests run. `cargo xtask test NAME` runs the tests whose name contains NAME.

mod aarch64;
mod agent;
mod agent_allocations;
mod agent_failures;
mod agent_targets;
mod agents;
mod allocating_programs;
mod allocation_exports;
mod allocation_operators;
mod allocation_refusals;
mod allocation_views;
mod allocations;
mod annotate;
mod arm_machine;
mod assembly;
mod attach;
mod attach_beside;
mod austin;
mod bad_input;
mod cargo;
mod chosen_cpus;
mod code_in_memory;
mod control_groups;
mod counters;
mod deep_stacks;
mod diff;
mod doctor;
mod documented;
pub(crate) mod engines;
mod event_trace;
mod events;
mod exit_status;
mod flamegraph;
mod fleet;
mod flight;
mod formats;
mod front_end;
mod go;
mod hostile_mappings;
mod hostile_markers;
mod hostile_modules;
mod idle;
mod jit;
mod job_control;
mod kept_records;
mod leaks;
mod losses;
mod macos;
mod markers;
mod names;
mod one_thread;
mod options;
mod other_pages;
mod other_profilers;
mod output_files;
mod output_forms;
mod output_safety;
mod own_files;
mod own_signals;
mod pages;
mod perf_data;
mod perf_data_export;
mod permissions;
mod privileges;
mod ptrace;
mod ptrace_attach;
mod ptrace_budget;
mod python;
mod query;
mod recording;
mod report;
mod samply;
mod samply_options;
mod server;
mod setuid;
mod side_files;
mod sidecar;
mod signal_stacks;
mod signals;
mod simpleperf;
mod split_debug_info;
mod spool;
mod stacks;
mod stat;
mod storms;
mod suspended;
mod swapped_files;
mod symbol_sources;
mod tables;
mod targets;
mod time_namespaces;
mod top;
mod tunnels;
mod unresponsive_files;
mod unwind_info;
mod user_files;
mod viewer;
mod wait_functions;
mod waits;
mod walkthrough;
mod whole_machine;
mod windows;
mod workflows;

// Topics name the parts of the harness as `super::context`.
use super::harness::condition::Condition::{AsStarted, BusyCpu, OtherParanoid, PlainUser, Root};
use super::harness::{
    browser, by, context, emulator, expect, file_server, group_folders, http, invocation, json_docs,
    large_profile, made_profile, made_recording, npm, page, paranoid, profile, profiler_cli, pypi, receiver,
    recorded, rules, running_targets, spare, test, tool_chain, virtual_machine,
};
use test::{Topic, topic};

/// All tests, by topic, with the conditions in which they run.
pub(crate) const TOPICS: &[Topic] = &[
    topic("recording", &[AsStarted, Root, PlainUser, OtherParanoid, BusyCpu], recording::TESTS),
    topic("stacks", &[AsStarted, Root, PlainUser, BusyCpu], stacks::TESTS),
    topic("assembly", &[AsStarted], assembly::TESTS),
    topic("deep_stacks", &[AsStarted, Root, PlainUser], deep_stacks::TESTS),
    topic("signal_stacks", &[AsStarted, Root, PlainUser], signal_stacks::TESTS),
    topic("unwind_info", &[AsStarted], unwind_info::TESTS),
    topic("names", &[AsStarted, Root, PlainUser, BusyCpu], names::TESTS),
    topic("symbol_sources", &[AsStarted, Root], symbol_sources::TESTS),
    topic("split_debug_info", &[AsStarted, Root], split_debug_info::TESTS),
    topic("code_in_memory", &[AsStarted, PlainUser], code_in_memory::TESTS),
    topic("go", &[AsStarted], go::TESTS),
    topic("jit", &[AsStarted, Root], jit::TESTS),
    topic("python", &[AsStarted], python::TESTS),
    topic("side_files", &[AsStarted, Root, PlainUser], side_files::TESTS),
    topic("exit_status", &[AsStarted], exit_status::TESTS),
    topic("output_files", &[AsStarted, Root, PlainUser], output_files::TESTS),
    topic("spool", &[AsStarted, Root, PlainUser], spool::TESTS),
    topic("output_forms", &[AsStarted], output_forms::TESTS),
    topic("output_safety", &[AsStarted, Root, PlainUser], output_safety::TESTS),
    topic("attach", &[AsStarted, Root, PlainUser, BusyCpu], attach::TESTS),
    topic("one_thread", &[AsStarted, Root, PlainUser], one_thread::TESTS),
    topic("attach_beside", &[AsStarted, Root, PlainUser], attach_beside::TESTS),
    topic("targets", &[AsStarted, Root], targets::TESTS),
    topic("whole_machine", &[AsStarted, Root, PlainUser], whole_machine::TESTS),
    topic("time_namespaces", &[AsStarted, Root], time_namespaces::TESTS),
    topic("chosen_cpus", &[AsStarted, Root], chosen_cpus::TESTS),
    topic("control_groups", &[AsStarted, Root, PlainUser, OtherParanoid], control_groups::TESTS),
    topic("counters", &[AsStarted, PlainUser], counters::TESTS),
    topic("allocations", &[AsStarted, Root, PlainUser], allocations::TESTS),
    topic("allocating_programs", &[AsStarted, PlainUser], allocating_programs::TESTS),
    topic("allocation_exports", &[AsStarted], allocation_exports::TESTS),
    topic("allocation_operators", &[AsStarted], allocation_operators::TESTS),
    topic("allocation_refusals", &[AsStarted, Root, PlainUser], allocation_refusals::TESTS),
    topic("allocation_views", &[AsStarted], allocation_views::TESTS),
    topic("events", &[AsStarted, Root, PlainUser, BusyCpu], events::TESTS),
    topic("own_files", &[AsStarted, Root, PlainUser], own_files::TESTS),
    topic("swapped_files", &[AsStarted, PlainUser], swapped_files::TESTS),
    topic("unresponsive_files", &[AsStarted, Root, PlainUser], unresponsive_files::TESTS),
    topic("storms", &[AsStarted, Root, PlainUser, OtherParanoid], storms::TESTS),
    topic("idle", &[AsStarted, Root], idle::TESTS),
    topic("leaks", &[AsStarted, Root, PlainUser], leaks::TESTS),
    topic("losses", &[AsStarted, Root, PlainUser], losses::TESTS),
    topic("signals", &[AsStarted], signals::TESTS),
    topic("job_control", &[AsStarted], job_control::TESTS),
    topic("own_signals", &[AsStarted], own_signals::TESTS),
    topic("simpleperf", &[AsStarted, Root], simpleperf::TESTS),
    topic("permissions", &[AsStarted, Root, PlainUser, OtherParanoid], permissions::TESTS),
    topic("privileges", &[AsStarted, Root, PlainUser], privileges::TESTS),
    topic("ptrace", &[AsStarted, PlainUser], ptrace::TESTS),
    topic("ptrace_attach", &[AsStarted], ptrace_attach::TESTS),
    topic("ptrace_budget", &[AsStarted], ptrace_budget::TESTS),
    topic("setuid", &[AsStarted, Root, PlainUser], setuid::TESTS),
    topic("doctor", &[AsStarted, Root, PlainUser, OtherParanoid], doctor::TESTS),
    topic("documented", &[AsStarted, Root], documented::TESTS),
    topic("documented_1", &[AsStarted, Root], documented::FIRST_HALF),
    topic("documented_2", &[AsStarted, Root], documented::SECOND_HALF),
    topic("pages", &[AsStarted], pages::TESTS),
    topic("user_files", &[AsStarted, Root, PlainUser], user_files::TESTS),
    topic("agents", &[AsStarted], agents::TESTS),
    topic("server", &[AsStarted, Root, PlainUser], server::TESTS),
    topic("tunnels", &[AsStarted], tunnels::TESTS),
    topic("viewer", &[AsStarted], viewer::TESTS),
    topic("report", &[AsStarted], report::TESTS),
    topic("annotate", &[AsStarted], annotate::TESTS),
    topic("diff", &[AsStarted], diff::TESTS),
    topic("query", &[AsStarted], query::TESTS),
    topic("top", &[AsStarted, Root, PlainUser, BusyCpu], top::TESTS),
    topic("stat", &[AsStarted, Root, PlainUser], stat::TESTS),
    topic("flamegraph", &[AsStarted], flamegraph::TESTS),
    topic("flight", &[AsStarted, Root, PlainUser], flight::TESTS),
    topic("formats", &[AsStarted], formats::TESTS),
    topic("other_pages", &[AsStarted], other_pages::TESTS),
    topic("tables", &[AsStarted], tables::TESTS),
    topic("agent", &[AsStarted, Root, PlainUser], agent::TESTS),
    topic("agent_allocations", &[AsStarted, PlainUser], agent_allocations::TESTS),
    topic("agent_failures", &[AsStarted, Root], agent_failures::TESTS),
    topic("agent_targets", &[AsStarted, Root, PlainUser], agent_targets::TESTS),
    topic("fleet", &[AsStarted], fleet::TESTS),
    topic("engines", &[AsStarted], engines::TESTS),
    topic("other_profilers", &[AsStarted], other_profilers::TESTS),
    topic("austin", &[AsStarted], austin::TESTS),
    topic("front_end", &[AsStarted, Root, PlainUser], front_end::TESTS),
    topic("markers", &[AsStarted, PlainUser], markers::TESTS),
    topic("hostile_mappings", &[AsStarted, Root, PlainUser], hostile_mappings::TESTS),
    topic("hostile_markers", &[AsStarted, Root, PlainUser], hostile_markers::TESTS),
    topic("hostile_modules", &[AsStarted, Root, PlainUser], hostile_modules::TESTS),
    topic("bad_input", &[AsStarted, PlainUser], bad_input::TESTS),
    topic("cargo", &[AsStarted], cargo::TESTS),
    topic("perf_data", &[AsStarted, Root], perf_data::TESTS),
    topic("kept_records", &[AsStarted, Root], kept_records::TESTS),
    topic("perf_data_export", &[AsStarted], perf_data_export::TESTS),
    topic("arm_machine", &[AsStarted], arm_machine::TESTS),
    topic("aarch64", &[AsStarted], aarch64::TESTS),
    topic("walkthrough", &[AsStarted], walkthrough::TESTS),
    topic("event_trace", &[AsStarted], event_trace::TESTS),
    topic("windows", &[AsStarted], windows::TESTS),
    topic("workflows", &[AsStarted], workflows::TESTS),
    topic("macos", &[AsStarted], macos::TESTS),
    topic("waits", &[AsStarted, Root, PlainUser, BusyCpu], waits::TESTS),
    topic("wait_functions", &[AsStarted], wait_functions::TESTS),
    topic("suspended", &[AsStarted, Root], suspended::TESTS),
    topic("options", &[AsStarted, Root, PlainUser], options::TESTS),
    topic("samply", &[AsStarted], samply::TESTS),
    topic("samply_options", &[AsStarted, Root, OtherParanoid], samply_options::TESTS),
    topic("sidecar", &[AsStarted], sidecar::TESTS),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// The conditions that a topic's source says, beside the one that is always there.
    fn conditions_in(source: &str) -> Vec<super::super::harness::condition::Condition> {
        let paranoid: Vec<&str> = source.split("at_paranoid(").skip(1).collect();
        let is_everywhere = source.contains(".everywhere()");
        let is_plain_user = source.contains("by_plain_user") || source.contains("PLAIN_USER");
        let found = [
            (AsStarted, true),
            (Root, source.contains("need_root()") || !paranoid.is_empty()),
            (PlainUser, is_plain_user || is_everywhere),
            (OtherParanoid, paranoid.iter().any(|value| !value.starts_with("2)"))),
            (BusyCpu, is_everywhere || source.contains(".on_busy_cpu()")),
        ];
        found.into_iter().filter(|(_, holds)| *holds).map(|(condition, _)| condition).collect()
    }

    #[test]
    fn topics_declare_their_conditions() {
        let folder = crate::paths::root().join("xtask/src/live/topics");
        let mut sources = 0;
        for topic in TOPICS {
            let Ok(source) = std::fs::read_to_string(folder.join(format!("{}.rs", topic.name))) else {
                continue;
            };
            assert_eq!(conditions_in(&source), topic.conditions, "{}", topic.name);
            sources += 1;
        }
        assert!(sources + 2 >= TOPICS.len(), "{sources} sources");
    }

    #[test]
    fn main_topics_have_tests_for_all_conditions() {
        for name in ["recording", "stacks", "names", "waits", "events", "top", "attach"] {
            let topic = TOPICS.iter().find(|topic| topic.name == name).unwrap();
            let tests_in =
                |condition| topic.tests.iter().filter(move |test| test.conditions.contains(&condition));
            assert!(tests_in(PlainUser).count() >= 1 && tests_in(BusyCpu).count() >= 2, "{name}");
        }
    }
}
