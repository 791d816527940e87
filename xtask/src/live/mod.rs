//! Live recordings of the workloads by the real program. The tests check what a user sees.
//!
//! This is a harness of our own, because libtest hides the output of a passing test, including its message
//! about a skip.
//!
//! A new topic is a file here with `TESTS`, its `mod` line, and a row of `TOPICS`. `cargo xtask test NAME` runs the
//! tests whose name contains NAME.

mod aarch64;
mod annotate;
mod arm_machine;
mod attach;
mod attach_beside;
mod attempts;
mod austin;
mod bad_input;
mod browser;
mod by;
mod cargo;
mod chosen_cpus;
mod code_in_memory;
mod context;
mod control_groups;
mod counters;
mod deep_stacks;
mod diff;
mod doctor;
mod emulator;
mod event_trace;
mod events;
mod exit_status;
mod expect;
mod file_server;
mod flamegraph;
mod formats;
mod front_end;
mod go;
mod group_folders;
mod harness;
mod hostile_mappings;
mod hostile_markers;
mod hostile_modules;
mod http;
mod idle;
mod invocation;
mod jit;
mod job_control;
mod json_docs;
mod kept_records;
mod leaks;
mod losses;
mod macos;
mod made_profile;
pub(crate) mod made_recording;
mod markers;
mod names;
mod npm;
mod options;
mod other_profilers;
mod output_files;
mod output_forms;
mod output_safety;
mod own_files;
mod own_signals;
pub(crate) mod paranoid;
mod perf_data;
mod perf_data_export;
mod permissions;
mod plan;
mod privileges;
pub(crate) mod profile;
mod profiler_cli;
mod ptrace;
mod ptrace_attach;
mod ptrace_budget;
mod pypi;
mod query;
mod recorded;
mod recording;
mod report;
mod rules;
mod running_targets;
mod samply;
mod samply_options;
mod server;
mod setuid;
mod side_files;
mod sidecar;
mod signals;
mod simpleperf;
mod spare;
mod split_debug_info;
mod stacks;
mod stat;
mod storms;
mod suspended;
mod swapped_files;
mod symbol_sources;
mod targets;
mod test;
mod time_namespaces;
mod top;
mod tracefs;
mod unresponsive_files;
mod unwind_info;
mod viewer;
mod virtual_machine;
mod wait_functions;
mod waits;
mod walkthrough;
mod whole_machine;
mod windows;

pub(crate) use harness::{list, run, wanted};
pub(crate) use plan::Plan;

use test::Test;

/// All tests, by topic.
pub(crate) const TOPICS: &[(&str, &[Test])] = &[
    ("recording", recording::TESTS),
    ("stacks", stacks::TESTS),
    ("deep_stacks", deep_stacks::TESTS),
    ("unwind_info", unwind_info::TESTS),
    ("names", names::TESTS),
    ("symbol_sources", symbol_sources::TESTS),
    ("split_debug_info", split_debug_info::TESTS),
    ("code_in_memory", code_in_memory::TESTS),
    ("go", go::TESTS),
    ("jit", jit::TESTS),
    ("side_files", side_files::TESTS),
    ("exit_status", exit_status::TESTS),
    ("output_files", output_files::TESTS),
    ("output_forms", output_forms::TESTS),
    ("output_safety", output_safety::TESTS),
    ("attach", attach::TESTS),
    ("attach_beside", attach_beside::TESTS),
    ("targets", targets::TESTS),
    ("whole_machine", whole_machine::TESTS),
    ("time_namespaces", time_namespaces::TESTS),
    ("chosen_cpus", chosen_cpus::TESTS),
    ("control_groups", control_groups::TESTS),
    ("counters", counters::TESTS),
    ("events", events::TESTS),
    ("own_files", own_files::TESTS),
    ("swapped_files", swapped_files::TESTS),
    ("unresponsive_files", unresponsive_files::TESTS),
    ("storms", storms::TESTS),
    ("idle", idle::TESTS),
    ("leaks", leaks::TESTS),
    ("losses", losses::TESTS),
    ("signals", signals::TESTS),
    ("job_control", job_control::TESTS),
    ("own_signals", own_signals::TESTS),
    ("simpleperf", simpleperf::TESTS),
    ("permissions", permissions::TESTS),
    ("privileges", privileges::TESTS),
    ("ptrace", ptrace::TESTS),
    ("ptrace_attach", ptrace_attach::TESTS),
    ("ptrace_budget", ptrace_budget::TESTS),
    ("setuid", setuid::TESTS),
    ("doctor", doctor::TESTS),
    ("server", server::TESTS),
    ("viewer", viewer::TESTS),
    ("report", report::TESTS),
    ("annotate", annotate::TESTS),
    ("diff", diff::TESTS),
    ("query", query::TESTS),
    ("top", top::TESTS),
    ("stat", stat::TESTS),
    ("flamegraph", flamegraph::TESTS),
    ("formats", formats::TESTS),
    ("other_profilers", other_profilers::TESTS),
    ("austin", austin::TESTS),
    ("front_end", front_end::TESTS),
    ("markers", markers::TESTS),
    ("hostile_mappings", hostile_mappings::TESTS),
    ("hostile_markers", hostile_markers::TESTS),
    ("hostile_modules", hostile_modules::TESTS),
    ("bad_input", bad_input::TESTS),
    ("cargo", cargo::TESTS),
    ("perf_data", perf_data::TESTS),
    ("kept_records", kept_records::TESTS),
    ("perf_data_export", perf_data_export::TESTS),
    ("arm_machine", arm_machine::TESTS),
    ("aarch64", aarch64::TESTS),
    ("walkthrough", walkthrough::TESTS),
    ("event_trace", event_trace::TESTS),
    ("windows", windows::TESTS),
    ("macos", macos::TESTS),
    ("waits", waits::TESTS),
    ("wait_functions", wait_functions::TESTS),
    ("suspended", suspended::TESTS),
    ("options", options::TESTS),
    ("samply", samply::TESTS),
    ("samply_options", samply_options::TESTS),
    ("sidecar", sidecar::TESTS),
];
