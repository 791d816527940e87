//! The interface for a caller that observes downloads and may cancel them.

use std::fmt;

/// Observes downloads. Called from several threads.
pub trait Observer: fmt::Debug + Send + Sync {
    /// Whether downloads are cancelled. Called ten times a second, also while a server sends nothing.
    fn is_cancelled(&self) -> bool;

    /// The progress of a download, reported about ten times a second until its end. `total` is the
    /// server's claim.
    fn progress(&self, url: &str, bytes: u64, total: Option<u64>);

    /// A download has ended, successfully or not.
    fn ended(&self, url: &str);
}

/// Observes and cancels nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoObserver;

impl Observer for NoObserver {
    fn is_cancelled(&self) -> bool {
        false
    }

    fn progress(&self, _: &str, _: u64, _: Option<u64>) {}

    fn ended(&self, _: &str) {}
}
