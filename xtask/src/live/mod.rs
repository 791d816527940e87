//! Live recordings of the workloads by the real program, asserting what a user sees.
//!
//! libtest hides what a passing test prints, also its word about a skip; hence a harness of our own.

mod aarch64;
mod annotate;
mod attach;
mod attach_beside;
mod bad_input;
mod browser;
mod by;
mod cargo;
mod chosen_cpus;
mod code_in_memory;
mod context;
mod control_groups;
mod deep_stacks;
mod deepening;
mod diff;
mod doctor;
mod emulator;
mod exit_status;
mod expect;
mod file_server;
mod flamegraph;
mod formats;
mod front_end;
mod go;
mod harness;
mod hostile_markers;
mod http;
mod idle;
mod invocation;
mod jit;
mod job_control;
mod json_docs;
mod leaks;
mod losses;
mod macos;
mod made_profile;
mod many_cpus;
mod markers;
mod names;
mod options;
mod other_stacks;
mod output_files;
mod output_forms;
mod output_safety;
mod own_files;
mod own_signals;
pub(crate) mod paranoid;
mod perf_data;
mod perf_data_export;
mod permissions;
pub(crate) mod profile;
mod profiler_cli;
mod ptrace;
mod ptrace_attach;
mod query;
mod recorded;
mod recording;
mod report;
mod rules;
mod samply;
mod samply_options;
mod server;
mod setuid;
mod signals;
mod simpleperf;
mod spare;
mod split_debug_info;
mod stacks;
mod storms;
mod symbol_sources;
mod targets;
mod time_namespaces;
mod top;
mod unwind_info;
mod walkthrough;
mod windows;

pub(crate) use harness::{Plan, list, run, wanted};

use harness::Test;

/// All tests, topic by topic.
const TOPICS: &[(&str, &[Test])] = &[
    ("recording", recording::TESTS),
    ("stacks", stacks::TESTS),
    ("deep_stacks", deep_stacks::TESTS),
    ("deepening", deepening::TESTS),
    ("unwind_info", unwind_info::TESTS),
    ("names", names::TESTS),
    ("symbol_sources", symbol_sources::TESTS),
    ("split_debug_info", split_debug_info::TESTS),
    ("code_in_memory", code_in_memory::TESTS),
    ("other_stacks", other_stacks::TESTS),
    ("go", go::TESTS),
    ("jit", jit::TESTS),
    ("exit_status", exit_status::TESTS),
    ("output_files", output_files::TESTS),
    ("output_forms", output_forms::TESTS),
    ("output_safety", output_safety::TESTS),
    ("attach", attach::TESTS),
    ("attach_beside", attach_beside::TESTS),
    ("targets", targets::TESTS),
    ("time namespaces", time_namespaces::TESTS),
    ("chosen_cpus", chosen_cpus::TESTS),
    ("control_groups", control_groups::TESTS),
    ("own_files", own_files::TESTS),
    ("storms", storms::TESTS),
    ("idle", idle::TESTS),
    ("leaks", leaks::TESTS),
    ("losses", losses::TESTS),
    ("signals", signals::TESTS),
    ("job_control", job_control::TESTS),
    ("own_signals", own_signals::TESTS),
    ("simpleperf", simpleperf::TESTS),
    ("permissions", permissions::TESTS),
    ("ptrace", ptrace::TESTS),
    ("ptrace_attach", ptrace_attach::TESTS),
    ("setuid", setuid::TESTS),
    ("doctor", doctor::TESTS),
    ("server", server::TESTS),
    ("report", report::TESTS),
    ("annotate", annotate::TESTS),
    ("diff", diff::TESTS),
    ("query", query::TESTS),
    ("top", top::TESTS),
    ("flamegraph", flamegraph::TESTS),
    ("formats", formats::TESTS),
    ("front_end", front_end::TESTS),
    ("many_cpus", many_cpus::TESTS),
    ("markers", markers::TESTS),
    ("hostile_markers", hostile_markers::TESTS),
    ("bad_input", bad_input::TESTS),
    ("cargo", cargo::TESTS),
    ("perf_data", perf_data::TESTS),
    ("perf_data_export", perf_data_export::TESTS),
    ("aarch64", aarch64::TESTS),
    ("walkthrough", walkthrough::TESTS),
    ("windows", windows::TESTS),
    ("macos", macos::TESTS),
    ("options", options::TESTS),
    ("samply", samply::TESTS),
    ("samply_options", samply_options::TESTS),
];
