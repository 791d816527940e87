//! Draws a flame graph on a screen: boxes with their names, and the numbers of the selected one.

use super::boxes::{FlameBoxes, Span};
use super::colors::ColorDepth;
use super::state::FlameState;
use crate::text::{Screen, cut_name, one_line};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};

/// What is drawn of a graph, and how.
pub(crate) struct FlamePicture<'a> {
    pub(crate) boxes: &'a FlameBoxes,
    /// Whether a name is searched and found.
    pub(crate) finds: Option<&'a dyn Fn(&str) -> bool>,
    pub(crate) screen: Screen,
    pub(crate) colors: ColorDepth,
}

impl FlamePicture<'_> {
    /// Draws the boxes of the rows that fit, and in the last line what the selected box is.
    pub(crate) fn draw(&self, buffer: &mut Buffer, area: Rect, state: &mut FlameState) {
        let rows = Rect { height: area.height.saturating_sub(1), ..area };
        state.area = rows;
        let selected = state.selected(self.boxes);
        self.draw_rows(buffer, rows, state, selected);
        let (Some(index), true) = (selected, area.height > 1) else { return };
        let details = self.details(index, usize::from(area.width));
        buffer.set_stringn(area.x, rows.bottom(), details, usize::from(area.width), Style::new());
    }

    /// Draws the boxes alone.
    pub(crate) fn draw_rows(
        &self,
        buffer: &mut Buffer,
        area: Rect,
        state: &FlameState,
        selected: Option<usize>,
    ) {
        for (index, span) in self.boxes.placed(state.zoomed(self.boxes), area.width) {
            let Some(row) = self.boxes.get(index).depth.checked_sub(state.scroll) else { continue };
            if row < usize::from(area.height) {
                self.draw_box(buffer, (area.x, area.y + row as u16), index, span, selected == Some(index));
            }
        }
    }

    fn draw_box(
        &self,
        buffer: &mut Buffer,
        (left, y): (u16, u16),
        index: usize,
        span: Span,
        is_selected: bool,
    ) {
        let function = self.boxes.function(index);
        let x = left + span.x;
        let is_found = self.finds.is_some_and(|finds| finds(&function.name));
        let style = self.style(function.color, is_found, is_selected);
        buffer.set_style(Rect { x, y, width: span.width, height: 1 }, style);
        // The edge separates boxes of like colours.
        let edge = if self.screen.unicode { "▏" } else { "|" };
        let room = usize::from(span.width) - 1;
        buffer.set_stringn(x, y, edge, 1, style);
        let name = if room < 2 { String::new() } else { cut_name(&function.name, room, self.screen.unicode) };
        // Boxes of narrow siblings were drawn before.
        let padded = format!("{name:room$}");
        buffer.set_stringn(x + 1, y, one_line(&padded), room, style);
    }

    fn style(&self, color: nyquist_formats::flame::Color, is_found: bool, is_selected: bool) -> Style {
        let plain = match self.colors.of(color) {
            _ if is_found && self.screen.colour => Style::new().fg(Color::White).bg(Color::Magenta),
            Some(color) if self.screen.colour => Style::new().fg(Color::Black).bg(color),
            _ if is_found => Style::new().add_modifier(Modifier::UNDERLINED),
            _ => Style::new(),
        };
        if is_selected { plain.add_modifier(Modifier::REVERSED | Modifier::BOLD) } else { plain }
    }

    /// The share, time and name of a box. Numbers come first, because a name can be long.
    fn details(&self, index: usize, width: usize) -> String {
        let (scale, found, function) = (self.boxes.scale, self.boxes.get(index), self.boxes.function(index));
        let own = if found.own > 0 { format!(", self {}", scale.percent(found.own)) } else { String::new() };
        let numbers = format!("{} {}{own}  ", scale.percent(found.width), scale.time(found.width));
        let lib = if function.lib.is_empty() { String::new() } else { format!("  {}", function.lib) };
        let room = width.saturating_sub(numbers.chars().count());
        let name = cut_name(&function.name, room, self.screen.unicode);
        let lib = if name.chars().count() + lib.chars().count() <= room { lib } else { String::new() };
        one_line(&(numbers + &name + &lib)).into_owned()
    }
}

/// The lines of a buffer, without trailing blanks.
pub(super) fn lines(buffer: &Buffer) -> Vec<String> {
    let area = buffer.area;
    let line = |y| (0..area.width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
    (0..area.height).map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::super::boxes::tests::{example, graph};
    use super::*;

    fn drawn(boxes: &FlameBoxes, width: u16, height: u16, state: &mut FlameState) -> Vec<String> {
        let area = Rect::new(0, 0, width, height);
        let mut buffer = Buffer::empty(area);
        let screen = Screen { unicode: false, ..Screen::PLAIN };
        let picture = FlamePicture { boxes, finds: None, screen, colors: ColorDepth::None };
        picture.draw(&mut buffer, area, state);
        lines(&buffer)
    }

    #[test]
    fn callers_are_above_callees() {
        let expected = [
            "|main                           |other",
            "|alpha              |beta",
            "|deep",
            "|deeper",
            "80.0% 80 ms  main",
        ];
        assert_eq!(drawn(&example(), 40, 5, &mut FlameState::default()), expected);
    }

    #[test]
    fn names_that_are_long_keep_their_ends() {
        let long = "a::b::c::Type::method";
        let boxes = graph(&[(&format!("{long} x"), 60), ("z", 40)]);
        let lines = drawn(&boxes, 40, 3, &mut FlameState::default());
        assert_eq!(lines[0], format!("|{long}  |z"));
        let lines = drawn(&boxes, 25, 3, &mut FlameState::default());
        assert_eq!(lines[0], "|..::method    |z", "{lines:?}");
        assert_eq!(lines[2], "60.0% 60 ms  ..::method");
    }

    #[test]
    fn the_smallest_screens_and_graphs_are_drawn() {
        for (width, height) in [(0, 0), (1, 1), (2, 2), (3, 1), (200, 1)] {
            drawn(&example(), width, height, &mut FlameState::default());
            drawn(&graph(&[]), width, height, &mut FlameState::default());
        }
    }

    #[test]
    fn hidden_characters_do_not_reach_the_terminal() {
        let boxes = graph(&[("\u{1b}[31mred\u{202e}", 1)]);
        let text = drawn(&boxes, 60, 3, &mut FlameState::default()).join("");
        assert!(text.contains("\\x1b[31mred\\u{202e}"), "{text}");
    }
}
