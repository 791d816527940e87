//! A query with the views of the profile that answer it.

use super::types::{Cell, Load, Width};
use crate::number::percent;
use crate::scale::bytes;
use crate::text::{Names, Style};
use crate::top::live::Snapshot;
use crate::top::question::{Period, Question, ViewKind};
use nyquist_analysis::{Index, Pattern, SampleState, Selection, View, short_name};
use std::hash::{DefaultHasher, Hash, Hasher as _};

/// The data of pages.
#[derive(Clone, Copy)]
pub(in crate::top) struct PageData<'a> {
    pub(in crate::top) index: &'a Index<'a>,
    pub(in crate::top) snapshot: &'a Snapshot,
    /// The command's output.
    pub(in crate::top) output: &'a [String],
}

/// A query of a profile, with the views that answer it.
pub(super) struct PageContext<'a> {
    pub(super) data: PageData<'a>,
    pub(super) question: &'a Question,
    pub(super) names: Names,
    pub(super) search: Option<Pattern>,
    pub(super) recent: View<'a>,
    pub(super) overall: View<'a>,
    /// The start of the last seconds.
    pub(super) recent_since: u64,
}

impl<'a> PageContext<'a> {
    pub(super) fn new(data: PageData<'a>, question: &'a Question) -> Self {
        let recent_since = recent_since(data.snapshot, question.window);
        // The list of threads contains all of them, even if one is chosen.
        let thread = question.thread.as_ref().filter(|_| question.view != ViewKind::Threads);
        let threads = thread.map(|(thread, _)| vec![*thread]);
        let state = if question.memory.is_some() { SampleState::OnCpu } else { question.state };
        let overall = Selection { threads, state, ..Selection::default() };
        let recent = Selection { range: Some(recent_since..u64::MAX), ..overall.clone() };
        let search = (!question.search.is_empty()).then(|| Pattern::substring(&question.search).ok());
        Self {
            data,
            question,
            names: if question.has_full_names { Names::Full } else { Names::Short },
            search: search.flatten(),
            recent: View::new(data.index, &recent),
            overall: View::new(data.index, &overall),
            recent_since,
        }
    }

    pub(super) fn view(&self, period: Period) -> &View<'a> {
        match period {
            Period::Recent => &self.recent,
            Period::Overall => &self.overall,
        }
    }

    /// The load of an item with that weight in a period.
    pub(super) fn load(&self, period: Period, weight: u64) -> Load {
        let snapshot = self.data.snapshot;
        let since = match period {
            Period::Recent => self.recent_since,
            Period::Overall => snapshot.since,
        };
        let duration = snapshot.until.saturating_sub(since);
        let meta = self.data.index.profile().meta();
        match self.question.memory {
            Some(measure) => Load::of_memory((measure, meta.sample_distance), weight, duration),
            None => Load::new(self.question.state, weight, duration, meta.interval),
        }
    }

    /// The weight of an item: its share of a whole, or its bytes.
    pub(super) fn amount(&self, weight: u64, whole: u64) -> Cell {
        let share = part(weight, whole);
        match self.question.memory {
            Some(_) if weight > 0 => Cell::Text(bytes(weight), Style::of_share(share)),
            _ => Cell::share(share),
        }
    }

    /// The width of such weights.
    pub(super) fn amount_width(&self) -> Width {
        Width::Number(if self.question.memory.is_some() { 9 } else { 6 })
    }

    /// Whether amounts are estimates, whose errors are known.
    pub(super) fn has_errors(&self) -> bool {
        self.question.memory.is_some() && self.data.index.profile().meta().sample_distance.is_some()
    }

    /// The standard error of a weight, as its share. It is empty if there is none.
    pub(super) fn error(&self, period: Period, weight: u64) -> Cell {
        let error = self.load(period, weight).error_share();
        Cell::dim(&error.map(percent).unwrap_or_default())
    }

    /// Whether the search matches a name, in its full or its displayed form.
    pub(super) fn finds(&self, name: &str) -> bool {
        self.search.as_ref().is_none_or(|search| search.matches(name) || search.matches(&short_name(name)))
    }

    /// The text to show if there are no rows: `sampled` for CPU time.
    pub(super) fn nothing(&self, sampled: &'static str) -> &'static str {
        if self.question.memory.is_some() {
            return "No allocation was recorded in that time";
        }
        match self.question.state {
            SampleState::OffCpu => "No thread was seen to wait in that time",
            SampleState::OnCpu | SampleState::Both => sampled,
        }
    }

    /// The heading over columns about a period.
    pub(super) fn group(&self, period: Period) -> String {
        match period {
            Period::Recent => {
                let seconds = self.data.snapshot.until.saturating_sub(self.recent_since) as f64 / 1e9;
                format!("last {:.0} s", seconds.max(1.0))
            }
            Period::Overall => "overall".to_owned(),
        }
    }
}

/// The start of the last seconds, as far as the snapshot has details of them.
fn recent_since(snapshot: &Snapshot, window: u64) -> u64 {
    let requested = snapshot.until.saturating_sub(window.saturating_mul(1_000_000_000));
    requested.max(snapshot.detailed_since).max(snapshot.since)
}

/// The key of an item by its names, the same in every snapshot.
pub(super) fn key(parts: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    parts.hash(&mut hasher);
    hasher.finish()
}

/// A part of a whole, from 0 to 1.
pub(super) fn part(weight: u64, total: u64) -> f64 {
    if total == 0 { 0.0 } else { weight as f64 / total as f64 }
}
