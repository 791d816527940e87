//! A query with the profile: the data for answers.

use crate::args::QueryArgs;
use crate::scale::Scale;
use crate::text::Names;
use nyquist_analysis::{Index, View};
use serde_json::{Value, json};

/// A query with its profile.
pub(super) struct QueryContext<'a> {
    pub(super) args: &'a QueryArgs,
    pub(super) index: &'a Index<'a>,
    pub(super) view: &'a View<'a>,
    pub(super) scale: Scale,
    pub(super) names: Names,
    pub(super) limit: usize,
}

impl<'a> QueryContext<'a> {
    /// The function that was requested by name or handle.
    pub(super) fn target(&self) -> Option<&'a str> {
        self.args.target.as_deref()
    }

    /// A share, to a hundredth of a per cent.
    pub(super) fn share(&self, weight: u64) -> Value {
        json!((self.scale.share(weight) * 1e4).round() / 1e4)
    }

    /// The time in ms.
    pub(super) fn ms(&self, weight: u64) -> Value {
        milliseconds(weight.saturating_mul(self.scale.interval_ns))
    }

    /// A command for a further query.
    pub(super) fn next(&self, question: &str) -> String {
        format!("nyquist query {} {question}", self.args.file.display())
    }
}

/// A time in ms with three decimals.
pub(super) fn milliseconds(nanoseconds: u64) -> Value {
    json!((nanoseconds as f64 / 1e3).round() / 1e3)
}
