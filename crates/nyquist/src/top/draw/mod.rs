//! Drawing a page: a title, the views, headings, rows and keys.

use super::page::{Cell, Column, Page, Row, Width};
use super::question::ViewKind;
use super::state::{KEYS, KeyMode, ScreenState};
use crate::flame_screen::{ColorDepth, FlameBoxes, FlamePicture};
use crate::number::counted;
use crate::text::{self, Screen, bar, cut, cut_name, one_line};
use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};

/// The lines above the rows: title, views, groups of columns, headings.
const HEAD: u16 = 4;

/// The number of spaces between columns.
const GAP: u16 = 2;

/// The least width of names while another column can be left out for them.
const MIN_NAME: u16 = 16;

/// The keys in the footer, the most important first.
const FOOTER: [(&str, &str); 9] = [
    ("?", "help"),
    ("q", "quit"),
    ("1-5", "views"),
    ("s", "sort"),
    ("/", "search"),
    ("space", "pause"),
    ("o", "overall"),
    ("+-", "window"),
    ("i", "invert"),
];

/// The text beside the page.
#[derive(Clone, Debug, Default)]
pub(super) struct Caption {
    /// The watched target, with its processes.
    pub(super) name: String,
    /// How it ended.
    pub(super) ended: Option<String>,
    /// Records that the kernel dropped.
    pub(super) lost: u64,
    /// The sampling method, and reductions of the request, each in a line.
    pub(super) notes: Vec<String>,
}

/// The number of rows on a screen of that height.
pub(super) fn body_height(height: u16) -> usize {
    usize::from(height.saturating_sub(HEAD + 1))
}

/// Draws the screen.
pub(super) fn draw(
    frame: &mut Frame<'_>,
    state: &mut ScreenState,
    page: &Page,
    caption: &Caption,
    screen: Screen,
) {
    let area = frame.area();
    let mut canvas = Canvas { buffer: frame.buffer_mut(), area, screen };
    canvas.title(page, caption, state.is_paused);
    canvas.views(state);
    if state.mode == KeyMode::Help {
        canvas.help(caption);
    } else if let Some(flame) = &page.flame {
        canvas.flame(flame, state);
    } else {
        canvas.table(page, state.selected(page));
    }
    canvas.footer(state);
}

/// The screen to draw on.
struct Canvas<'a> {
    buffer: &'a mut Buffer,
    area: Rect,
    screen: Screen,
}

impl Canvas<'_> {
    /// Writes a text at a position, clipped to the screen and to `width`. Returns the column after it.
    fn put(&mut self, x: u16, y: u16, text: &str, width: u16, style: Style) -> u16 {
        if x >= self.area.width || y >= self.area.height {
            return x;
        }
        let width = width.min(self.area.width - x);
        // No hidden character reaches the screen, even if a caller forgot to escape it.
        self.buffer.set_stringn(x, y, one_line(text), usize::from(width), style).0
    }

    fn title(&mut self, page: &Page, caption: &Caption, is_paused: bool) {
        let mut x = self.put(0, 0, &caption.name, u16::MAX, bold());
        let mut parts = vec![
            page.recent.busy(),
            format!("{} watched", duration(page.overall.duration)),
            page.overall.amount(),
        ];
        if caption.lost > 0 {
            parts.push(format!("{} lost", counted(caption.lost, "record")));
        }
        for part in parts {
            x = self.put(x + 2, 0, &part, u16::MAX, Style::new());
        }
        if is_paused {
            x = self.put(x + 2, 0, "PAUSED", u16::MAX, bold());
        }
        if let Some(ended) = &caption.ended {
            self.put(x + 2, 0, ended, u16::MAX, bold());
        }
    }

    fn views(&mut self, state: &ScreenState) {
        let question = &state.question;
        let mut x = 0;
        for (view, name) in ViewKind::ALL {
            let style = if view == question.view { reversed() } else { Style::new() };
            x = self.put(x, 1, &format!(" {name} "), u16::MAX, style);
        }
        if state.has_waits || state.has_allocations {
            x = self.put(x + 2, 1, question.measure_name(), u16::MAX, bold());
        }
        if let Some((_, name)) = &question.thread {
            x = self.put(x + 2, 1, &format!("thread {name}"), u16::MAX, bold());
        }
        if !question.search.is_empty() && state.mode != KeyMode::Search {
            self.put(x + 2, 1, &format!("search {}", question.search), u16::MAX, bold());
        }
    }

    fn table(&mut self, page: &Page, selected: Option<usize>) {
        let places = self.places(&page.columns);
        for (column, &(x, width)) in page.columns.iter().zip(&places).filter(|(_, (_, width))| *width > 0) {
            self.put(x, 2, &column.group, u16::MAX, dim());
            let style = if column.is_sorted { bold().add_modifier(Modifier::UNDERLINED) } else { bold() };
            self.put(indent(column, width, column.heading) + x, 3, column.heading, width, style);
        }
        let height = body_height(self.area.height);
        if page.rows.is_empty() {
            self.put(2, HEAD + 1, page.empty, u16::MAX, dim());
        }
        let chosen = selected.unwrap_or(0);
        let last_first = page.rows.len().saturating_sub(height);
        let first = chosen.saturating_sub(height / 2).min(last_first);
        for ((y, row), index) in (HEAD..).zip(page.rows.iter().skip(first).take(height)).zip(first..) {
            self.row(row, page, &places, y);
            if selected == Some(index) {
                self.buffer.set_style(Rect { y, height: 1, ..self.area }, reversed());
            }
        }
    }

    fn flame(&mut self, flame: &FlameBoxes, state: &mut ScreenState) {
        let pattern = state.searched();
        let finds = pattern.as_ref().map(|pattern| |name: &str| pattern.matches(name));
        let finds = finds.as_ref().map(|finds| finds as &dyn Fn(&str) -> bool);
        let body = Rect { y: 2, height: self.area.height.saturating_sub(3), ..self.area };
        let picture =
            FlamePicture { boxes: flame, finds, screen: self.screen, colors: ColorDepth::of_terminal() };
        picture.draw(self.buffer, body, &mut state.flame);
    }

    /// The start and the width of each column; the width is 0 if the screen is too narrow for it. Names
    /// are most important. Before they get too narrow, the lib is left out, then numbers from the right
    /// on.
    fn places(&self, columns: &[Column]) -> Vec<(u16, u16)> {
        let screen = self.area.width;
        let width = |column: &Column| match column.width {
            Width::Number(width) | Width::Text(width) => width,
            Width::Part(part) => screen / part,
            Width::Rest => 0,
        };
        let mut is_shown: Vec<_> = columns.iter().map(|column| column.from <= screen).collect();
        let room = |is_shown: &[bool]| {
            let shown = columns.iter().zip(is_shown).filter(|(_, is_shown)| **is_shown);
            let taken: u16 = shown.map(|(column, _)| width(column) + GAP).sum();
            (screen + GAP).saturating_sub(taken)
        };
        while room(&is_shown) < MIN_NAME {
            let goes = |is_part: bool| {
                let may_go = |column: &Column| match column.width {
                    Width::Part(_) => is_part,
                    Width::Rest => false,
                    Width::Number(_) | Width::Text(_) => !is_part,
                };
                (1..columns.len()).rev().find(|&index| is_shown[index] && may_go(&columns[index]))
            };
            let Some(index) = goes(true).or_else(|| goes(false)) else { break };
            is_shown[index] = false;
        }
        let rest = room(&is_shown);
        let mut x = 0;
        let places = columns.iter().zip(&is_shown).map(|(column, &is_shown)| {
            let width = match column.width {
                _ if !is_shown => return (x, 0),
                Width::Rest => rest,
                _ => width(column),
            };
            let place = (x, width);
            x += width + GAP;
            place
        });
        places.collect()
    }

    fn row(&mut self, row: &Row, page: &Page, places: &[(u16, u16)], y: u16) {
        for ((column, cell), &(x, width)) in page.columns.iter().zip(&row.cells).zip(places) {
            match cell {
                _ if width == 0 => {}
                Cell::Text(text, style) => {
                    let text = cut(text, usize::from(width), self.screen.unicode);
                    let style = self.style(*style);
                    self.put(x + indent(column, width, &text), y, &text, width, style);
                }
                Cell::Bar(share) => {
                    let text = bar(*share, usize::from(width), self.screen.unicode);
                    let style = self.style(text::Style::of_share(*share));
                    self.put(x, y, &text, width, style);
                }
                Cell::Name => self.name(row, x, y, width),
            }
        }
    }

    /// The name of a row, after its place in the tree. However deep the row, a part of the name is readable.
    fn name(&mut self, row: &Row, x: u16, y: u16, width: u16) {
        let deepest = width / 2;
        let is_tree = row.depth > 0 || row.is_open.is_some();
        let indent = u16::try_from(row.depth * 2).unwrap_or(u16::MAX).min(deepest);
        let mark = match (is_tree, row.is_open, self.screen.unicode) {
            (false, ..) => "",
            (true, None, _) => "  ",
            (true, Some(true), true) => "▾ ",
            (true, Some(false), true) => "▸ ",
            (true, Some(true), false) => "- ",
            (true, Some(false), false) => "+ ",
        };
        let x_of_name = self.put(x + indent, y, mark, width - indent, dim());
        let room = (x + width).saturating_sub(x_of_name);
        self.put(
            x_of_name,
            y,
            &cut_name(&row.name, usize::from(room), self.screen.unicode),
            room,
            Style::new(),
        );
    }

    fn help(&mut self, caption: &Caption) {
        let mut y = 3;
        for (keys, what) in KEYS {
            self.put(1, y, keys, 13, bold());
            self.put(15, y, what, u16::MAX, Style::new());
            y += 1;
        }
        for note in &caption.notes {
            y += 1;
            if y + 1 < self.area.height {
                self.put(1, y, note, u16::MAX, dim());
            }
        }
    }

    /// The typed text, or as many keys as fit.
    fn footer(&mut self, state: &ScreenState) {
        let Some(y) = self.area.height.checked_sub(1) else { return };
        let line = Rect { y, height: 1, ..self.area };
        self.buffer.set_style(line, Style::reset());
        (0..self.area.width).for_each(|x| {
            self.put(x, y, " ", 1, Style::new());
        });
        if state.mode == KeyMode::Search {
            let x = self.put(0, y, "/", 1, bold());
            let x = self.put(x, y, &state.question.search, u16::MAX, Style::new());
            self.put(x, y, " ", 1, reversed());
            return;
        }
        let mut x = 0;
        for (key, word) in FOOTER {
            let width = (key.len() + word.len() + 2) as u16;
            if x + width <= self.area.width {
                x = self.put(x, y, key, u16::MAX, reversed());
                x = self.put(x + 1, y, word, u16::MAX, Style::new()) + 2;
            }
        }
    }

    fn style(&self, style: text::Style) -> Style {
        match style {
            text::Style::Plain => Style::new(),
            text::Style::Bold => bold(),
            text::Style::Dim => dim(),
            _ if !self.screen.colour => Style::new(),
            text::Style::Hot => Style::new().fg(Color::Red),
            text::Style::Warm => Style::new().fg(Color::Yellow),
            text::Style::Good => Style::new().fg(Color::Green),
        }
    }
}

/// The offset of a text within its column.
fn indent(column: &Column, width: u16, text: &str) -> u16 {
    match column.width {
        Width::Number(_) => width.saturating_sub(text.chars().count() as u16),
        _ => 0,
    }
}

fn bold() -> Style {
    Style::new().add_modifier(Modifier::BOLD)
}

fn dim() -> Style {
    Style::new().add_modifier(Modifier::DIM)
}

fn reversed() -> Style {
    Style::new().add_modifier(Modifier::REVERSED)
}

/// A duration in readable form.
fn duration(nanoseconds: u64) -> String {
    let seconds = nanoseconds / 1_000_000_000;
    match seconds {
        0..60 => format!("{:.1} s", nanoseconds as f64 / 1e9),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

#[cfg(test)]
pub(super) mod tests;
