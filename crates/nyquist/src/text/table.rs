//! Tables that fit the terminal.

use super::{Screen, Style};

/// The least that is left of a name, however narrow the terminal.
const MIN_TEXT: usize = 24;

/// The blanks between columns.
const GAP: usize = 2;

/// How a column is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Column {
    /// A number, to the right, never cut.
    Number(&'static str),
    /// A short text, to the left, never cut.
    Text(&'static str),
    /// A text that may take a quarter of the room that numbers leave.
    Minor(&'static str),
    /// A text that takes what is left, and is cut in its middle. Of one such column it is the last.
    Main(&'static str),
}

impl Column {
    fn heading(self) -> &'static str {
        match self {
            Self::Number(heading) | Self::Text(heading) | Self::Minor(heading) | Self::Main(heading) => {
                heading
            }
        }
    }
}

/// A piece of a row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cell {
    text: String,
    style: Style,
}

impl Cell {
    /// A text with a style.
    pub(crate) fn new(text: impl Into<String>, style: Style) -> Self {
        Self { text: text.into(), style }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::new(text, Style::Plain)
    }
}

/// A table.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    /// A table without rows.
    pub(crate) fn new(columns: Vec<Column>) -> Self {
        Self { columns, rows: Vec::new() }
    }

    /// Adds a row with a cell for each column.
    pub(crate) fn add(&mut self, row: Vec<Cell>) {
        self.rows.push(row);
    }

    /// The lines, the headings first.
    pub(crate) fn render(&self, screen: Screen) -> String {
        let widths = self.widths(screen.width);
        let headings = self.columns.iter().map(|column| Cell::new(column.heading(), Style::Bold)).collect();
        let mut text = String::new();
        for row in std::iter::once(&headings).chain(&self.rows) {
            text.push_str(&self.line(row, &widths, screen));
        }
        text
    }

    /// The width of each column: that of its widest cell, unless the terminal is narrower.
    fn widths(&self, terminal: Option<usize>) -> Vec<usize> {
        let wanted = |(index, column): (usize, &Column)| {
            let cells = self.rows.iter().filter_map(|row| row.get(index));
            let widest = cells.map(|cell| length(&cell.text)).max().unwrap_or(0);
            widest.max(length(column.heading()))
        };
        let mut widths: Vec<usize> = self.columns.iter().enumerate().map(wanted).collect();
        let Some(terminal) = terminal else { return widths };
        let columns = || self.columns.iter().enumerate();
        let is_flexible = |column: &Column| matches!(column, Column::Minor(_) | Column::Main(_));
        let fixed: usize =
            columns().filter(|(_, column)| !is_flexible(column)).map(|(index, _)| widths[index]).sum();
        let gaps = GAP * self.columns.len().saturating_sub(1);
        let room = terminal.saturating_sub(fixed + gaps).max(MIN_TEXT);
        let mut left = room;
        for (index, _) in columns().filter(|(_, column)| matches!(column, Column::Minor(_))) {
            widths[index] = widths[index].min(room / 4);
            left -= widths[index].min(left);
        }
        for (index, _) in columns().filter(|(_, column)| matches!(column, Column::Main(_))) {
            widths[index] = widths[index].min(left);
        }
        widths
    }

    fn line(&self, row: &[Cell], widths: &[usize], screen: Screen) -> String {
        let mut line = String::new();
        let mut blanks = 0;
        for ((column, cell), &width) in self.columns.iter().zip(row).zip(widths) {
            let text = cut(&cell.text, width, screen.unicode);
            let padding = width - length(&text).min(width);
            let is_number = matches!(column, Column::Number(_));
            if is_number {
                blanks += padding;
            }
            if !text.is_empty() {
                line.push_str(&" ".repeat(blanks));
                line.push_str(&cell.style.paint(&text, screen));
                blanks = 0;
            }
            blanks += GAP + if is_number { 0 } else { padding };
        }
        line.push('\n');
        line
    }
}

/// How many characters a text has.
fn length(text: &str) -> usize {
    text.chars().count()
}

/// The text in at most `width` characters: the ends of long names tell more than their middles.
pub(crate) fn cut(text: &str, width: usize, unicode: bool) -> String {
    let count = length(text);
    if count <= width {
        return text.to_owned();
    }
    let mark = if unicode { "…" } else { ".." };
    let room = width.saturating_sub(length(mark));
    let head: String = text.chars().take(room.div_ceil(2)).collect();
    let tail: String = text.chars().skip(count - room / 2).collect();
    format!("{head}{mark}{tail}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let long = "a::very::long::path::to::a::function::with::many::parts::in::it::and::more::of::them";
        let mut table =
            Table::new(vec![Column::Number("SELF"), Column::Minor("LIB"), Column::Main("FUNCTION")]);
        table.add(vec!["50.0%".into(), "libwith_a_very_long_name-0123456789abcdef.so".into(), long.into()]);
        table.add(vec!["1.0%".into(), "app".into(), "main".into()]);
        table
    }

    #[test]
    fn a_name_is_cut_in_its_middle() {
        let check = |text, width, expected| assert_eq!(cut(text, width, true), expected);
        check("short", 5, "short");
        check("abcdefghij", 7, "abc…hij");
        check("abcdefghij", 6, "abc…ij");
        check("äöüßäöüß", 3, "ä…ß");
        check("abc", 0, "…");
        assert_eq!(cut("abcdefghij", 7, false), "abc..ij");
    }

    #[test]
    fn lines_fit_the_terminal() {
        for width in [40, 80, 100, 200] {
            let text = table().render(Screen { width: Some(width), colour: false, unicode: true });
            assert!(text.lines().all(|line| line.chars().count() <= width), "{width}: {text}");
            assert!(text.contains("main"), "{text}");
        }
    }

    #[test]
    fn elsewhere_nothing_is_cut() {
        let text = table().render(Screen::PLAIN);
        assert!(text.contains("and::more::of::them") && !text.contains('…'), "{text}");
        assert!(text.lines().all(|line| !line.ends_with(' ')), "{text}");
    }

    #[test]
    fn columns_are_aligned() {
        let text = table().render(Screen::PLAIN);
        let starts: Vec<_> = ["FUNCTION", "a::very", "main"]
            .iter()
            .map(|name| text.lines().find_map(|line| line.find(name)).unwrap())
            .collect();
        assert_eq!(starts, [starts[0]; 3]);
    }
}
