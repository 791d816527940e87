//! Shows the flame graph of a saved profile on the whole screen until the user quits.

use super::boxes::FlameBoxes;
use super::colors::ColorDepth;
use super::draw::FlamePicture;
use super::state::{FlameState, KEYS};
use crate::failure::Failure;
use crate::own_screen::OwnScreen;
use crate::system::signals::{EndSignal, Requests};
use crate::text::{Names, Screen, one_line};
use nyquist_analysis::{Pattern, View};
use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use std::sync::mpsc::{self, Sender};
use std::thread;

/// The keys in the last line.
const FOOTER: &str = "? help  q quit  Enter zoom  Esc out  / search  i invert";

/// The graph that is shown, and the text beside it.
pub(crate) struct ShownGraph<'a> {
    pub(crate) view: &'a View<'a>,
    pub(crate) title: String,
    pub(crate) is_inverted: bool,
    pub(crate) names: Names,
    pub(crate) screen: Screen,
}

/// What happens while the graph is shown.
enum Message {
    Input(Event),
    Signal(EndSignal),
    /// The terminal was closed.
    Gone,
}

/// Shows the graph. Returns the signal that ended this, if one did.
pub(crate) fn watch(shown: ShownGraph<'_>) -> Result<Option<EndSignal>, Failure> {
    let failure = |error| Failure::because("the terminal cannot be taken over", &error);
    // Before the other threads start, so that one of them receives the signals.
    let requests = Requests::take_over().map_err(failure)?;
    let mut own = OwnScreen::take().and_then(OwnScreen::with_mouse).map_err(failure)?;
    let (sender, messages) = mpsc::channel();
    let signals = sender.clone();
    thread::spawn(move || forward_signals(&requests, &signals));
    thread::spawn(move || read_input(&sender));
    let mut screen = GraphScreen::of(shown);
    loop {
        own.terminal.draw(|frame| screen.draw(frame)).map_err(failure)?;
        let Ok(first) = messages.recv() else { return Ok(None) };
        for message in std::iter::once(first).chain(messages.try_iter()) {
            match message {
                Message::Input(Event::Key(key)) if key.kind != KeyEventKind::Release => {
                    if screen.press(key) {
                        return Ok(None);
                    }
                }
                Message::Input(Event::Mouse(mouse)) => screen.state.click(mouse, &screen.boxes),
                Message::Input(_) => {}
                Message::Signal(signal) => return Ok(Some(signal)),
                Message::Gone => return Ok(None),
            }
        }
    }
}

fn forward_signals(requests: &Requests, messages: &Sender<Message>) {
    while let Ok(request) = requests.wait().and_then(|()| requests.take()) {
        if request.is_some_and(|request| messages.send(Message::Signal(request.signal)).is_err()) {
            return;
        }
    }
}

fn read_input(messages: &Sender<Message>) {
    while let Ok(input) = event::read() {
        if messages.send(Message::Input(input)).is_err() {
            return;
        }
    }
    let _ = messages.send(Message::Gone);
}

/// A screen with a flame graph.
struct GraphScreen<'a> {
    shown: ShownGraph<'a>,
    boxes: FlameBoxes,
    state: FlameState,
    search: String,
    is_typing: bool,
    shows_help: bool,
    colors: ColorDepth,
}

impl<'a> GraphScreen<'a> {
    fn of(shown: ShownGraph<'a>) -> Self {
        Self {
            boxes: FlameBoxes::of(shown.view, shown.is_inverted, shown.names),
            state: FlameState::default(),
            search: String::new(),
            is_typing: false,
            shows_help: false,
            colors: ColorDepth::of_terminal(),
            shown,
        }
    }

    /// Handles a key. Returns whether it quits.
    fn press(&mut self, key: KeyEvent) -> bool {
        let has_control = key.modifiers.contains(KeyModifiers::CONTROL);
        if has_control && key.code == KeyCode::Char('c') {
            return true;
        }
        if self.is_typing {
            self.type_key(key.code, has_control);
            return false;
        }
        if std::mem::take(&mut self.shows_help) && key.code != KeyCode::Char('q') {
            return false;
        }
        let pattern = self.pattern();
        let finds = pattern.as_ref().map(|pattern| |name: &str| pattern.matches(name));
        let finds = finds.as_ref().map(|finds| finds as &dyn Fn(&str) -> bool);
        if self.state.press(key, &self.boxes, finds) {
            return false;
        }
        match key.code {
            KeyCode::Char('q') => return true,
            KeyCode::Char('?') | KeyCode::F(1) => self.shows_help = true,
            KeyCode::Char('/') => self.is_typing = true,
            KeyCode::Char('i') => {
                self.shown.is_inverted = !self.shown.is_inverted;
                self.state.reset();
                self.renew();
            }
            KeyCode::Char('f') => {
                self.shown.names = if self.shown.names == Names::Full { Names::Short } else { Names::Full };
                self.renew();
            }
            // Nothing is zoomed.
            KeyCode::Esc => self.search.clear(),
            _ => {}
        }
        false
    }

    fn type_key(&mut self, code: KeyCode, has_control: bool) {
        match code {
            KeyCode::Char('u') if has_control => self.search.clear(),
            KeyCode::Char(char) => self.search.push(char),
            KeyCode::Backspace => {
                self.search.pop();
            }
            KeyCode::Enter => {
                self.is_typing = false;
                self.press(KeyEvent::new(KeyCode::Char('n'), KeyModifiers::NONE));
            }
            KeyCode::Esc => {
                self.is_typing = false;
                self.search.clear();
            }
            _ => {}
        }
    }

    fn renew(&mut self) {
        self.boxes = FlameBoxes::of(self.shown.view, self.shown.is_inverted, self.shown.names);
    }

    fn pattern(&self) -> Option<Pattern> {
        if self.search.is_empty() { None } else { Pattern::substring(&self.search).ok() }
    }

    fn draw(&mut self, frame: &mut Frame<'_>) {
        let area = frame.area();
        let buffer = frame.buffer_mut();
        if area.height == 0 {
            return;
        }
        let pattern = self.pattern();
        let finds = pattern.as_ref().map(|pattern| |name: &str| pattern.matches(name));
        let finds = finds.as_ref().map(|finds| finds as &dyn Fn(&str) -> bool);
        let bold = Style::new().add_modifier(Modifier::BOLD);
        put(buffer, area, 0, &self.title(finds), bold);
        let body = Rect { y: 1, height: area.height.saturating_sub(2), ..area };
        if self.shows_help {
            help(buffer, body);
        } else if self.boxes.is_empty() {
            put(buffer, area, 2, "There are no stacks.", Style::new());
        } else {
            let (screen, colors) = (self.shown.screen, self.colors);
            let picture = FlamePicture { boxes: &self.boxes, finds, screen, colors };
            picture.draw(buffer, body, &mut self.state);
        }
        let footer = if self.is_typing { format!("/{}", self.search) } else { FOOTER.to_owned() };
        put(buffer, area, area.height - 1, &footer, Style::new().add_modifier(Modifier::REVERSED));
    }

    /// The title, what is zoomed, and how much is found.
    fn title(&self, finds: Option<&dyn Fn(&str) -> bool>) -> String {
        let zoomed = self.state.zoomed(&self.boxes);
        let mut title = self.shown.title.clone();
        if let Some(index) = zoomed {
            title = format!("{title}  in {}", self.boxes.function(index).name);
        }
        if let Some(finds) = finds {
            let scale = self.boxes.scale;
            let found = scale.percent(self.boxes.weight_of(zoomed, finds));
            let found = if found.is_empty() { "nothing" } else { found.as_str() };
            title = format!("\"{}\": {found}  {title}", self.search);
        }
        title
    }
}

fn help(buffer: &mut Buffer, area: Rect) {
    for (y, (keys, what)) in (area.y..area.bottom()).zip(KEYS) {
        put(buffer, area, y, &format!(" {keys:<16} {what}"), Style::new());
    }
}

/// Writes a line, cut at the end of the screen.
fn put(buffer: &mut Buffer, area: Rect, y: u16, text: &str, style: Style) {
    if y < area.bottom() {
        buffer.set_stringn(area.x, y, one_line(text), usize::from(area.width), style);
    }
}
