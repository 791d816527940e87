//! Downloads from servers that are correct, slow, failing or malicious.

mod debuginfod;
mod server;
mod stores;

use nyquist_download::Observer;
use nyquist_symbols::AttemptOutcome;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// A folder that is removed at the end of the test.
pub(crate) struct TestFolder(pub(crate) PathBuf);

impl TestFolder {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("nyquist-download-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// All files below it, by their relative paths.
    pub(crate) fn files(&self) -> Vec<String> {
        let mut files = Vec::new();
        let mut folders = vec![self.0.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    files.push(path.strip_prefix(&self.0).unwrap().to_str().unwrap().to_owned());
                }
            }
        }
        files.sort();
        files
    }
}

impl Drop for TestFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The right file begins with `right`.
pub(crate) fn check(path: &Path) -> AttemptOutcome {
    match fs::read(path) {
        Ok(bytes) if bytes.starts_with(b"right") => AttemptOutcome::Used,
        Ok(_) => AttemptOutcome::OtherIdentity("wrong".to_owned()),
        Err(error) => AttemptOutcome::Unreadable(error.to_string()),
    }
}

/// Cancels everything when a download has started.
#[derive(Debug, Default)]
pub(crate) struct Impatient {
    ends: AtomicBool,
    pub(crate) seen: Mutex<Vec<String>>,
}

impl Observer for Impatient {
    fn is_cancelled(&self) -> bool {
        self.ends.load(Ordering::Relaxed)
    }

    fn progress(&self, url: &str, _: u64, _: Option<u64>) {
        self.seen.lock().unwrap().push(url.to_owned());
        self.ends.store(true, Ordering::Relaxed);
    }

    fn ended(&self, _: &str) {}
}
