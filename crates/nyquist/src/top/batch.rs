//! Watches without a screen: prints one table after another on the standard output.

use super::live::Snapshot;
use super::page::{Cell, Page, PageData, page};
use super::question::Question;
use super::quit_reason::QuitReason;
use super::session::{Message, Session};
use super::state::ScreenState;
use crate::args::TopArgs;
use crate::failure::Failure;
use crate::number::counted;
use crate::page::print_at_once;
use crate::text::{self, Column, Screen, Table, Text, one_line};
use nyquist_analysis::Index;
use std::sync::mpsc::Receiver;

/// Prints tables until the watched processes have ended, enough were printed, or the reader has closed the
/// pipe.
pub(super) fn run(
    args: &TopArgs,
    session: &Session,
    messages: &Receiver<Message>,
) -> Result<QuitReason, Failure> {
    let question = ScreenState::of(args, session.about.has_allocations()).question;
    let limit = if args.limit == 0 { usize::MAX } else { args.limit };
    let name = session.about.title();
    let print =
        |snapshot: &Snapshot| print_at_once(table(&name, snapshot, &question, limit, Screen::of_stdout()));
    print_all(messages, args.iterations.unwrap_or(u64::MAX), print)
}

/// Prints snapshots until the last one, or until so many were printed. `print` returns whether its reader is
/// left.
fn print_all(
    messages: &Receiver<Message>,
    mut left: u64,
    mut print: impl FnMut(&Snapshot) -> Result<bool, Failure>,
) -> Result<QuitReason, Failure> {
    let mut end = QuitReason::Gone;
    while let Ok(message) = messages.recv() {
        match message {
            Message::Snapshot(snapshot) => {
                left -= 1;
                if !print(&snapshot)? || left == 0 {
                    return Ok(QuitReason::Quit);
                }
            }
            Message::LastSnapshot(snapshot) => {
                return print(&snapshot).map(|is_read| if is_read { end } else { QuitReason::Quit });
            }
            Message::Ended(status) => end = QuitReason::Ended(status),
            Message::Signal(signal) => return Ok(QuitReason::Signal(signal)),
            Message::Input(_) => {}
            Message::Gone => return Ok(QuitReason::Gone),
        }
    }
    Ok(QuitReason::Gone)
}

/// A line about the whole, the functions, and an empty line.
fn table(name: &str, snapshot: &Snapshot, question: &Question, limit: usize, screen: Screen) -> Text {
    let profile = snapshot.measured(question.memory);
    let index = Index::new(&profile);
    let page = page(PageData { index: &index, snapshot, output: &[] }, question);
    let Page { recent, overall, .. } = &page;
    let lost = match snapshot.lost {
        0 => String::new(),
        lost => format!("the kernel dropped {}\n", counted(lost, "record")),
    };
    let heading = format!(
        "{}: {}, {} in the last {:.1} s; {} in all of {:.1} s\n",
        one_line(name),
        recent.busy(),
        recent.amount(),
        recent.duration as f64 / 1e9,
        overall.amount(),
        overall.duration as f64 / 1e9,
    );
    let has_errors = recent.error_share().or(overall.error_share()).is_some();
    let error = |heading| has_errors.then_some(Column::Number(heading));
    let mut columns = vec![Column::Number("SELF"), Column::Number("TOTAL")];
    columns.extend(error("±"));
    columns.extend([Column::Number("SELF (ALL)"), Column::Number("TOTAL (ALL)")]);
    columns.extend(error("± (ALL)"));
    columns.extend([Column::Minor("LIB"), Column::Main("FUNCTION")]);
    let mut table = Table::new(columns);
    for row in page.rows.iter().take(limit) {
        let mut cells: Vec<text::Cell> = row.cells.iter().filter_map(text_cell).collect();
        cells.push(row.name.as_str().into());
        table.add(cells);
    }
    Text::from(heading) + lost + table.render(screen) + "\n"
}

fn text_cell(cell: &Cell) -> Option<text::Cell> {
    match cell {
        Cell::Text(text, style) => Some(text::Cell::new(text.as_str(), *style)),
        Cell::Bar(_) | Cell::Name => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::SortBy;
    use crate::top::draw::tests::{snapshot, snapshot_with_allocations};
    use nyquist_profile::AllocationMeasure;

    /// The times up to which the printed snapshots reach, and how printing ends.
    fn printed(messages: Vec<Message>, most: u64) -> (Vec<u64>, QuitReason) {
        let (sender, receiver) = std::sync::mpsc::channel();
        for message in messages {
            sender.send(message).unwrap();
        }
        let mut printed = Vec::new();
        let end = print_all(&receiver, most, |snapshot| {
            printed.push(snapshot.until);
            Ok(true)
        });
        (printed, end.unwrap())
    }

    #[test]
    fn a_snapshot_that_was_begun_is_not_the_last() {
        let snapshot = |until: u64| Box::new(Snapshot { until, ..Snapshot::default() });
        let messages = || {
            let late = Message::Snapshot(snapshot(2));
            vec![
                Message::Snapshot(snapshot(1)),
                Message::Ended(None),
                late,
                Message::LastSnapshot(snapshot(3)),
            ]
        };
        assert_eq!(printed(messages(), 9), (vec![1, 2, 3], QuitReason::Ended(None)));
        assert_eq!(printed(messages(), 2), (vec![1, 2], QuitReason::Quit));
    }

    #[test]
    fn a_table_has_the_last_seconds_and_the_whole() {
        let question = ScreenState::new(SortBy::Own, 5, false).question;
        let text = table("app (7)", &snapshot(), &question, 2, Screen::PLAIN);
        let expected = "\
app (7): CPU 100.0%, 5,000 samples in the last 5.0 s; 10,000 samples in all of 10.0 s
 SELF   TOTAL  SELF (ALL)  TOTAL (ALL)  LIB  FUNCTION
80.0%   80.0%       40.0%        40.0%  app  beta
20.0%  100.0%       10.0%       100.0%  app  main

";
        assert_eq!(text.as_str(), expected);
    }

    #[test]
    fn sampled_bytes_have_their_error_in_tables() {
        let state = ScreenState::new(SortBy::Own, 5, false).with_allocations(Some(AllocationMeasure::Total));
        let text = |distance| {
            table("app (7)", &snapshot_with_allocations(distance), &state.question, 9, Screen::PLAIN)
        };
        let expected = "\
app (7): 204 B/s, 1.0 kB ± 50.0% allocated in the last 5.0 s; 4.0 kB ± 25.0% allocated in all of 10.0 s
  SELF   TOTAL      ±  SELF (ALL)  TOTAL (ALL)  ± (ALL)  LIB  FUNCTION
1.0 kB  1.0 kB  50.0%      1.0 kB       1.0 kB    50.0%  app  beta
        1.0 kB  50.0%      3.0 kB       4.0 kB    25.0%  app  main

";
        assert_eq!(text(256.0).as_str(), expected);
        assert!(!text(1.0).as_str().contains('±'));
    }
}
