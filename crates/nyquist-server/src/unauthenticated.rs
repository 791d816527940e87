//! Connections on which no request with the token has come so far. Anybody on this machine can open any number of them,
//! so they get a small share of all connections and a short time: whoever knows the token always finds a place.

use std::collections::BTreeMap;
use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot::{Receiver, Sender, channel};
use tokio::time::timeout;

/// All connections of a server that are not authenticated.
pub(crate) struct Unauthenticated {
    limit: usize,
    timeout_after: Duration,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// By the order in which they came: the channel that ends each.
    evictions: BTreeMap<u64, Sender<()>>,
    next: u64,
}

impl Unauthenticated {
    pub(crate) fn new(limit: u16, timeout_after: Duration) -> Arc<Self> {
        Arc::new(Self { limit: usize::from(limit).max(1), timeout_after, state: Mutex::default() })
    }

    /// Accepts one more; the oldest ones are closed where there are too many.
    pub(crate) fn admit(self: &Arc<Self>) -> Admission {
        let (evict, eviction) = channel();
        let mut state = self.state();
        let number = state.next;
        state.next += 1;
        state.evictions.insert(number, evict);
        while state.evictions.len() > self.limit {
            state.evict_oldest();
        }
        Admission {
            standing: Standing { number, all: Arc::clone(self) },
            eviction: Eviction { receiver: eviction, timeout_after: self.timeout_after },
        }
    }

    /// Makes room where all connections are taken. The newest is the one that room is made for.
    pub(crate) fn evict_oldest(&self) {
        let mut state = self.state();
        if state.evictions.len() > 1 {
            state.evict_oldest();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn evict_oldest(&mut self) {
        if let Some((_, evict)) = self.evictions.pop_first() {
            // One that has gone already needs no end.
            let _ = evict.send(());
        }
    }
}

/// One connection, as it was accepted.
pub(crate) struct Admission {
    standing: Standing,
    eviction: Eviction,
}

impl Admission {
    /// One half authenticates it, the other one ends it.
    pub(crate) fn split(self) -> (Standing, Eviction) {
        (self.standing, self.eviction)
    }
}

/// What a connection's requests say of who is on it.
pub(crate) struct Standing {
    number: u64,
    all: Arc<Unauthenticated>,
}

impl Standing {
    /// A request with the token has come: the connection is authenticated.
    pub(crate) fn authenticate(&self) {
        self.all.state().evictions.remove(&self.number);
    }
}

impl Drop for Standing {
    fn drop(&mut self) {
        self.authenticate();
    }
}

/// Tells when a connection must be closed.
pub(crate) struct Eviction {
    receiver: Receiver<()>,
    timeout_after: Duration,
}

impl Eviction {
    /// Waits until the connection must be closed: its time is over, or a newer one takes its place. Never, once it is
    /// known.
    pub(crate) async fn wait(self) {
        if let Ok(Err(_authenticated)) = timeout(self.timeout_after, self.receiver).await {
            pending::<()>().await;
        }
    }
}
