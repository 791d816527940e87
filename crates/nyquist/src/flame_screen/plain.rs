//! A flame graph as lines of text, for pipes, files and terminals without a screen.

use super::boxes::FlameBoxes;
use super::colors::ColorDepth;
use super::draw::{FlamePicture, lines};
use super::state::FlameState;
use crate::text::Screen;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// The width of the graph where there is no terminal.
const PLAIN_COLUMNS: u16 = 100;

/// The graph as wide as the terminal, with at most so many levels, and how many more there are.
pub(crate) fn plain(boxes: &FlameBoxes, screen: Screen, levels: usize) -> (Vec<String>, usize) {
    let columns = screen.width.map_or(PLAIN_COLUMNS, |width| u16::try_from(width).unwrap_or(u16::MAX));
    let placed = boxes.placed(None, columns);
    let depth = placed.iter().map(|&(index, _)| boxes.get(index).depth + 1).max().unwrap_or(0);
    let shown = depth.min(levels).min(usize::from(u16::MAX / 2));
    let area = Rect::new(0, 0, columns, shown as u16);
    let mut buffer = Buffer::empty(area);
    let screen = Screen { colour: false, ..screen };
    let picture = FlamePicture { boxes, finds: None, screen, colors: ColorDepth::None };
    picture.draw_rows(&mut buffer, area, &FlameState::default(), None);
    (lines(&buffer), depth - shown)
}

#[cfg(test)]
mod tests {
    use super::super::boxes::tests::example;
    use super::*;

    #[test]
    fn a_pipe_gets_lines_of_a_fixed_width() {
        let screen = Screen { unicode: false, ..Screen::PLAIN };
        let (lines, left) = plain(&example(), screen, 2);
        assert_eq!(lines.len(), 2);
        assert_eq!((lines[0].find("|other"), left), (Some(80), 2));
        let (lines, left) = plain(&example(), Screen { width: Some(40), ..screen }, usize::MAX);
        assert_eq!((lines.len(), left, lines[1].as_str()), (4, 0, "|alpha              |beta"));
    }
}
