//! Changes perf_event_paranoid and other settings for the duration of a test. A lock protects them, and they
//! are always restored.

use std::fs::{self, File};
use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;

use anyhow::{Context as _, Result};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// The folder of the settings.
const FOLDER: &str = "/proc/sys/kernel";
const PARANOID: &str = "perf_event_paranoid";

/// The lock file, which also contains the values to restore: if a holder is killed, the next holder restores
/// them. All checkouts share it, because they share the settings. Only root may write to this folder, and only
/// root may change the settings. In `/tmp`, a file of this name could be another user's, who could hold the
/// lock, or have other values restored.
const LOCK: &str = "/run/nyquist-paranoid.lock";

/// Opens the lock file. A link is not followed.
fn open_lock() -> Result<File> {
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(false).mode(0o600).custom_flags(libc::O_NOFOLLOW);
    options.open(LOCK).with_context(|| format!("cannot open {LOCK}"))
}

/// Settings with their values.
type Values = Vec<(String, String)>;

/// The settings to restore when this program is interrupted.
static BORROWED: Mutex<Values> = Mutex::new(Vec::new());

/// The value that tests of this run hold together.
static SHARED: Mutex<Option<(i32, Weak<Paranoid>)>> = Mutex::new(None);

/// Settings that are held, and restored at the end.
pub(crate) struct Paranoid {
    lock: File,
    before: Values,
}

impl Paranoid {
    /// Waits for the lock and sets the value, even if it is set already. So no other test changes it
    /// meanwhile.
    pub(crate) fn hold(value: i32) -> Result<Self> {
        let mut lock = open_lock()?;
        lock.lock().context("cannot lock the perf_event_paranoid setting")?;
        let mut left = String::new();
        lock.read_to_string(&mut left)?;
        for (name, value) in noted(&left) {
            write(&name, &value)?;
        }
        let mut held = Self { lock, before: Vec::new() };
        held.set(PARANOID, i64::from(value))?;
        Ok(held)
    }

    /// The same, together with other tests of this run that need the same value and change nothing else.
    pub(crate) fn share(value: i32) -> Result<Arc<Self>> {
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        let held = shared.as_ref().filter(|(held, _)| *held == value).and_then(|(_, held)| held.upgrade());
        if let Some(held) = held {
            return Ok(held);
        }
        let held = Arc::new(Self::hold(value)?);
        *shared = Some((value, Arc::downgrade(&held)));
        Ok(held)
    }

    /// Sets the value of another kernel setting.
    pub(crate) fn set(&mut self, name: &str, value: i64) -> Result<()> {
        self.before.push((name.to_owned(), read(name)?));
        self.note(&note_of(&self.before))?;
        if let Ok(mut borrowed) = BORROWED.lock() {
            borrowed.clone_from(&self.before);
        }
        write(name, &value.to_string())
    }

    fn note(&mut self, text: &str) -> Result<()> {
        self.lock.rewind()?;
        self.lock.set_len(0)?;
        Ok(self.lock.write_all(text.as_bytes())?)
    }
}

impl Drop for Paranoid {
    fn drop(&mut self) {
        // All settings are restored, even if one of them fails.
        let failed = self.before.iter().filter(|(name, value)| write(name, value).is_err()).count();
        if failed == 0 {
            // If this fails, the next holder restores the same values again.
            drop(self.note(""));
        }
        if let Ok(mut borrowed) = BORROWED.lock() {
            borrowed.clear();
        }
    }
}

/// One line for each setting. The line of perf_event_paranoid contains only its value, because earlier
/// versions of this program read it.
fn note_of(values: &Values) -> String {
    let line = |(name, value): &(String, String)| match name.as_str() {
        PARANOID => format!("{value}\n"),
        name => format!("{name} {value}\n"),
    };
    values.iter().map(line).collect()
}

fn noted(text: &str) -> Values {
    let value = |line: &str| {
        let (name, value) = line.split_once(' ').unwrap_or((PARANOID, line));
        (name.to_owned(), value.to_owned())
    };
    text.lines().filter(|line| !line.trim().is_empty()).map(value).collect()
}

/// The present value of a kernel setting.
pub(crate) fn read(name: &str) -> Result<String> {
    let text = fs::read_to_string(format!("{FOLDER}/{name}"));
    Ok(text.with_context(|| format!("cannot read {name}"))?.trim().to_owned())
}

fn write(name: &str, value: &str) -> Result<()> {
    fs::write(format!("{FOLDER}/{name}"), value).with_context(|| format!("cannot set {name} to {value}"))
}

/// Restores the settings before a signal ends this program.
pub(crate) fn restore_when_interrupted() -> Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    thread::spawn(move || {
        let signal = signals.forever().next().unwrap_or(SIGTERM);
        let borrowed = BORROWED.lock().map(|mut borrowed| std::mem::take(&mut *borrowed)).unwrap_or_default();
        for (name, value) in borrowed {
            drop(write(&name, &value));
        }
        std::process::exit(128 + signal);
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_noted_is_read_again() {
        let values = [(PARANOID, "2"), ("kptr_restrict", "1")];
        let values: Values = values.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        assert_eq!(note_of(&values), "2\nkptr_restrict 1\n");
        assert_eq!(noted(&note_of(&values)), values);
        assert_eq!(noted(""), []);
    }
}
