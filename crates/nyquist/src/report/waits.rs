//! Waits of threads: the objects, the places, the threads that held the objects, and those that ended the
//! waits.

use super::context::{Report, TABLE_ROWS, more};
use super::markers::duration;
use crate::number::grouped;
use crate::text::{Cell, Column, Style, Table, Text, one_line};
use nyquist_analysis::schema::{List, Rows, WaitRow};
use nyquist_analysis::{WaitPlace, WaitedFor, wait_places};

pub(super) fn text(report: &Report<'_>) -> Text {
    let waits = report.view.waits();
    if waits.is_empty() {
        return "No waits were recorded: `nyquist record --off-cpu` records them.\n".into();
    }
    let limit = report.limit(TABLE_ROWS);
    let shown: Vec<_> = waits.iter().take(limit).collect();
    let are_known =
        [shown.iter().any(|wait| !wait.holders.is_empty()), shown.iter().any(|wait| !wait.wakers.is_empty())];
    let numbers = ["TOTAL", "COUNT", "MEDIAN", "LONGEST"].map(Column::Number);
    let threads = ["HELD BY", "WOKEN BY"].map(Column::Minor).into_iter().zip(are_known);
    let threads = threads.filter_map(|(column, is_known)| is_known.then_some(column));
    let things = [Column::Minor("WHICH"), Column::Main("WHERE")];
    let columns = numbers.into_iter().chain([Column::Minor("FOR")]).chain(threads).chain(things);
    let mut table = Table::new(columns.collect());
    for wait in shown {
        table.add(row(report, wait, are_known));
    }
    let unseen_ns = waits.iter().map(|wait| wait.unseen_ns).fold(0, u64::saturating_add);
    table.render(report.screen)
        + &unseen_text(unseen_ns)
        + more(waits.len().saturating_sub(limit), "thing that was waited for", "things that were waited for")
}

/// A line about the time that is in totals, but in no count.
fn unseen_text(ns: u64) -> String {
    if ns == 0 {
        return String::new();
    }
    format!("{} of TOTAL was not seen: the waits that were seen stand for it\n", duration(ns))
}

/// A row, with the holding threads and the waking threads if their columns are shown.
fn row(report: &Report<'_>, wait: &WaitedFor<'_>, are_known: [bool; 2]) -> Vec<Cell> {
    let durations = wait.durations;
    let profile = report.view.profile();
    let place = places_text(report, &wait_places(profile, wait));
    let first = |threads: &[(&str, u64)]| -> Cell {
        one_line(threads.first().map_or("", |(thread, _)| thread)).into_owned().into()
    };
    let of_seen = |text: String| if durations.count > 0 { text } else { String::new() };
    let numbers = [
        duration(durations.total_ns),
        of_seen(grouped(durations.count)),
        of_seen(duration(durations.p50_ns)),
        of_seen(duration(durations.max_ns)),
        one_line(wait.reason).into_owned(),
    ];
    let threads = [&wait.holders, &wait.wakers].into_iter().zip(are_known);
    let threads = threads.filter(|(_, is_known)| *is_known).map(|(threads, _)| first(threads));
    let which = Cell::new(one_line(wait.object.unwrap_or_default()).into_owned(), Style::Dim);
    let things = [which, place.into()];
    numbers.into_iter().map(Cell::from).chain(threads).chain(things).collect()
}

/// The places in a few words. The time of each is there if there are several.
fn places_text(report: &Report<'_>, places: &[WaitPlace<'_>]) -> String {
    /// The most places that are named.
    const NAMED: usize = 3;
    if let [place] = places {
        return report.names.show(place.name);
    }
    let named = places.iter().take(NAMED);
    let named = named.map(|place| format!("{} {}", report.names.show(place.name), duration(place.total_ns)));
    let more = Some(places.len().saturating_sub(NAMED)).filter(|more| *more > 0);
    named.chain(more.map(|more| format!("{more} more"))).collect::<Vec<_>>().join(", ")
}

pub(super) fn list<'a>(report: &Report<'a>) -> List<WaitRow<'a>> {
    let rows = Rows::of(report.view);
    List::new("wait", "waits", report.limit(TABLE_ROWS), &report.view.waits(), |wait| {
        rows.wait_with_stacks(wait)
    })
}
