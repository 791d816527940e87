//! Rows of kinds of markers.

use serde::Serialize;

use super::Rows;
use crate::query::markers::{Durations, MarkerKind};

/// The markers of a kind. Times are null where none of them has a begin and an end
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MarkerRow<'a> {
    /// Their name
    pub marker: &'a str,
    /// The name of their schema, or null
    pub kind: Option<&'a str>,
    /// Their category
    pub category: &'a str,
    /// How many there are
    pub count: u64,
    /// How many of them have a begin and an end, or null
    pub intervals: Option<u64>,
    /// The sum of their durations
    pub total_ns: Option<u64>,
    /// The shortest duration
    pub min_ns: Option<u64>,
    /// The duration that 50 % of them do not exceed
    pub p50_ns: Option<u64>,
    /// The duration that 90 % of them do not exceed
    pub p90_ns: Option<u64>,
    /// The duration that 99 % of them do not exceed
    pub p99_ns: Option<u64>,
    /// The longest duration
    pub max_ns: Option<u64>,
}

impl<'a> Rows<'a> {
    /// A kind of markers.
    pub fn marker(&self, kind: &MarkerKind<'a>) -> MarkerRow<'a> {
        let of = |value: fn(&Durations) -> u64| kind.durations.as_ref().map(value);
        MarkerRow {
            marker: kind.name,
            kind: kind.schema,
            category: kind.category,
            count: kind.count,
            intervals: of(|it| it.count),
            total_ns: of(|it| it.total_ns),
            min_ns: of(|it| it.min_ns),
            p50_ns: of(|it| it.p50_ns),
            p90_ns: of(|it| it.p90_ns),
            p99_ns: of(|it| it.p99_ns),
            max_ns: of(|it| it.max_ns),
        }
    }
}
