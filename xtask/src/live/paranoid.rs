//! Another perf_event_paranoid for the time of a test: under one lock, and put back whatever happens.

use std::fs::{self, File};
use std::io::{Read as _, Seek as _, Write as _};
use std::sync::Mutex;
use std::thread;

use anyhow::{Context as _, Result};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

const SETTING: &str = "/proc/sys/kernel/perf_event_paranoid";

/// The lock, which also keeps the value to be put back: a holder that was killed leaves it to the next.
const LOCK: &str = "/tmp/nyquist-paranoid.lock";

/// What to put back when this program is interrupted.
static BORROWED: Mutex<Option<String>> = Mutex::new(None);

/// A setting that is held, and put back in the end.
pub(crate) struct Paranoid {
    lock: File,
    before: String,
}

impl Paranoid {
    /// Waits for the lock and sets the value, also where it has it already: nobody else changes it meanwhile.
    pub(crate) fn hold(value: i32) -> Result<Self> {
        let mut lock = File::options().read(true).write(true).create(true).truncate(false).open(LOCK)?;
        lock.lock().context("cannot lock the perf_event_paranoid setting")?;
        let mut left = String::new();
        lock.read_to_string(&mut left)?;
        let before = if left.trim().is_empty() { read()? } else { left.trim().to_owned() };
        let mut held = Self { lock, before };
        held.note(&held.before.clone())?;
        if let Ok(mut borrowed) = BORROWED.lock() {
            *borrowed = Some(held.before.clone());
        }
        write(&value.to_string())?;
        Ok(held)
    }

    fn note(&mut self, text: &str) -> Result<()> {
        self.lock.rewind()?;
        self.lock.set_len(0)?;
        Ok(self.lock.write_all(text.as_bytes())?)
    }
}

impl Drop for Paranoid {
    fn drop(&mut self) {
        if write(&self.before).is_ok() {
            // Should this fail, the next holder puts back the same value once more.
            drop(self.note(""));
        }
        if let Ok(mut borrowed) = BORROWED.lock() {
            *borrowed = None;
        }
    }
}

fn read() -> Result<String> {
    Ok(fs::read_to_string(SETTING).context("cannot read perf_event_paranoid")?.trim().to_owned())
}

fn write(value: &str) -> Result<()> {
    fs::write(SETTING, value).with_context(|| format!("cannot set perf_event_paranoid to {value}"))
}

/// Puts the setting back before a signal ends this program.
pub(crate) fn restore_when_interrupted() -> Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    thread::spawn(move || {
        let signal = signals.forever().next().unwrap_or(SIGTERM);
        let borrowed = BORROWED.lock().ok().and_then(|mut borrowed| borrowed.take());
        if let Some(before) = borrowed {
            drop(write(&before));
        }
        std::process::exit(128 + signal);
    });
    Ok(())
}
