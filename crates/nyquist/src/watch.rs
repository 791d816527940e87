//! Shows downloads while they run, and cancels them together with the work that needs them.

use crate::printer::Printer;
use crate::text::one_line;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use nyquist_convert::Progress;
use nyquist_download::Observer;
use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Downloads shorter than this get no line.
pub(crate) const SHOW_AFTER: Duration = Duration::from_secs(1);

/// All progress bars on the terminal, so that one does not overwrite another.
pub(crate) static BARS: LazyLock<MultiProgress> =
    LazyLock::new(|| MultiProgress::with_draw_target(ProgressDrawTarget::stderr()));

/// Watches downloads, and shows a line for each that takes long.
#[derive(Debug)]
pub(crate) struct Watch {
    printer: Printer,
    /// The purpose of the downloads.
    work: Option<Arc<Progress>>,
    downloads: Mutex<HashMap<String, ProgressLine>>,
}

#[derive(Debug)]
struct ProgressLine {
    since: Instant,
    /// The bar. Without a terminal it is a line that is printed once.
    bar: Option<ProgressBar>,
}

impl Watch {
    /// Shows downloads by `printer`. Those for `work` end when it is cancelled; others end with the program.
    pub(crate) fn new(printer: Printer, work: Option<Arc<Progress>>) -> Arc<Self> {
        Arc::new(Self { printer, work, downloads: Mutex::default() })
    }

    fn show(&self, url: &str) -> ProgressBar {
        if !self.printer.shows_progress() {
            self.printer.say(format_args!("Downloading {url}"));
            return ProgressBar::hidden();
        }
        let style = ProgressStyle::with_template("Downloading {wide_msg} {bytes} of {total_bytes}");
        let bar = BARS.add(ProgressBar::new(0));
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.set_message(one_line(url).into_owned());
        bar
    }
}

impl Observer for Watch {
    fn is_cancelled(&self) -> bool {
        self.work.as_ref().is_some_and(|work| work.cancel.load(Ordering::Relaxed))
    }

    fn progress(&self, url: &str, bytes: u64, total: Option<u64>) {
        let mut downloads = self.downloads.lock().unwrap_or_else(PoisonError::into_inner);
        let shown = downloads
            .entry(url.to_owned())
            .or_insert_with(|| ProgressLine { since: Instant::now(), bar: None });
        if shown.since.elapsed() >= SHOW_AFTER {
            let bar = shown.bar.get_or_insert_with(|| self.show(url));
            bar.set_length(total.unwrap_or(bytes).max(bytes));
            bar.set_position(bytes);
        }
    }

    fn ended(&self, url: &str) {
        let mut downloads = self.downloads.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bar) = downloads.remove(url).and_then(|shown| shown.bar) {
            bar.finish_and_clear();
        }
    }
}
