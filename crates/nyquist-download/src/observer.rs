//! The interface for a caller that watches downloads and may end them.

use std::fmt;

/// Watches downloads. Called from several threads.
pub trait Observer: fmt::Debug + Send + Sync {
    /// Whether no more is to be downloaded. Asked ten times a second, also while a server keeps silent.
    fn is_cancelled(&self) -> bool;

    /// How far a download is: called about ten times a second until it is over. `total` is what the server claims.
    fn progress(&self, url: &str, bytes: u64, total: Option<u64>);

    /// A download is over, one way or the other.
    fn ended(&self, url: &str);
}

/// Nobody watches, and nothing is ended.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unobserved;

impl Observer for Unobserved {
    fn is_cancelled(&self) -> bool {
        false
    }

    fn progress(&self, _: &str, _: u64, _: Option<u64>) {}

    fn ended(&self, _: &str) {}
}
