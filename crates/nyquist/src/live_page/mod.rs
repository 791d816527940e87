//! The page that shows a running recording. Its server starts before the recording and outlives it.

mod pace;
mod snapshots;
mod symbols;

pub(crate) use pace::Pace;
pub(crate) use snapshots::SnapshotSender;
pub(crate) use symbols::GrowingSymbols;

use crate::args::{ServerArgs, SymbolArgs, Ui};
use crate::browser;
use crate::control::{Control, Phase};
use crate::failure::Failure;
use crate::finder::{finder, source_files};
use crate::generated_code::SideFiles;
use crate::identity;
use crate::printer::Printer;
use crate::server_config::{cannot_serve, server_config};
use crate::system::users::give_up_capabilities;
use crate::watch::Watch;
use nyquist_profile::{Meta, Profile, ProfileBuilder};
use nyquist_server::{ProfileSymbols, Server, ServerError, ShutdownHandle, SymbolSource};
use nyquist_viewer::{BuiltinViewer, ProfileFeed};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// A page that is served.
pub(crate) struct LivePage {
    shown: Arc<PageProfile>,
    shutdown: ShutdownHandle,
    server: JoinHandle<Result<(), ServerError>>,
}

/// The profile that the page shows.
pub(crate) struct PageProfile {
    feed: ProfileFeed,
    symbols: Arc<GrowingSymbols>,
}

impl PageProfile {
    /// Whether a page is open and visible.
    pub(crate) fn is_watched(&self) -> bool {
        self.feed.is_watched()
    }

    /// Shows the recording up to `until_ns`. Returns the cost, including that of queries of the profile
    /// before.
    pub(crate) fn show(&self, profile: Profile, until_ns: u64) -> Duration {
        self.symbols.take_libs(&profile);
        self.feed.show(profile, until_ns)
    }

    /// Reports that nothing new was recorded up to `until_ns`.
    fn pass_time(&self, until_ns: u64) -> Duration {
        self.feed.pass_time(until_ns)
    }

    /// The recording has ended, and its final profile is being made.
    pub(crate) fn note_saving(&self) {
        self.feed.note_saving();
    }

    /// Shows the complete profile.
    pub(crate) fn end(&self, profile: Profile) {
        self.symbols.take_libs(&profile);
        self.feed.end(profile);
    }
}

impl LivePage {
    /// Serves the page of a recording that is about to begin, with only the user's rights, and prints its
    /// address.
    pub(crate) fn start(
        name: &str,
        args: &ServerArgs,
        symbols: &SymbolArgs,
        printer: Printer,
    ) -> Result<Self, Failure> {
        // The Firefox Profiler cannot follow a recording.
        let ui = if args.ui == Ui::Auto { Ui::Builtin } else { args.ui };
        let args = ServerArgs { ui, ..args.clone() };
        let (server, shown) = identity::as_invoking_user(|| bind(name, &args, symbols, printer))??;
        let shutdown = server.shutdown_handle();
        browser::show(printer, &server, &args, false);
        let run = move || {
            let _ = give_up_capabilities();
            server.run()
        };
        let spawn = || thread::Builder::new().name("nyquist-server".to_owned()).spawn(run);
        let server = identity::as_invoking_user(spawn)?
            .map_err(|error| Failure::because("no thread can be started", &error))?;
        Ok(Self { shown: Arc::new(shown), shutdown, server })
    }

    /// The profile that the page shows.
    pub(crate) fn profile(&self) -> &Arc<PageProfile> {
        &self.shown
    }

    /// Serves the page until Ctrl-C. The page already shows the whole recording.
    pub(crate) fn serve_until_interrupted(self, printer: Printer, control: &Control) -> Result<(), Failure> {
        control.enter(Phase::Serving(self.shutdown.clone()));
        printer.say("Serving the profile and its symbols; Ctrl-C ends");
        self.wait()
    }

    /// Closes the page.
    #[allow(dead_code, reason = "for commands that are for Linux")]
    pub(crate) fn close(self) -> Result<(), Failure> {
        self.shutdown.shut_down();
        self.wait()
    }

    fn wait(self) -> Result<(), Failure> {
        let ended = self.server.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        ended.map_err(|error| Failure::because("the server failed", &error))
    }
}

fn bind(
    name: &str,
    args: &ServerArgs,
    symbols: &SymbolArgs,
    printer: Printer,
) -> Result<(Server, PageProfile), Failure> {
    let meta = Meta { product: name.to_owned(), profiling_start: Some(0), ..Meta::default() };
    let profile = ProfileBuilder::new(meta).finish();
    let finder = finder(symbols, Watch::new(printer, None));
    let known = ProfileSymbols::new(&profile, finder, source_files(symbols)).with_generated_code(SideFiles);
    let symbols = Arc::new(GrowingSymbols::new(known));
    let source: Arc<dyn SymbolSource> = Arc::<GrowingSymbols>::clone(&symbols);
    let (viewer, feed) = BuiltinViewer::live(profile, Arc::clone(&source));
    let server =
        Server::bind(server_config(args), None, source).map_err(|error| cannot_serve("the page", &error))?;
    Ok((server.with_viewer(Arc::new(viewer)), PageProfile { feed, symbols }))
}
