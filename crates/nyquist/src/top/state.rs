//! The state of the screen, and its changes by keys: pure, without a terminal.

use super::page::Page;
use super::question::{Period, Question, ViewKind};
use crate::args::{SortBy, TopArgs, TopEvent};
use crate::flame_screen::FlameState;
use nyquist_analysis::{Pattern, SampleState};
use nyquist_profile::AllocationMeasure;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use std::collections::HashMap;
use std::time::Duration;

/// The windows that keys select, in seconds.
const WINDOWS: [u64; 8] = [1, 2, 5, 10, 30, 60, 300, 3600];

/// The keys for the help.
pub(super) const KEYS: [(&str, &str); 18] = [
    ("1 to 5  Tab", "functions, call tree, threads, the output, flame graph"),
    ("Up Down  k j", "move; PgUp PgDn Home End (g G) go further"),
    ("Enter", "function: its callers and callees; thread: only that one"),
    ("Left Right", "tree: close and open (Enter does either)"),
    ("hjkl Enter u", "flame graph: select, zoom (or the mouse); n N: found ones"),
    ("s", "order by self time, total time or name"),
    ("o", "order and tree by the last seconds, or by the whole"),
    ("+ -", "longer and shorter last seconds"),
    ("w", "with --off-cpu: CPU time, waiting, or both"),
    ("m", "with --alloc: allocated bytes, live bytes, or time"),
    ("i", "tree: from where the time is spent to its callers, and back"),
    ("/", "search names; in the tree, stacks with such a function"),
    ("n", "short and full names"),
    ("Esc", "leave the search, then the thread"),
    ("space  p", "pause, and go on"),
    ("z", "forget everything so far"),
    ("?", "this help"),
    ("q  Ctrl-C", "quit; a launched command then gets SIGTERM"),
];

/// The selected row of a view.
#[derive(Clone, Copy, Debug, Default)]
struct Cursor {
    index: usize,
    /// The row, which moves when the order changes; `None` if the user has selected none.
    row: Option<u64>,
}

/// The action of a key outside of the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Quit,
    /// Keep another window in detail.
    Window(Duration),
    /// Drop everything so far.
    Reset,
}

/// What keys act on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyMode {
    /// The page.
    Page,
    /// The search text, which is being typed.
    Search,
    /// The help, which covers the page.
    Help,
}

/// The state of the screen.
#[derive(Clone, Debug)]
pub(super) struct ScreenState {
    pub(super) question: Question,
    pub(super) is_paused: bool,
    pub(super) mode: KeyMode,
    /// The number of rows on the screen.
    pub(super) height: usize,
    cursors: [Cursor; 5],
    /// What is zoomed and selected in the flame graph.
    pub(super) flame: FlameState,
    /// Whether the places where threads wait are recorded.
    pub(super) has_waits: bool,
    /// Whether allocations are recorded.
    pub(super) has_allocations: bool,
}

impl ScreenState {
    /// The initial query.
    pub(super) fn of(args: &TopArgs, has_allocations: bool) -> Self {
        let shown = match args.event {
            TopEvent::Total => AllocationMeasure::Total,
            TopEvent::Live => AllocationMeasure::Live,
        };
        let state = Self::new(args.sort, args.window, args.full_names).with_waits(args.off_cpu);
        state.with_allocations(has_allocations.then_some(shown))
    }

    /// The same with threads' waiting time, if it is recorded.
    pub(super) fn with_waits(mut self, has_waits: bool) -> Self {
        self.has_waits = has_waits;
        if has_waits {
            self.question.state = SampleState::OffCpu;
        }
        self
    }

    /// The same with allocations, if they are recorded.
    pub(super) fn with_allocations(mut self, shown: Option<AllocationMeasure>) -> Self {
        self.has_allocations = shown.is_some();
        self.question.memory = shown;
        self
    }

    /// The functions in that order, with a window of that many seconds.
    pub(super) fn new(sort: SortBy, window: u64, has_full_names: bool) -> Self {
        let question = Question {
            view: ViewKind::default(),
            state: SampleState::OnCpu,
            memory: None,
            period: Period::default(),
            sort,
            is_inverted: false,
            has_full_names,
            window,
            search: String::new(),
            thread: None,
            opened: HashMap::new(),
        };
        Self {
            question,
            is_paused: false,
            mode: KeyMode::Page,
            height: 1,
            cursors: [Cursor::default(); 5],
            flame: FlameState::default(),
            has_waits: false,
            has_allocations: false,
        }
    }

    /// The index of the selected row on a page; `None` on an empty page.
    pub(super) fn selected(&self, page: &Page) -> Option<usize> {
        let last = page.rows.len().checked_sub(1)?;
        let cursor = self.cursors[self.question.view as usize];
        let Some(row) = cursor.row else { return Some(self.usual(page)) };
        let found = page.rows.iter().position(|it| it.key == row);
        Some(found.unwrap_or(cursor.index.min(last)))
    }

    /// The initial row of a view. In the command's output it is the last, which is the newest.
    fn usual(&self, page: &Page) -> usize {
        if self.question.view == ViewKind::Output { page.rows.len().saturating_sub(1) } else { 0 }
    }

    /// Handles a key that was pressed while `page` was shown.
    pub(super) fn press(&mut self, key: KeyEvent, page: &Page) -> Option<Action> {
        if self.mode == KeyMode::Page && self.press_in_flame(key, page) {
            return None;
        }
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return self.press_with_control(key.code);
        }
        match self.mode {
            KeyMode::Search => {
                self.type_key(key.code);
                return None;
            }
            KeyMode::Help if key.code != KeyCode::Char('q') => {
                self.mode = KeyMode::Page;
                return None;
            }
            KeyMode::Help | KeyMode::Page => {}
        }
        self.go(key.code, page);
        self.ask(key.code);
        match key.code {
            KeyCode::Char('q') => return Some(Action::Quit),
            KeyCode::Char('z') => return Some(Action::Reset),
            KeyCode::Char('+' | '=') => return Some(self.set_window(true)),
            KeyCode::Char('-') => return Some(self.set_window(false)),
            KeyCode::Char(' ' | 'p') => self.is_paused = !self.is_paused,
            KeyCode::Char('?') | KeyCode::F(1) => self.mode = KeyMode::Help,
            KeyCode::Char('/') => self.mode = KeyMode::Search,
            KeyCode::Enter => self.enter(page),
            KeyCode::Left => self.open(page, false),
            KeyCode::Right => self.open(page, true),
            KeyCode::Esc => self.leave(),
            _ => {}
        }
        None
    }

    /// Handles a key of the flame graph. Returns whether it was one. `z` forgets everything in all views.
    fn press_in_flame(&mut self, key: KeyEvent, page: &Page) -> bool {
        let Some(flame) = page.flame.as_ref().filter(|_| key.code != KeyCode::Char('z')) else {
            return false;
        };
        let pattern = self.searched();
        let finds = pattern.as_ref().map(|pattern| |name: &str| pattern.matches(name));
        let finds = finds.as_ref().map(|finds| finds as &dyn Fn(&str) -> bool);
        self.flame.press(key, flame, finds)
    }

    /// The searched names, if there is a search.
    pub(super) fn searched(&self) -> Option<Pattern> {
        let search = &self.question.search;
        if search.is_empty() { None } else { Pattern::substring(search).ok() }
    }

    fn press_with_control(&mut self, code: KeyCode) -> Option<Action> {
        match code {
            KeyCode::Char('c') => return Some(Action::Quit),
            KeyCode::Char('u') if self.mode == KeyMode::Search => self.question.search.clear(),
            _ => {}
        }
        None
    }

    fn type_key(&mut self, code: KeyCode) {
        match code {
            KeyCode::Char(char) => self.question.search.push(char),
            KeyCode::Backspace => {
                self.question.search.pop();
            }
            KeyCode::Enter => self.mode = KeyMode::Page,
            KeyCode::Esc => {
                self.mode = KeyMode::Page;
                self.question.search.clear();
            }
            _ => {}
        }
    }

    /// Changes the query.
    fn ask(&mut self, code: KeyCode) {
        let question = &mut self.question;
        match code {
            KeyCode::Char('1') => question.view = ViewKind::Functions,
            KeyCode::Char('2') => question.view = ViewKind::Tree,
            KeyCode::Char('3') => question.view = ViewKind::Threads,
            KeyCode::Char('4') => question.view = ViewKind::Output,
            KeyCode::Char('5') => question.view = ViewKind::Flame,
            KeyCode::Tab => question.view = question.view.next(),
            KeyCode::Char('n') => question.has_full_names = !question.has_full_names,
            KeyCode::Char('w') if self.has_waits && question.memory.is_none() => question.next_state(),
            KeyCode::Char('m') if self.has_allocations => question.next_memory(),
            KeyCode::Char('i') => {
                question.is_inverted = !question.is_inverted;
                self.flame.reset();
            }
            KeyCode::Char('o') => {
                question.period = match question.period {
                    Period::Recent => Period::Overall,
                    Period::Overall => Period::Recent,
                }
            }
            KeyCode::Char('s') => {
                question.sort = match question.sort {
                    SortBy::Own => SortBy::Total,
                    SortBy::Total => SortBy::Name,
                    SortBy::Name => SortBy::Own,
                }
            }
            _ => {}
        }
    }

    fn set_window(&mut self, longer: bool) -> Action {
        let now = self.question.window;
        let next = if longer {
            WINDOWS.into_iter().find(|&window| window > now)
        } else {
            WINDOWS.into_iter().rev().find(|&window| window < now)
        };
        self.question.window = next.unwrap_or(now);
        Action::Window(Duration::from_secs(self.question.window))
    }

    fn go(&mut self, code: KeyCode, page: &Page) {
        let (Some(selected), Some(last)) = (self.selected(page), page.rows.len().checked_sub(1)) else {
            return;
        };
        let screen = self.height.max(2) - 1;
        let index = match code {
            KeyCode::Up | KeyCode::Char('k') => selected.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => selected + 1,
            KeyCode::PageUp => selected.saturating_sub(screen),
            KeyCode::PageDown => selected + screen,
            KeyCode::Home | KeyCode::Char('g') => 0,
            KeyCode::End | KeyCode::Char('G') => last,
            _ => return,
        };
        self.choose(index.min(last), page);
    }

    fn choose(&mut self, index: usize, page: &Page) {
        // The selection of the initial row stays at its index when the order changes.
        let is_usual = index == self.usual(page);
        let row = page.rows.get(index).map(|row| row.key).filter(|_| !is_usual);
        self.cursors[self.question.view as usize] = Cursor { index, row };
    }

    fn enter(&mut self, page: &Page) {
        let Some(row) = self.selected(page).and_then(|index| page.rows.get(index)) else { return };
        let question = &mut self.question;
        match question.view {
            ViewKind::Functions => {
                question.search.clone_from(&row.name);
                question.view = ViewKind::Tree;
            }
            ViewKind::Threads => {
                let chosen = row.thread.map(|thread| (thread, row.name.clone()));
                if question.thread == chosen {
                    question.thread = None;
                } else {
                    question.thread = chosen;
                    question.view = ViewKind::Functions;
                }
            }
            ViewKind::Tree => {
                if let Some(is_open) = row.is_open {
                    self.open(page, !is_open);
                }
            }
            ViewKind::Output | ViewKind::Flame => {}
        }
    }

    /// Opens or closes the selected node of the tree. If there is nothing to close, it selects the caller.
    fn open(&mut self, page: &Page, open: bool) {
        let selected = self.selected(page).filter(|_| self.question.view == ViewKind::Tree);
        let Some((index, row)) = selected.and_then(|index| Some((index, page.rows.get(index)?))) else {
            return;
        };
        if row.is_open == Some(!open) {
            self.question.opened.insert(row.key, open);
            // The node stays selected among the rows that appear.
            self.choose(index, page);
        } else if !open && let Some(caller) = page.rows[..index].iter().rposition(|it| it.depth < row.depth) {
            self.choose(caller, page);
        }
    }

    fn leave(&mut self) {
        if self.question.search.is_empty() {
            self.question.thread = None;
        }
        self.question.search.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::top::page::Row;
    use nyquist_profile::ThreadIndex;

    fn page(names: &[&str]) -> Page {
        let row = |(number, name): (usize, &&str)| Row {
            key: name.bytes().map(u64::from).sum(),
            name: (*name).to_owned(),
            thread: Some(ThreadIndex::from_index(number)),
            ..Row::default()
        };
        Page { rows: names.iter().enumerate().map(row).collect(), ..Page::default() }
    }

    fn state() -> ScreenState {
        ScreenState { height: 3, ..ScreenState::new(SortBy::Own, 5, false) }
    }

    /// Presses keys: `E` is Enter, `X` Esc, `B` Backspace, `<` and `>` are Left and Right.
    fn press(state: &mut ScreenState, keys: &str, page: &Page) -> Option<Action> {
        let code = |key| match key {
            'E' => KeyCode::Enter,
            'X' => KeyCode::Esc,
            'B' => KeyCode::Backspace,
            '<' => KeyCode::Left,
            '>' => KeyCode::Right,
            key => KeyCode::Char(key),
        };
        let pressed = keys.chars().map(|key| state.press(KeyEvent::new(code(key), KeyModifiers::NONE), page));
        pressed.last().flatten()
    }

    #[test]
    fn the_chosen_row_is_followed_in_a_new_order() {
        let mut state = state();
        let before = page(&["a", "b", "c"]);
        assert_eq!(state.selected(&before), Some(0));
        press(&mut state, "j", &before);
        assert_eq!(state.selected(&before), Some(1));
        assert_eq!(state.selected(&page(&["c", "a", "b"])), Some(2));
        assert_eq!(state.selected(&page(&["c", "a"])), Some(1), "it is gone");
        press(&mut state, "k", &before);
        assert_eq!(state.selected(&page(&["c", "a", "b"])), Some(0), "the top stays the top");
        assert_eq!(state.selected(&page(&[])), None);
        press(&mut state, "jjjjjGgkkk", &before);
        assert_eq!(state.selected(&before), Some(0));
    }

    #[test]
    fn a_search_is_typed_kept_and_left() {
        let (mut state, page) = (state(), page(&["a"]));
        press(&mut state, "/qszBx", &page);
        assert_eq!((state.question.search.as_str(), state.mode), ("qsx", KeyMode::Search));
        press(&mut state, "E", &page);
        assert_eq!((state.question.search.as_str(), state.mode), ("qsx", KeyMode::Page));
        press(&mut state, "X", &page);
        assert_eq!(state.question.search, "");
        press(&mut state, "/abX", &page);
        assert_eq!((state.question.search.as_str(), state.mode), ("", KeyMode::Page));
    }

    #[test]
    fn a_thread_is_chosen_and_left() {
        let (mut state, page) = (state(), page(&["main", "worker"]));
        let worker = Some((ThreadIndex::from_index(1), "worker".to_owned()));
        press(&mut state, "3jE", &page);
        assert_eq!((&state.question.thread, state.question.view), (&worker, ViewKind::Functions));
        press(&mut state, "/xEX", &page);
        assert!(state.question.thread.is_some(), "the search is left first");
        press(&mut state, "X", &page);
        assert_eq!(state.question.thread, None);
        press(&mut state, "3E", &page);
        assert_eq!(state.question.thread, worker);
        press(&mut state, "3E", &page);
        assert_eq!(state.question.thread, None, "chosen twice");
    }

    #[test]
    fn windows_are_longer_and_shorter() {
        let check = |from, key, seconds| {
            let mut state = ScreenState::new(SortBy::Own, from, false);
            let action = press(&mut state, key, &page(&[]));
            assert_eq!(action, Some(Action::Window(Duration::from_secs(seconds))));
            assert_eq!(state.question.window, seconds);
        };
        check(5, "+", 10);
        check(5, "-", 2);
        check(7, "+", 10);
        check(1, "-", 1);
        check(3600, "+", 3600);
    }

    #[test]
    fn branches_open_and_close() {
        let mut page = page(&["main", "middle"]);
        page.rows[0].is_open = Some(true);
        page.rows[1].depth = 1;
        let mut state = state();
        press(&mut state, "2j<", &page);
        assert_eq!(state.selected(&page), Some(0), "a leaf leads to its caller");
        press(&mut state, "<", &page);
        assert_eq!(state.question.opened.values().collect::<Vec<_>>(), [&false]);
        page.rows[0].is_open = Some(false);
        press(&mut state, ">", &page);
        assert_eq!(state.question.opened.values().collect::<Vec<_>>(), [&true]);
        page.rows[0].is_open = Some(true);
        press(&mut state, "E", &page);
        assert_eq!(state.question.opened.values().collect::<Vec<_>>(), [&false]);
    }

    #[test]
    fn a_function_leads_to_its_callers_and_callees() {
        let mut state = state();
        press(&mut state, "jE", &page(&["main", "alpha"]));
        assert_eq!((state.question.view, state.question.search.as_str()), (ViewKind::Tree, "alpha"));
    }

    #[test]
    fn keys_change_the_query() {
        let mut state = state();
        let page = page(&[]);
        press(&mut state, "soin ", &page);
        let Question { sort, period, is_inverted, has_full_names, .. } = state.question;
        assert_eq!((sort, period), (SortBy::Total, Period::Overall));
        assert!(is_inverted && has_full_names && state.is_paused);
    }

    #[test]
    fn help_covers_the_screen_and_any_key_ends_it() {
        let (mut state, page) = (state(), page(&[]));
        press(&mut state, "?", &page);
        assert_eq!(state.mode, KeyMode::Help);
        press(&mut state, "2", &page);
        assert_eq!((state.mode, state.question.view), (KeyMode::Page, ViewKind::Functions));
        assert_eq!(press(&mut state, "?q", &page), Some(Action::Quit));
    }

    #[test]
    fn control_c_quits_even_while_one_types() {
        let mut state = state();
        press(&mut state, "/", &page(&[]));
        let key = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(state.press(key, &page(&[])), Some(Action::Quit));
        assert_eq!(press(&mut state, "Eq", &page(&[])), Some(Action::Quit));
    }
}
