//! What is zoomed and selected in a flame graph, and how keys and the mouse change it: pure, without a
//! terminal.

use super::boxes::{FlameBoxes, Span};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::Rect;
use std::collections::HashSet;

/// The keys for the help.
pub(super) const KEYS: [(&str, &str); 8] = [
    ("arrows  hjkl", "select a caller or callee, or a box beside"),
    ("Enter  z", "zoom into the selected box (or click it twice)"),
    ("Esc  u", "zoom out (or the right button, Backspace)"),
    ("/  n  N", "search functions; the next and the previous one found"),
    ("d  PgUp PgDn", "half a screen down; a screen (or the wheel; Ctrl-u Ctrl-d)"),
    ("g G  Home End", "the first and the last row"),
    ("i", "from where the time is spent to its callers, and back"),
    ("f", "short and full names"),
];

/// The number of rows that a step of the wheel moves.
const WHEEL_ROWS: usize = 3;

/// What a flame graph shows of itself. Boxes are remembered by their paths, because a newer graph has others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FlameState {
    /// The zoomed boxes, each within the one before.
    zooms: Vec<Vec<u64>>,
    selected: Vec<u64>,
    /// The number of rows above the screen.
    pub(crate) scroll: usize,
    /// Where the rows are on the screen, as it was last drawn.
    pub(crate) area: Rect,
}

/// A direction of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Up,
    Down,
    Left,
    Right,
}

impl FlameState {
    /// The box that fills the width; `None` for the whole.
    pub(crate) fn zoomed(&self, boxes: &FlameBoxes) -> Option<usize> {
        boxes.find(self.zooms.last()?)
    }

    /// The selected box: the chosen one if it is visible, otherwise the zoomed one, or the widest of the first row.
    pub(crate) fn selected(&self, boxes: &FlameBoxes) -> Option<usize> {
        let zoomed = self.zoomed(boxes);
        let placed = boxes.placed(zoomed, self.area.width.max(1));
        let chosen = boxes.find(&self.selected).filter(|_| !self.selected.is_empty());
        let is_visible = |index: &usize| placed.iter().any(|(placed, _)| placed == index);
        let first_row =
            || placed.iter().map(|&(index, _)| index).filter(|&index| boxes.get(index).depth == 0);
        chosen
            .filter(is_visible)
            .or(zoomed)
            .or_else(|| first_row().max_by_key(|&index| boxes.get(index).width))
    }

    /// Handles a key. Returns whether it has a meaning here.
    pub(crate) fn press(
        &mut self,
        key: KeyEvent,
        boxes: &FlameBoxes,
        finds: Option<&dyn Fn(&str) -> bool>,
    ) -> bool {
        let page = usize::from(self.area.height.max(2)) - 1;
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            match key.code {
                KeyCode::Char('d') => self.go_by(page / 2, true, boxes),
                KeyCode::Char('u') => self.go_by(page / 2, false, boxes),
                KeyCode::Char('f') => self.go_by(page, true, boxes),
                KeyCode::Char('b') => self.go_by(page, false, boxes),
                _ => return false,
            }
            return true;
        }
        match key.code {
            KeyCode::Up | KeyCode::Char('k') => self.step(Step::Up, boxes),
            KeyCode::Down | KeyCode::Char('j') => self.step(Step::Down, boxes),
            KeyCode::Left | KeyCode::Char('h') => self.step(Step::Left, boxes),
            KeyCode::Right | KeyCode::Char('l') => self.step(Step::Right, boxes),
            KeyCode::PageDown => self.go_by(page, true, boxes),
            KeyCode::PageUp => self.go_by(page, false, boxes),
            KeyCode::Char('d') => self.go_by(page / 2, true, boxes),
            KeyCode::Home | KeyCode::Char('g') => self.go_by(usize::MAX, false, boxes),
            KeyCode::End | KeyCode::Char('G') => self.go_by(usize::MAX, true, boxes),
            KeyCode::Enter | KeyCode::Char('z') => self.zoom(boxes),
            KeyCode::Esc | KeyCode::Backspace | KeyCode::Char('u') => return self.zoom_out(),
            KeyCode::Char(char @ ('n' | 'N')) => {
                let Some(finds) = finds else { return false };
                self.find_next(char == 'n', boxes, finds);
            }
            _ => return false,
        }
        true
    }

    /// Handles the mouse.
    pub(crate) fn click(&mut self, event: MouseEvent, boxes: &FlameBoxes) {
        match event.kind {
            MouseEventKind::Down(MouseButton::Left) => {
                let Some(found) = self.under(event, boxes) else { return };
                if self.selected(boxes) == Some(found) {
                    return self.zoom(boxes);
                }
                self.selected = boxes.path_of(found);
            }
            MouseEventKind::Down(MouseButton::Right) => {
                self.zoom_out();
            }
            MouseEventKind::ScrollDown => {
                let rows = self.rows(boxes).saturating_sub(usize::from(self.area.height));
                self.scroll = (self.scroll + WHEEL_ROWS).min(rows);
            }
            MouseEventKind::ScrollUp => self.scroll = self.scroll.saturating_sub(WHEEL_ROWS),
            _ => {}
        }
    }

    /// Forgets what was zoomed, because the graph is another one now.
    pub(crate) fn reset(&mut self) {
        *self = Self { area: self.area, ..Self::default() };
    }

    /// The number of rows with a visible box.
    fn rows(&self, boxes: &FlameBoxes) -> usize {
        let placed = boxes.placed(self.zoomed(boxes), self.area.width);
        placed.iter().map(|&(index, _)| boxes.get(index).depth + 1).max().unwrap_or(0)
    }

    fn under(&self, event: MouseEvent, boxes: &FlameBoxes) -> Option<usize> {
        let row = usize::from(event.row.checked_sub(self.area.y)?);
        let depth = Some(row).filter(|row| *row < usize::from(self.area.height))? + self.scroll;
        let x = event.column.checked_sub(self.area.x)?;
        let is_under = |&(index, Span { x: left, width }): &(usize, Span)| {
            boxes.get(index).depth == depth && (left..left + width).contains(&x)
        };
        let placed = boxes.placed(self.zoomed(boxes), self.area.width);
        placed.into_iter().find(is_under).map(|(index, _)| index)
    }

    fn choose(&mut self, index: usize, boxes: &FlameBoxes) {
        self.selected = boxes.path_of(index);
        let (row, height) = (boxes.get(index).depth, usize::from(self.area.height.max(1)));
        self.scroll = self.scroll.min(row).max((row + 1).saturating_sub(height));
    }

    fn step(&mut self, step: Step, boxes: &FlameBoxes) {
        let Some(from) = self.selected(boxes) else { return };
        let placed = boxes.placed(self.zoomed(boxes), self.area.width.max(1));
        let is_visible = |index: &usize| placed.iter().any(|(placed, _)| placed == index);
        let row = || placed.iter().filter(|(index, _)| boxes.get(*index).depth == boxes.get(from).depth);
        let to = match step {
            Step::Up => boxes.get(from).parent,
            Step::Down => boxes.children(Some(from)).filter(is_visible).max_by_key(|&it| boxes.get(it).width),
            Step::Left => row().take_while(|(index, _)| *index != from).last().map(|&(index, _)| index),
            Step::Right => row().skip_while(|(index, _)| *index != from).nth(1).map(|&(index, _)| index),
        };
        if let Some(to) = to {
            self.choose(to, boxes);
        }
    }

    /// Moves so many rows: towards the callees that take the most, or towards the callers.
    fn go_by(&mut self, rows: usize, down: bool, boxes: &FlameBoxes) {
        let Some(from) = self.selected(boxes) else { return };
        let placed = boxes.placed(self.zoomed(boxes), self.area.width.max(1));
        let visible: HashSet<_> = placed.into_iter().map(|(index, _)| index).collect();
        let next = |index: &usize| {
            if !down {
                return boxes.get(*index).parent;
            }
            let children = boxes.children(Some(*index)).filter(|child| visible.contains(child));
            children.max_by_key(|&child| boxes.get(child).width)
        };
        let last = std::iter::successors(Some(from), next).take(rows.saturating_add(1)).last();
        self.choose(last.unwrap_or(from), boxes);
    }

    fn zoom(&mut self, boxes: &FlameBoxes) {
        let Some(index) = self.selected(boxes).filter(|&index| self.zoomed(boxes) != Some(index)) else {
            return;
        };
        let path = boxes.path_of(index);
        // A caller of what is zoomed leads back to where it was zoomed.
        self.zooms.retain(|zoom| zoom.len() < path.len() && path.starts_with(zoom));
        self.zooms.push(path.clone());
        self.selected = path;
    }

    /// Returns whether something was zoomed.
    fn zoom_out(&mut self) -> bool {
        self.zooms.pop().is_some_and(|zoomed| {
            self.selected = zoomed;
            true
        })
    }

    /// Selects the next box whose function matches, in the order of the picture, row by row.
    fn find_next(&mut self, forwards: bool, boxes: &FlameBoxes, finds: &dyn Fn(&str) -> bool) {
        let mut found: Vec<_> = boxes.placed(self.zoomed(boxes), self.area.width.max(1));
        let selected = self.selected(boxes);
        found.retain(|(index, _)| Some(*index) == selected || finds(&boxes.function(*index).name));
        found.sort_by_key(|(index, span)| (boxes.get(*index).depth, span.x));
        let Some(at) = found.iter().position(|(index, _)| Some(*index) == selected) else { return };
        let step = if forwards { 1 } else { found.len() - 1 };
        self.choose(found[(at + step) % found.len()].0, boxes);
    }
}

#[cfg(test)]
mod tests {
    use super::super::boxes::tests::{example, graph};
    use super::*;

    fn state() -> FlameState {
        FlameState { area: Rect { x: 0, y: 2, width: 100, height: 3 }, ..FlameState::default() }
    }

    /// The name of the selected box after these keys; `E` is Enter, `B` Backspace.
    fn press(state: &mut FlameState, keys: &str, boxes: &FlameBoxes, search: &str) -> String {
        let finds = |name: &str| name.contains(search);
        for char in keys.chars() {
            let code = match char {
                'E' => KeyCode::Enter,
                'B' => KeyCode::Backspace,
                char => KeyCode::Char(char),
            };
            let finds: Option<&dyn Fn(&str) -> bool> = if search.is_empty() { None } else { Some(&finds) };
            state.press(KeyEvent::new(code, KeyModifiers::NONE), boxes, finds);
        }
        let selected = state.selected(boxes).unwrap();
        boxes.function(selected).name.clone()
    }

    #[test]
    fn keys_walk_along_the_boxes() {
        let boxes = example();
        let mut state = state();
        let mut check = |keys: &str, expected: &str| {
            assert_eq!(press(&mut state, keys, &boxes, ""), expected, "{keys}");
        };
        check("", "main");
        check("j", "alpha");
        check("l", "beta");
        check("l", "tiny");
        check("hh", "alpha");
        check("G", "deeper");
        check("g", "main");
        check("l", "other");
        check("kl", "other");
    }

    #[test]
    fn the_widest_of_the_first_row_is_selected_first() {
        let boxes = graph(&[("a", 1), ("main b", 9), ("z", 2)]);
        assert_eq!(press(&mut state(), "", &boxes, ""), "main");
    }

    #[test]
    fn zooming_in_and_out_keeps_the_place() {
        let (boxes, mut state) = (example(), state());
        assert_eq!(press(&mut state, "jE", &boxes, ""), "alpha");
        let zoomed = state.zoomed(&boxes).unwrap();
        assert_eq!(boxes.function(zoomed).name, "alpha");
        assert_eq!(press(&mut state, "jE", &boxes, ""), "deep");
        assert_eq!(press(&mut state, "B", &boxes, ""), "deep");
        assert_eq!(boxes.function(state.zoomed(&boxes).unwrap()).name, "alpha");
        assert_eq!(press(&mut state, "B", &boxes, ""), "alpha");
        assert_eq!(state.zoomed(&boxes), None);
        assert!(!state.zoom_out(), "nothing is zoomed any more");
    }

    #[test]
    fn the_selected_row_stays_on_the_screen() {
        let (boxes, mut state) = (example(), state());
        press(&mut state, "G", &boxes, "");
        assert_eq!(state.scroll, 1, "three rows of four");
        press(&mut state, "g", &boxes, "");
        assert_eq!(state.scroll, 0);
    }

    #[test]
    fn searching_goes_around() {
        let (boxes, mut state) = (example(), state());
        assert_eq!(press(&mut state, "n", &boxes, "deep"), "deep");
        assert_eq!(press(&mut state, "n", &boxes, "deep"), "deeper");
        assert_eq!(press(&mut state, "n", &boxes, "deep"), "deep");
        assert_eq!(press(&mut state, "N", &boxes, "deep"), "deeper");
        assert_eq!(press(&mut state, "n", &boxes, "nobody"), "deeper");
    }

    #[test]
    fn the_mouse_selects_zooms_and_scrolls() {
        let (boxes, mut state) = (example(), state());
        let event = |kind, column, row| MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE };
        let left = MouseEventKind::Down(MouseButton::Left);
        state.click(event(left, 60, 3), &boxes);
        assert_eq!(boxes.function(state.selected(&boxes).unwrap()).name, "beta");
        state.click(event(left, 60, 3), &boxes);
        assert_eq!(state.zoomed(&boxes), state.selected(&boxes));
        state.click(event(MouseEventKind::Down(MouseButton::Right), 0, 0), &boxes);
        assert_eq!(state.zoomed(&boxes), None);
        state.click(event(MouseEventKind::ScrollDown, 0, 3), &boxes);
        assert_eq!(state.scroll, 1);
        state.click(event(left, 90, 60), &boxes);
        state.click(event(left, 0, 0), &boxes);
        assert_eq!(boxes.function(state.selected(&boxes).unwrap()).name, "beta", "there is no box");
    }

    #[test]
    fn an_empty_graph_takes_every_key() {
        let (boxes, mut state) = (graph(&[]), state());
        for key in "jkhlgGdzunN".chars() {
            state.press(KeyEvent::new(KeyCode::Char(key), KeyModifiers::NONE), &boxes, Some(&|_| true));
        }
        assert_eq!(state.selected(&boxes), None);
    }
}
