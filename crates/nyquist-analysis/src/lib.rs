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
mod compare;
mod index;
mod names;
mod parallel;
mod query;
mod sample_state;
pub mod schema;
mod selection;
#[cfg(test)]
mod test_profile;
mod view;

pub use amount::Amount;
pub use compare::diff::{Comparison, Diff, DiffOptions, DiffUnit, FunctionDiff, diff};
pub use compare::line_ratios::{LineRatios, PlaceRatio, line_ratios};
pub use compare::ratio::{FunctionRatio, Ratio, Ratios, ratios};
pub use compare::runs::{MeanChange, RunSpread};
pub use index::Index;
pub use index::function_info::FunctionInfo;
pub use names::find::{find_categories, find_functions, find_libs, find_processes, find_threads};
pub use names::own_code::{is_own_code, own_functions};
pub use names::pattern::{Pattern, PatternError};
pub use names::{comparable_name, is_only_address, module_name, short_name, without_hash};
pub use query::call_sites::CallSite;
pub use query::counters::{CounterFigure, CounterSummary};
pub use query::flame_chart::{FlameChart, FlameChartBox, FlameChartOptions};
pub use query::flame_graph::{FlameBox, FlameGraph, FlameOptions};
pub use query::function_choice::{ChoiceError, FunctionChoice};
pub use query::function_groups::{FunctionGroup, FunctionGrouping};
pub use query::functions::{Function, FunctionTable};
pub use query::groups::{CategoryRow, LibRow, ProcessRow, ThreadRow};
pub use query::hottest_own::hottest_own_functions;
pub use query::impossible_time::ImpossibleTime;
pub use query::inlined::inlined_into;
pub use query::markers::{Durations, MarkerKind};
pub use query::peek::{Neighbour, Peek};
pub use query::places::{LibAddress, PlaceWeight, PlaceWeights};
pub use query::positions::{CodeSelection, InstructionAmounts, LineAmounts};
pub use query::samples::{ViewFrame, ViewSample};
pub use query::summary::ProfileSummary;
pub use query::timeline::{CategoryTimeline, ThreadTimeline, Timeline};
pub use query::tree::{Tree, TreeLimits, TreeNode, TreeWalk};
pub use query::wait_places::{WaitPlace, wait_places};
pub use query::waits::WaitedFor;
pub use sample_state::SampleState;
pub use selection::Selection;
pub use selection::transform::Transform;
pub use view::View;

/// The example of the page that the registry shows.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
