//! Pure functions over a profile: what a report, a server or a viewer asks.
//!
//! Every function takes a [`Profile`](nyquist_profile::Profile) and a [`Filter`] and is linear in samples and
//! stacks. Results are plain values that serialise to JSON. Weights are numbers of sampling intervals of CPU
//! time; CPU times are in ns.

#![forbid(unsafe_code)]

mod filter;
mod functions;
mod stack_sums;
mod summary;
#[cfg(test)]
mod test_profile;

pub use filter::Filter;
pub use functions::{Function, FunctionTable, functions};
pub use stack_sums::Amount;
pub use summary::{Summary, summary};
