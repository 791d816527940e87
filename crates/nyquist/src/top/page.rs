//! The answer to what is looked at: rows and columns, of functions, the tree, threads or the command's output.

mod functions;
mod threads;
mod tree;

use super::live::Snapshot;
use super::state::{Period, Question, ViewKind};
use crate::number::percent;
use crate::text::{Names, Style, one_line};
use nyquist_analysis::{Index, Pattern, Selection, View, short_name};
use nyquist_profile::ThreadIndex;
use std::hash::{DefaultHasher, Hash, Hasher as _};

/// How wide a column is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Width {
    /// So many characters, to the right.
    Number(u16),
    /// So many characters, to the left.
    Text(u16),
    /// One in so many characters of the screen, to the left.
    Part(u16),
    /// What is left of the screen, to the left.
    Rest,
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Column {
    pub(super) heading: &'static str,
    pub(super) width: Width,
    /// What stands over this column and those that follow; empty for nothing new.
    pub(super) group: String,
    /// Whether the rows are ordered by it.
    pub(super) is_sorted: bool,
    /// The narrowest screen that has it.
    pub(super) from: u16,
}

impl Column {
    fn new(heading: &'static str, width: Width) -> Self {
        Self { heading, width, group: String::new(), is_sorted: false, from: 0 }
    }

    /// Bars beside the column before it, on wide screens.
    fn bars() -> Self {
        Self { from: 120, ..Self::new("", Width::Text(12)) }
    }

    fn sorted(self, is_sorted: bool) -> Self {
        Self { is_sorted, ..self }
    }

    fn under(self, group: impl Into<String>) -> Self {
        Self { group: group.into(), ..self }
    }
}

/// What stands in a column.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Cell {
    Text(String, Style),
    /// A bar of this share of the column's width.
    Bar(f64),
    /// The row's name, behind its place in the tree.
    Name,
}

impl Cell {
    /// A share; nothing for nothing.
    fn share(share: f64) -> Self {
        let text = if share > 0.0 { percent(share) } else { String::new() };
        Self::Text(text, Style::of_share(share))
    }

    fn dim(text: &str) -> Self {
        Self::text(text, Style::Dim)
    }

    /// A text with hidden characters escaped, so that it is as wide as what is shown.
    fn text(text: &str, style: Style) -> Self {
        Self::Text(one_line(text).into_owned(), style)
    }
}

/// A row.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Row {
    /// What tells it from others, also on later pages.
    pub(super) key: u64,
    /// Its name, as it is shown.
    pub(super) name: String,
    /// How deep it is in the tree.
    pub(super) depth: usize,
    /// Whether it is an open or a closed node of the tree; none for a leaf.
    pub(super) is_open: Option<bool>,
    pub(super) thread: Option<ThreadIndex>,
    pub(super) cells: Vec<Cell>,
}

/// How busy something was.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Load {
    /// The samples.
    pub(super) weight: u64,
    /// The time, in ns.
    pub(super) duration: u64,
    /// CPU time by time: 1 is a whole CPU.
    pub(super) cpus: f64,
}

impl Load {
    fn new(weight: u64, duration: u64, interval: u64) -> Self {
        let used = weight as f64 * interval as f64;
        Self { weight, duration, cpus: if duration == 0 { 0.0 } else { used / duration as f64 } }
    }
}

/// What is shown.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Page {
    pub(super) columns: Vec<Column>,
    pub(super) rows: Vec<Row>,
    /// What is said where there is no row.
    pub(super) empty: &'static str,
    /// The last seconds.
    pub(super) recent: Load,
    /// The whole.
    pub(super) overall: Load,
}

/// What pages are made of.
#[derive(Clone, Copy)]
pub(super) struct Ground<'a> {
    pub(super) index: &'a Index<'a>,
    pub(super) snapshot: &'a Snapshot,
    /// What the command has printed.
    pub(super) output: &'a [String],
}

/// A question about a profile, with the views that answer it.
struct Asked<'a> {
    ground: Ground<'a>,
    question: &'a Question,
    names: Names,
    search: Option<Pattern>,
    recent: View<'a>,
    overall: View<'a>,
    /// When the last seconds begin.
    recent_since: u64,
}

/// Answers a question. O(samples of the last seconds + nodes + functions).
pub(super) fn page(ground: Ground<'_>, question: &Question) -> Page {
    let asked = Asked::new(ground, question);
    let page = match question.view {
        ViewKind::Functions => functions::page(&asked),
        ViewKind::Tree => tree::page(&asked),
        ViewKind::Threads => threads::page(&asked),
        ViewKind::Output => output(ground.output),
    };
    let load = |period| asked.load(period, asked.view(period).total().weight);
    Page { recent: load(Period::Recent), overall: load(Period::Overall), ..page }
}

impl<'a> Asked<'a> {
    fn new(ground: Ground<'a>, question: &'a Question) -> Self {
        let recent_since = recent_since(ground.snapshot, question.window);
        // The list of threads has all of them, whichever is chosen.
        let thread = question.thread.as_ref().filter(|_| question.view != ViewKind::Threads);
        let overall = Selection { threads: thread.map(|(thread, _)| vec![*thread]), ..Selection::default() };
        let recent = Selection { range: Some(recent_since..u64::MAX), ..overall.clone() };
        let search = (!question.search.is_empty()).then(|| Pattern::substring(&question.search).ok());
        Self {
            ground,
            question,
            names: if question.has_full_names { Names::Full } else { Names::Short },
            search: search.flatten(),
            recent: View::new(ground.index, &recent),
            overall: View::new(ground.index, &overall),
            recent_since,
        }
    }

    fn view(&self, period: Period) -> &View<'a> {
        match period {
            Period::Recent => &self.recent,
            Period::Overall => &self.overall,
        }
    }

    /// How busy something was that has so many samples in a period.
    fn load(&self, period: Period, weight: u64) -> Load {
        let snapshot = self.ground.snapshot;
        let since = match period {
            Period::Recent => self.recent_since,
            Period::Overall => snapshot.since,
        };
        Load::new(weight, snapshot.until.saturating_sub(since), snapshot.profile.meta().interval)
    }

    /// Whether a name is searched for, as it is or as it is shown.
    fn finds(&self, name: &str) -> bool {
        self.search.as_ref().is_none_or(|search| search.matches(name) || search.matches(&short_name(name)))
    }

    /// The heading over what is about a period.
    fn group(&self, period: Period) -> String {
        match period {
            Period::Recent => {
                let seconds = self.ground.snapshot.until.saturating_sub(self.recent_since) as f64 / 1e9;
                format!("last {:.0} s", seconds.max(1.0))
            }
            Period::Overall => "overall".to_owned(),
        }
    }
}

/// When the last seconds begin, as far as there is detail of them.
fn recent_since(snapshot: &Snapshot, window: u64) -> u64 {
    let wanted = snapshot.until.saturating_sub(window.saturating_mul(1_000_000_000));
    wanted.max(snapshot.detailed_since).max(snapshot.since)
}

fn output(lines: &[String]) -> Page {
    let row = |(key, line): (u64, &String)| Row {
        key,
        name: one_line(line).into_owned(),
        cells: vec![Cell::Name],
        ..Row::default()
    };
    Page {
        columns: vec![Column::new("OUTPUT", Width::Rest)],
        rows: (0..).zip(lines).map(row).collect(),
        empty: "The command has printed nothing",
        ..Page::default()
    }
}

/// The key of something by its names, the same in every snapshot.
fn key(parts: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    parts.hash(&mut hasher);
    hasher.finish()
}

/// A part of a whole, from 0 to 1.
fn part(weight: u64, total: u64) -> f64 {
    if total == 0 { 0.0 } else { weight as f64 / total as f64 }
}
