//! Pure functions over a profile: the queries of reports, exports, the server and the viewer.
//!
//! An [`Index`] is made once for a [`Profile`](nyquist_profile::Profile). A [`Selection`] chooses a part
//! of it. A [`View`] is the selected part, and answers all queries:
//!
//! ```
//! use nyquist_analysis::{Index, Pattern, Selection, View};
//! # let profile = nyquist_profile::Profile::default();
//! let index = Index::new(&profile);
//! let selection = Selection { focus: vec![Pattern::substring("parse")?], ..Selection::default() };
//! let view = View::new(&index, &selection);
//! for function in view.functions().functions {
//!     println!("{} {}", function.self_amount.weight, function.name);
//! }
//! # Ok::<(), nyquist_analysis::PatternError>(())
//! ```
//!
//! Results are plain values that serialise to JSON. Weights are numbers of sampling intervals of CPU time, or
//! of waiting time on request. CPU times are in ns. No function recurses on the native stack, so a stack of a
//! million frames cannot overflow it.

#![forbid(unsafe_code)]

mod amount;
mod call_sites;
mod category_rows;
mod checkpoints;
mod columns;
mod counters;
mod derived;
mod diff;
mod find;
mod flame_change;
mod flame_chart;
mod flame_graph;
mod forest;
mod free_time;
mod function_choice;
mod function_groups;
mod function_info;
mod functions;
mod groups;
mod hot_lines;
mod hottest_own;
mod impossible_time;
mod index;
mod indexed_sums;
mod inlined;
mod line_ratios;
mod markers;
mod names;
mod node_sums;
mod observations;
mod orders;
mod own_code;
mod parallel;
mod pattern;
mod patterns;
mod peek;
mod places;
mod positions;
mod prefix_sums;
mod ratio;
mod run_time;
mod runs;
mod samples;
mod selected_samples;
mod selection;
mod self_and_total;
mod span;
mod spans;
mod state_sums;
mod statistics;
mod sum_plan;
mod summary;
mod sums;
#[cfg(test)]
mod test_profile;
mod timeline;
mod to_profile;
mod transform;
mod tree;
mod view;
mod waits;

pub use amount::Amount;
pub use call_sites::CallSite;
pub use counters::{CounterFigure, CounterSummary};
pub use diff::{Comparison, Diff, DiffOptions, DiffUnit, FunctionDiff, diff};
pub use find::{find_categories, find_functions, find_libs, find_processes, find_threads};
pub use flame_chart::{FlameChartBox, FlameChartOptions};
pub use flame_graph::{FlameBox, FlameGraph, FlameOptions};
pub use function_choice::{ChoiceError, FunctionChoice};
pub use function_groups::{FunctionGroup, FunctionGrouping};
pub use function_info::FunctionInfo;
pub use functions::{Function, FunctionTable};
pub use groups::{CategoryRow, LibRow, ProcessRow, ThreadRow};
pub use hottest_own::hottest_own_functions;
pub use impossible_time::ImpossibleTime;
pub use index::Index;
pub use inlined::inlined_into;
pub use line_ratios::{LineRatios, PlaceRatio, line_ratios};
pub use markers::{Durations, MarkerKind};
pub use names::{comparable_name, is_only_address, module_name, short_name, without_hash};
pub use own_code::{is_own_code, own_functions};
pub use pattern::{Pattern, PatternError};
pub use peek::{Neighbour, Peek};
pub use places::{LibAddress, PlaceWeight, PlaceWeights};
pub use positions::{CodeSelection, InstructionAmounts, LineAmounts};
pub use ratio::{FunctionRatio, Ratio, Ratios, ratios};
pub use runs::{MeanChange, RunSpread};
pub use samples::{ViewFrame, ViewSample};
pub use selection::{SampleState, Selection};
pub use summary::ProfileSummary;
pub use timeline::{CategoryTimeline, ThreadTimeline, Timeline};
pub use transform::Transform;
pub use tree::{Tree, TreeLimits, TreeNode, TreeWalk};
pub use view::View;
pub use waits::WaitedFor;
