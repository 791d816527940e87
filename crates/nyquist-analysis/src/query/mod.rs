//! What is asked of a view, a question a file: tables, trees, graphs, time lines.

pub(crate) mod call_sites;
mod chart_columns;
pub(crate) mod counters;
pub(crate) mod flame_chart;
pub(crate) mod flame_graph;
pub(crate) mod free_time;
pub(crate) mod function_choice;
pub(crate) mod function_groups;
pub(crate) mod functions;
pub(crate) mod groups;
pub(crate) mod hot_lines;
pub(crate) mod hottest_own;
pub(crate) mod impossible_time;
pub(crate) mod inlined;
pub(crate) mod markers;
pub(crate) mod peek;
pub(crate) mod places;
pub(crate) mod positions;
pub(crate) mod run_time;
pub(crate) mod samples;
pub(crate) mod spans;
pub(crate) mod summary;
pub(crate) mod timeline;
pub(crate) mod to_profile;
pub(crate) mod tree;
pub(crate) mod wait_places;
pub(crate) mod waits;
