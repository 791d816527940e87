//! Watches on a screen: draws, waits for events, and draws again.

use super::draw::{Caption, body_height, draw};
use super::live::Snapshot;
use super::page::{Page, PageData, page};
use super::quit_reason::{QuitReason, ended};
use super::session::{Message, Order, Session};
use super::state::{Action, ScreenState};
use crate::args::TopArgs;
use crate::failure::Failure;
use crate::own_screen::{OwnScreen, receive_mouse};
use crate::text::Screen;
use nyquist_analysis::Index;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use std::sync::mpsc::{Receiver, Sender};
use std::thread;

/// Shows the watched processes until the user quits. They can still be viewed after they have ended.
pub(super) fn run(
    args: &TopArgs,
    session: &Session,
    sender: &Sender<Message>,
    messages: &Receiver<Message>,
) -> Result<QuitReason, Failure> {
    let failure = |error| Failure::because("the terminal cannot be taken over", &error);
    let own = OwnScreen::take().map_err(failure)?;
    let sender = sender.clone();
    thread::spawn(move || read_input(&sender));
    let about = &session.about;
    let caption = Caption { name: about.title(), notes: about.notes(), ..Caption::default() };
    let state = ScreenState::of(args, about.has_allocations());
    let screen = Screen::of_stdout();
    let mut watching = Watching { own, session, state, caption, screen, end: None, newest: None };
    let mut snapshot = Box::new(Snapshot::default());
    loop {
        match watching.show(&snapshot, messages) {
            Next::Snapshot(newer) => snapshot = newer,
            Next::Measure => {}
            Next::End(end) => return Ok(watching.end.filter(|_| end == QuitReason::Quit).unwrap_or(end)),
        }
    }
}

/// Passes on the input of the terminal.
fn read_input(messages: &Sender<Message>) {
    while let Ok(input) = event::read() {
        if messages.send(Message::Input(input)).is_err() {
            return;
        }
    }
    // If no receiver is left, the session has ended already.
    let _ = messages.send(Message::Gone);
}

/// The next step after a snapshot was shown.
enum Next {
    Snapshot(Box<Snapshot>),
    /// The same one with another measure.
    Measure,
    End(QuitReason),
}

/// A screen that shows a watched target.
struct Watching<'a> {
    own: OwnScreen,
    session: &'a Session,
    state: ScreenState,
    caption: Caption,
    screen: Screen,
    /// How the watched processes have ended.
    end: Option<QuitReason>,
    /// A newer snapshot than the one that is shown.
    newest: Option<Box<Snapshot>>,
}

impl Watching<'_> {
    /// Shows a snapshot until there is a newer one to show.
    fn show(&mut self, snapshot: &Snapshot, messages: &Receiver<Message>) -> Next {
        let memory = self.state.question.memory;
        let profile = snapshot.measured(memory);
        let index = Index::new(&profile);
        self.caption.lost = snapshot.lost;
        while memory == self.state.question.memory {
            let output = self.session.output.lines();
            let shown = page(PageData { index: &index, snapshot, output: &output }, &self.state.question);
            let requested = self.state.question.clone();
            while requested == self.state.question {
                if let Some(snapshot) = self.newest.take_if(|_| !self.state.is_paused) {
                    return Next::Snapshot(snapshot);
                }
                if self.draw(&shown).is_err() {
                    return Next::End(QuitReason::Gone);
                }
                // Events that have come in the meantime are processed together. Of several snapshots only
                // the last one is shown.
                let Ok(first) = messages.recv() else { return Next::End(QuitReason::Gone) };
                for message in std::iter::once(first).chain(messages.try_iter()) {
                    if let Some(end) = self.take(message, &shown) {
                        return Next::End(end);
                    }
                    if requested != self.state.question {
                        break;
                    }
                }
            }
        }
        Next::Measure
    }

    fn draw(&mut self, page: &Page) -> std::io::Result<()> {
        let Self { own, state, caption, screen, .. } = self;
        // In the other views the mouse selects text.
        receive_mouse(page.flame.is_some())?;
        own.terminal.draw(|frame| {
            state.height = body_height(frame.area().height);
            draw(frame, state, page, caption, *screen);
        })?;
        Ok(())
    }

    /// Processes a message. Returns the reason for the end, if it ends watching.
    fn take(&mut self, message: Message, page: &Page) -> Option<QuitReason> {
        match message {
            Message::Snapshot(snapshot) | Message::LastSnapshot(snapshot) => self.newest = Some(snapshot),
            Message::Ended(status) => {
                self.caption.ended = Some(ended(status));
                self.end = Some(QuitReason::Ended(status));
            }
            Message::Input(Event::Key(key)) if key.kind != KeyEventKind::Release => {
                return self.state.press(key, page).and_then(|action| self.perform(action));
            }
            Message::Input(Event::Mouse(mouse)) => {
                if let Some(flame) = &page.flame {
                    self.state.flame.click(mouse, flame);
                }
            }
            Message::Input(_) => {}
            Message::Signal(signal) => return Some(QuitReason::Signal(signal)),
            Message::Gone => return Some(QuitReason::Gone),
        }
        None
    }

    fn perform(&self, action: Action) -> Option<QuitReason> {
        let order = match action {
            Action::Quit => return Some(QuitReason::Quit),
            Action::Window(window) => Order::Window(window),
            Action::Reset => Order::Reset,
        };
        // After the end of everything, no receiver remains.
        let _ = self.session.orders.send(order);
        None
    }
}
