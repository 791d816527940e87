//! Shows on the terminal what happens while a file is read and its names are looked up, if it takes a while.

use super::notes;
use crate::memory;
use crate::printer::Printer;
use crate::watch::{BARS, SHOW_AFTER};
use indicatif::{ProgressBar, ProgressStyle};
use nyquist_convert::{LibReport, Progress, SymbolicatedProfile};
use nyquist_input::{Note, ReadObserver};
use nyquist_symbols::{AnswerCache, Finder};
use std::cell::RefCell;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Prints notes and shows progress.
pub(crate) struct ReadReporter {
    printer: Printer,
    trace: RefCell<Option<TraceBar>>,
    lookup: RefCell<Option<LookupBar>>,
}

impl ReadReporter {
    /// Reports by `printer`.
    pub(crate) fn new(printer: Printer) -> Self {
        Self { printer, trace: RefCell::default(), lookup: RefCell::default() }
    }
}

impl ReadObserver for ReadReporter {
    fn note(&self, note: Note) {
        notes::print(&note, self.printer);
    }

    fn bytes_read(&self, done: u64, total: u64) {
        let mut trace = self.trace.borrow_mut();
        trace.get_or_insert_with(TraceBar::new).show(done, total, self.printer);
    }

    fn reading_ended(&self) {
        self.trace.take();
    }

    fn lookup_began(&self, progress: &Arc<Progress>) {
        *self.lookup.borrow_mut() = self.printer.shows_progress().then(|| LookupBar::start(progress));
    }

    fn lookup_ended(&self, symbolicated: &SymbolicatedProfile, finder: &Finder) {
        self.lookup.take();
        explain(symbolicated, finder, self.printer);
        if let Some(budget) = finder.budget() {
            memory::warn_of_missing_names(budget, self.printer);
        }
    }
}

/// How far the reading of a trace is.
struct TraceBar {
    since: Instant,
    bar: Option<ProgressBar>,
}

impl TraceBar {
    fn new() -> Self {
        Self { since: Instant::now(), bar: None }
    }

    fn show(&mut self, done: u64, total: u64, printer: Printer) {
        if self.since.elapsed() < SHOW_AFTER || !printer.shows_progress() {
            return;
        }
        let bar = self.bar.get_or_insert_with(|| {
            let style = ProgressStyle::with_template("Reading the trace {wide_bar} {bytes} of {total_bytes}");
            let bar = BARS.add(ProgressBar::new(total));
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar
        });
        bar.set_position(done.min(total));
    }
}

impl Drop for TraceBar {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// How far the look-up of names is. A thread shows it until this is dropped.
struct LookupBar {
    finished: Option<mpsc::Sender<()>>,
    /// `None` if the system does not allow another thread.
    thread: Option<JoinHandle<()>>,
}

impl LookupBar {
    fn start(progress: &Arc<Progress>) -> Self {
        let (finished, wait) = mpsc::channel();
        let progress = Arc::clone(progress);
        let thread = thread::Builder::new().spawn(move || show(&progress, &wait)).ok();
        Self { finished: Some(finished), thread }
    }
}

impl Drop for LookupBar {
    fn drop(&mut self) {
        self.finished = None;
        // Messages that follow are below the bar's line.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn show(progress: &Progress, finished: &mpsc::Receiver<()>) {
    if finished.recv_timeout(SHOW_AFTER) != Err(mpsc::RecvTimeoutError::Timeout) {
        return;
    }
    let style = ProgressStyle::with_template("Looking up names {wide_bar} {pos}/{len}");
    let bar = BARS.add(ProgressBar::new(0));
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    while finished.recv_timeout(Duration::from_millis(100)) == Err(mpsc::RecvTimeoutError::Timeout) {
        bar.set_length(progress.total.load(Ordering::Relaxed) as u64);
        bar.set_position(progress.done.load(Ordering::Relaxed) as u64);
    }
    bar.finish_and_clear();
}

/// Prints, with `--verbose`, the source of each lib's names and the searched places.
fn explain(symbolicated: &SymbolicatedProfile, finder: &Finder, printer: Printer) {
    for LibReport { lib, symbols_from, tried } in &symbolicated.libs {
        let name = &symbolicated.profile.lib(*lib).path;
        match symbols_from {
            Some(path) => printer.detail(format_args!("{name}: symbols from {}", display_path(path))),
            None => printer.detail(format_args!("{name}: no symbols")),
        }
        for attempt in tried {
            printer.detail(format_args!("  {}: {}", display_path(&attempt.path), attempt.outcome));
        }
    }
    if let Some(problem) = finder.cache().and_then(AnswerCache::problem) {
        printer.detail(format_args!("What was looked up is not kept: {problem}"));
    }
}

/// A path for the user. A file that has been open since it was mapped has only a number here.
fn display_path(path: &Path) -> String {
    if path.starts_with("/proc/self/fd") {
        "the file that was mapped".to_owned()
    } else {
        path.display().to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_held_open_is_not_called_by_its_number() {
        let check = |path: &str, expected: &str| assert_eq!(display_path(Path::new(path)), expected);
        check("/proc/self/fd/21", "the file that was mapped");
        check("/usr/lib/debug/x.debug", "/usr/lib/debug/x.debug");
    }
}
