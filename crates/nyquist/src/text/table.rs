//! Tables that fit the terminal.

use super::{Screen, Style, Text, one_line};
use nyquist_formats::fit;

/// The least width of names while another column can be left out for them.
const MIN_TEXT: usize = 24;

/// The least width of a text beside names while another column can be left out.
const MIN_MINOR: usize = 8;

/// The least width of a name, however narrow the terminal.
const MIN_NAME_WIDTH: usize = 8;

/// The number of spaces between columns.
const GAP: usize = 2;

/// The layout of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Column {
    /// A number, to the right, never cut.
    Number(&'static str),
    /// A short text, to the left, never cut.
    Text(&'static str),
    /// A text. It gets at most a quarter of the width beside numbers, or less with other texts. Names get
    /// three times as much.
    Minor(&'static str),
    /// A name, which gets the remaining width. If it is too long, its last parts are shown. If it is in
    /// such a column, the column is the last.
    Main(&'static str),
}

impl Column {
    /// Whether it gets the remaining width.
    fn is_flexible(self) -> bool {
        matches!(self, Self::Minor(_) | Self::Main(_))
    }

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
    /// A text with a style. Hidden characters are escaped here, so that widths are those of the displayed
    /// text.
    pub(crate) fn new(text: impl Into<String>, style: Style) -> Self {
        let text = text.into();
        Self { text: one_line(&text).into_owned(), style }
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
    /// Whether each column is shown, however narrow the terminal.
    keeps_all: bool,
}

impl Table {
    /// A table without rows.
    pub(crate) fn new(columns: Vec<Column>) -> Self {
        Self { columns, rows: Vec::new(), keeps_all: false }
    }

    /// Adds a row with a cell for each column.
    pub(crate) fn add(&mut self, row: Vec<Cell>) {
        self.rows.push(row);
    }

    /// Keeps all columns, because the user requested each of them.
    pub(crate) fn keeping_all(self, keeps_all: bool) -> Self {
        Self { keeps_all, ..self }
    }

    /// The lines, the headings first.
    pub(crate) fn render(&self, screen: Screen) -> Text {
        if let Some(less) = screen.width.and_then(|width| self.without_least(width)) {
            return less.render(screen);
        }
        let widths = self.widths(screen.width);
        let headings = self.columns.iter().map(|column| Cell::new(column.heading(), Style::Bold)).collect();
        let mut text = Text::default();
        for row in std::iter::once(&headings).chain(&self.rows) {
            text.push(self.line(row, &widths, screen));
        }
        text
    }

    /// The table without its least important column, if a terminal of that width leaves too little for
    /// names. Bars and marks are removed first, then times beside shares, then libs, then other columns
    /// from the right.
    fn without_least(&self, terminal: usize) -> Option<Self> {
        let has = |kind: fn(&Column) -> bool| self.columns.iter().any(kind);
        if self.keeps_all || !has(|column| matches!(column, Column::Main(_))) {
            return None;
        }
        let least = MIN_TEXT + MIN_MINOR * self.minor_columns();
        let names: usize = self.natural_widths(|column| column.is_flexible()).iter().sum();
        if self.room(terminal) >= least.min(names) {
            return None;
        }
        let rank = |column: &Column| match column {
            Column::Text("") => Some(0),
            Column::Number("") => Some(1),
            Column::Minor(_) => Some(2),
            Column::Number(_) | Column::Text(_) => Some(3),
            Column::Main(_) => None,
        };
        let ranked = self.columns.iter().enumerate().skip(1);
        let ranked = ranked.filter_map(|(index, column)| Some((rank(column)?, std::cmp::Reverse(index))));
        let (_, std::cmp::Reverse(index)) = ranked.min()?;
        let mut less = self.clone();
        less.columns.remove(index);
        less.rows.iter_mut().filter(|row| index < row.len()).for_each(|row| drop(row.remove(index)));
        Some(less)
    }

    fn minor_columns(&self) -> usize {
        self.columns.iter().filter(|column| matches!(column, Column::Minor(_))).count()
    }

    /// The width of the widest cell of each column of a kind, and 0 for others.
    fn natural_widths(&self, is_of_kind: impl Fn(&Column) -> bool) -> Vec<usize> {
        let requested = |(index, column): (usize, &Column)| {
            let cells = self.rows.iter().filter_map(|row| row.get(index));
            let widest = cells.map(|cell| length(&cell.text)).max().unwrap_or(0);
            if is_of_kind(column) { widest.max(length(column.heading())) } else { 0 }
        };
        self.columns.iter().enumerate().map(requested).collect()
    }

    /// The width that a terminal leaves for names and texts.
    fn room(&self, terminal: usize) -> usize {
        let fixed: usize = self.natural_widths(|column| !column.is_flexible()).iter().sum();
        terminal.saturating_sub(fixed + GAP * self.columns.len().saturating_sub(1))
    }

    /// The width of each column: that of its widest cell, unless the terminal is narrower.
    fn widths(&self, terminal: Option<usize>) -> Vec<usize> {
        let mut widths = self.natural_widths(|_| true);
        let Some(terminal) = terminal else { return widths };
        let columns = || self.columns.iter().enumerate();
        let room = self.room(terminal).max(MIN_NAME_WIDTH);
        let main: usize = self.natural_widths(|column| matches!(column, Column::Main(_))).iter().sum();
        let mut left = room;
        for (index, _) in columns().filter(|(_, column)| matches!(column, Column::Minor(_))) {
            // Its share, or the width that names do not need, whichever is more.
            let share = room / (3 + self.minor_columns());
            widths[index] = widths[index].min(share.max(left.saturating_sub(main)));
            left -= widths[index].min(left);
        }
        for (index, _) in columns().filter(|(_, column)| matches!(column, Column::Main(_))) {
            widths[index] = widths[index].min(left);
        }
        widths
    }

    fn line(&self, row: &[Cell], widths: &[usize], screen: Screen) -> Text {
        let mut line = Text::default();
        let mut blanks = 0;
        for ((column, cell), &width) in self.columns.iter().zip(row).zip(widths) {
            let text = match column {
                Column::Main(_) => cut_name(&cell.text, width, screen.unicode),
                _ => cut(&cell.text, width, screen.unicode),
            };
            let padding = width - length(&text).min(width);
            let is_number = matches!(column, Column::Number(_));
            if is_number {
                blanks += padding;
            }
            if !text.is_empty() {
                line.push(" ".repeat(blanks));
                line.push(cell.style.paint(&text, screen));
                blanks = 0;
            }
            blanks += GAP + if is_number { 0 } else { padding };
        }
        line + "\n"
    }
}

/// The number of characters of a text.
fn length(text: &str) -> usize {
    text.chars().count()
}

/// The text in at most `width` characters, without its middle.
pub(crate) fn cut(text: &str, width: usize, unicode: bool) -> String {
    fit::fit_text(text, width, mark(unicode))
}

/// The name in at most `width` characters: the end of a path is more informative than its beginning.
pub(crate) fn cut_name(name: &str, width: usize, unicode: bool) -> String {
    fit::fit_name(name, width, mark(unicode))
}

fn mark(unicode: bool) -> &'static str {
    if unicode { "…" } else { ".." }
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
            let text = text.as_str();
            assert!(text.lines().all(|line| line.chars().count() <= width), "{width}: {text}");
            assert!(text.contains("main") && text.contains("::them"), "{text}");
        }
    }

    #[test]
    fn names_keep_their_room_on_narrow_terminals() {
        let screen = |width| Screen { width: Some(width), colour: false, unicode: true };
        let numbers = ["SELF", "", "TOTAL", ""].map(Column::Number);
        let names = [Column::Minor("LIB"), Column::Main("FUNCTION")];
        let mut table = Table::new(numbers.into_iter().chain(names).collect());
        let name = "app::some::module::of::the::program::that_does_the_work";
        table.add(
            ["100.0%", "12,345 ms", "100.0%", "12,345 ms", "libsomething.so", name].map(Cell::from).into(),
        );
        for width in 20..120 {
            let text = table.render(screen(width));
            let text = text.as_str();
            assert!(text.lines().all(|line| length(line) <= width), "{width}: {text}");
            assert!(text.contains("FUNCTION") || width < 24, "{width}: {text}");
        }
        let shown = |table: &Table, width| table.render(screen(width)).as_str().to_owned();
        assert!(!shown(&table, 40).contains("LIB") && shown(&table, 40).contains("…::that_does_the_work"));
        assert!(shown(&table, 60).contains("LIB") && !shown(&table, 60).contains(" ms"));
        assert!(shown(&table.keeping_all(true), 40).contains(" ms"));
    }

    #[test]
    fn names_keep_their_room_beside_many_texts() {
        let screen = |width| Screen { width: Some(width), colour: false, unicode: true };
        let texts = ["FOR", "HELD BY", "WOKEN BY", "WHICH"].map(Column::Minor);
        let columns = [Column::Number("TOTAL")].into_iter().chain(texts).chain([Column::Main("WHERE")]);
        let mut table = Table::new(columns.collect());
        let thread = "tokio-rt-worker (12345)";
        let name = "app::some::module::of::the::program::that_does_the_work";
        table.add(["1.83 s", "lock", thread, thread, "0x5614c6de61c0", name].map(Cell::from).into());
        for width in 40..200 {
            let text = table.render(screen(width));
            let text = text.as_str();
            assert!(text.lines().all(|line| length(line) <= width), "{width}: {text}");
            assert!(text.contains("that_does_the_work"), "{width}: {text}");
        }
        assert!(table.render(screen(100)).as_str().contains("WOKEN BY"));
    }

    #[test]
    fn elsewhere_nothing_is_cut() {
        let text = table().render(Screen::PLAIN);
        let text = text.as_str();
        assert!(text.contains("and::more::of::them") && !text.contains('…'), "{text}");
        assert!(text.lines().all(|line| !line.ends_with(' ')), "{text}");
    }

    #[test]
    fn columns_are_aligned() {
        let text = table().render(Screen::PLAIN);
        let text = text.as_str();
        let starts: Vec<_> = ["FUNCTION", "a::very", "main"]
            .iter()
            .map(|name| text.lines().find_map(|line| line.find(name)).unwrap())
            .collect();
        assert_eq!(starts, [starts[0]; 3]);
    }
}
