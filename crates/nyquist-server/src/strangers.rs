//! Connections on which no request with the token has come so far. Anybody on this machine can open any number of them,
//! so they get a small share of all connections and a short time: whoever knows the token always finds a place.

use std::collections::BTreeMap;
use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot::{Receiver, Sender, channel};
use tokio::time::timeout;

/// All strangers of a server.
pub(crate) struct Strangers {
    limit: usize,
    patience: Duration,
    inside: Mutex<Inside>,
}

#[derive(Default)]
struct Inside {
    /// By the order in which they came: to each the way to turn it out.
    doors: BTreeMap<u64, Sender<()>>,
    next: u64,
}

impl Strangers {
    pub(crate) fn new(limit: u16, patience: Duration) -> Arc<Self> {
        Arc::new(Self { limit: usize::from(limit).max(1), patience, inside: Mutex::default() })
    }

    /// Takes one more in; the oldest ones go where there are too many.
    pub(crate) fn admit(self: &Arc<Self>) -> Stranger {
        let (door, turned_out) = channel();
        let mut inside = self.inside();
        let number = inside.next;
        inside.next += 1;
        inside.doors.insert(number, door);
        while inside.doors.len() > self.limit {
            inside.turn_out_oldest();
        }
        Stranger {
            acquaintance: Acquaintance { number, strangers: Arc::clone(self) },
            turned_out: TurnedOut { receiver: turned_out, patience: self.patience },
        }
    }

    /// Makes room where all connections are taken. The newest is the one that room is made for.
    pub(crate) fn turn_out_oldest(&self) {
        let mut inside = self.inside();
        if inside.doors.len() > 1 {
            inside.turn_out_oldest();
        }
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inside {
    fn turn_out_oldest(&mut self) {
        if let Some((_, door)) = self.doors.pop_first() {
            // Whoever has gone already needs no telling.
            let _ = door.send(());
        }
    }
}

/// One stranger, as it was taken in.
pub(crate) struct Stranger {
    acquaintance: Acquaintance,
    turned_out: TurnedOut,
}

impl Stranger {
    /// The one half makes it known, the other ends its connection.
    pub(crate) fn split(self) -> (Acquaintance, TurnedOut) {
        (self.acquaintance, self.turned_out)
    }
}

/// What a connection's requests say of who is on it.
pub(crate) struct Acquaintance {
    number: u64,
    strangers: Arc<Strangers>,
}

impl Acquaintance {
    /// A request with the token has come: this is a stranger no more.
    pub(crate) fn known(&self) {
        self.strangers.inside().doors.remove(&self.number);
    }
}

impl Drop for Acquaintance {
    fn drop(&mut self) {
        self.known();
    }
}

/// Tells when a stranger's time is over.
pub(crate) struct TurnedOut {
    receiver: Receiver<()>,
    patience: Duration,
}

impl TurnedOut {
    /// Waits until the connection must be closed: its time is over, or a newer one takes its place. Never, once it is
    /// known.
    pub(crate) async fn wait(self) {
        match timeout(self.patience, self.receiver).await {
            Ok(Err(_known)) => pending().await,
            Ok(Ok(())) | Err(_) => {}
        }
    }
}
