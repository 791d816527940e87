//! Watches without a screen: prints one table after another on the standard output.

use super::live::Snapshot;
use super::page::{Cell, Page, PageData, page};
use super::question::Question;
use super::quit_reason::QuitReason;
use super::session::{Message, Session};
use super::state::State;
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
    let question = State::of(args).question;
    let limit = if args.limit == 0 { usize::MAX } else { args.limit };
    let name = session.about.title();
    let (mut printed, mut ended) = (0, None);
    while let Ok(message) = messages.recv() {
        match message {
            Message::Snapshot(snapshot) => {
                let table = table(&name, &snapshot, &question, limit, Screen::of_stdout());
                printed += 1;
                if !print_at_once(table)? || args.iterations.is_some_and(|wanted| printed >= wanted) {
                    return Ok(QuitReason::Quit);
                }
                if let Some(end) = ended {
                    return Ok(end);
                }
            }
            // The last snapshot follows.
            Message::Ended(status) => ended = Some(QuitReason::Ended(status)),
            Message::Signal(signal) => return Ok(QuitReason::Signal(signal)),
            Message::Input(_) => {}
            Message::Gone => return Ok(QuitReason::Gone),
        }
    }
    Ok(QuitReason::Gone)
}

/// A line about the whole, the functions, and an empty line.
fn table(name: &str, snapshot: &Snapshot, question: &Question, limit: usize, screen: Screen) -> Text {
    let index = Index::new(&snapshot.profile);
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
    let mut table = Table::new(vec![
        Column::Number("SELF"),
        Column::Number("TOTAL"),
        Column::Number("SELF (ALL)"),
        Column::Number("TOTAL (ALL)"),
        Column::Minor("LIB"),
        Column::Main("FUNCTION"),
    ]);
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
    use crate::system::linux::top::draw::tests::snapshot;

    #[test]
    fn a_table_has_the_last_seconds_and_the_whole() {
        let question = State::new(SortBy::Own, 5, false).question;
        let text = table("app (7)", &snapshot(), &question, 2, Screen::PLAIN);
        let expected = "\
app (7): CPU 100.0%, 5,000 samples in the last 5.0 s; 10,000 samples in all of 10.0 s
 SELF   TOTAL  SELF (ALL)  TOTAL (ALL)  LIB  FUNCTION
80.0%   80.0%       40.0%        40.0%  app  beta
20.0%  100.0%       10.0%       100.0%  app  main

";
        assert_eq!(text.as_str(), expected);
    }
}
