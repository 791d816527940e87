//! `nyquist top`: watches a program live, on a screen or as one table after another.

mod batch;
mod command_output;
mod draw;
mod live;
mod page;
mod question;
mod quit_reason;
mod screen;
mod session;
mod state;
mod web;

use crate::args::TopArgs;
use crate::failure::Failure;
use crate::identity;
use crate::live_page::LivePage;
use crate::page::is_terminal;
use crate::printer::Printer;
use crate::record::linux::outcome_messages;
use command_output::LINES_REPEATED;
use nyquist_record::linux::launch::ExitStatus;
use nyquist_record::linux::signals::Requests;
use quit_reason::{QuitReason, ended};
use session::{Message, Session, WatchedTarget};
use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::thread;

/// Runs the subcommand and returns the exit status.
pub(crate) fn run(args: &TopArgs) -> Result<u8, Failure> {
    let printer = Printer::new(args.verbosity);
    // Before any thread starts, so that all threads block these signals and one thread receives them.
    let requests =
        Requests::take_over().map_err(|error| Failure::because("cannot take over signals", &error))?;
    if args.as_root {
        identity::serve_root();
    }
    let (sender, messages) = mpsc::channel();
    let served =
        args.web.then(|| LivePage::start(&session::name(args), &args.server(), &args.symbols, printer));
    let served = served.transpose()?;
    let session = Session::start(args, served.as_ref().map(|page| Arc::clone(page.profile())), &sender)?;
    session.about.print_allocations(printer);
    let requested = sender.clone();
    thread::spawn(move || forward_requests(&requests, &requested));
    let end = if let Some(page) = &served {
        outcome_messages::print_outcome(printer, &session.about.outcome);
        Ok(web::run(&session, page.profile(), &messages, printer))
    } else if args.batch || !is_terminal() {
        outcome_messages::print_outcome(printer, &session.about.outcome);
        batch::run(args, &session, &messages)
    } else {
        screen::run(args, &session, &sender, &messages)
    };
    // No reader remains.
    drop(messages);
    let (about, output) = (session.about.clone(), session.output.clone());
    session.finish().into_iter().for_each(|sentence| printer.warn(sentence));
    let end = end?;
    if let Some(page) = served {
        page.close()?;
        return Ok(end.status());
    }
    if let QuitReason::Ended(Some(status)) = end
        && status != ExitStatus::Code(0)
    {
        printer.say(format_args!("{} {}", about.name, ended(Some(status))));
        output.last(LINES_REPEATED).iter().for_each(|line| printer.say(format_args!("  {line}")));
    }
    Ok(end.status())
}

fn forward_requests(requests: &Requests, messages: &Sender<Message>) {
    while let Ok(request) = requests.wait().and_then(|()| requests.take()) {
        if request.is_some_and(|request| messages.send(Message::Signal(request.signal)).is_err()) {
            return;
        }
    }
}

impl WatchedTarget {
    /// The sampling method, and reductions of the request, each in a line.
    fn notes(&self) -> Vec<String> {
        let rate = format!("{} samples a second of each running thread", self.outcome.rate_hz());
        let notices = self.outcome.loses_privileges().into_iter().chain(self.outcome.notices());
        let notices = notices.map(ToString::to_string);
        let allocations = self.allocations.iter().map(|how| how.clone().unwrap_or_else(|denied| denied));
        std::iter::once(rate).chain(notices).chain(allocations).collect()
    }

    /// Says how allocations are recorded, or warns that they are not.
    fn print_allocations(&self, printer: Printer) {
        match &self.allocations {
            Some(Ok(how)) => printer.say(how),
            Some(Err(denied)) => printer.warn(denied),
            None => {}
        }
    }

    /// Whether allocations are recorded.
    fn has_allocations(&self) -> bool {
        matches!(self.allocations, Some(Ok(_)))
    }
}
