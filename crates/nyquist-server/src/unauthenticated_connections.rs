//! Connections without a request with the token so far. Any user of this machine can open any number
//! of them, so they get a small share of all connections and a short time. Those of the served user have a
//! separate share, which other users' connections cannot use. So a client with the token always gets a slot.

use std::collections::BTreeMap;
use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot::{Receiver, Sender, channel};
use tokio::time::timeout;

/// The owner of the process that opened a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// The served user, or root.
    Served,
    /// Another user, or an unknown one, because it comes from another machine or network namespace.
    Other,
}

/// All unauthenticated connections of a server.
pub(crate) struct UnauthenticatedConnections {
    limit: usize,
    timeout_after: Duration,
    state: Mutex<ConnectionState>,
}

#[derive(Default)]
struct ConnectionState {
    served: Evictions,
    others: Evictions,
    next: u64,
}

impl ConnectionState {
    fn of(&mut self, owner: Owner) -> &mut Evictions {
        match owner {
            Owner::Served => &mut self.served,
            Owner::Other => &mut self.others,
        }
    }
}

/// The channel that closes each connection, in the order of arrival.
#[derive(Default)]
struct Evictions(BTreeMap<u64, Sender<()>>);

impl Evictions {
    /// Closes the oldest one if there are more than `kept`.
    fn evict_above(&mut self, cached: usize) -> bool {
        if self.0.len() <= cached {
            return false;
        }
        if let Some((_, evict)) = self.0.pop_first() {
            // The connection may already be closed.
            let _ = evict.send(());
        }
        true
    }
}

impl UnauthenticatedConnections {
    /// `limit` applies to each owner.
    pub(crate) fn new(limit: u16, timeout_after: Duration) -> Arc<Self> {
        Arc::new(Self { limit: usize::from(limit).max(1), timeout_after, state: Mutex::default() })
    }

    /// Admits one more. If the owner has too many, its oldest one is closed.
    pub(crate) fn admit(self: &Arc<Self>, owner: Owner) -> Admission {
        let (evict, eviction) = channel();
        let mut state = self.state();
        let number = state.next;
        state.next += 1;
        let connections = state.of(owner);
        connections.0.insert(number, evict);
        connections.evict_above(self.limit);
        Admission {
            authentication: ClientAuthentication { number, owner, all: Arc::clone(self) },
            eviction: Eviction { receiver: eviction, timeout_after: self.timeout_after },
        }
    }

    /// Frees a slot for the newest connection if all are in use. Connections of other users are closed
    /// first. They never displace one of the served user.
    pub(crate) fn evict_for(&self, newest: Owner) {
        let mut state = self.state();
        let kept_others = usize::from(newest == Owner::Other);
        if !state.others.evict_above(kept_others) && newest == Owner::Served {
            state.served.evict_above(1);
        }
    }

    fn state(&self) -> MutexGuard<'_, ConnectionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An accepted connection.
pub(crate) struct Admission {
    authentication: ClientAuthentication,
    eviction: Eviction,
}

impl Admission {
    /// One half authenticates it, the other one ends it.
    pub(crate) fn split(self) -> (ClientAuthentication, Eviction) {
        (self.authentication, self.eviction)
    }
}

/// The authentication state of a connection's client.
pub(crate) struct ClientAuthentication {
    number: u64,
    owner: Owner,
    all: Arc<UnauthenticatedConnections>,
}

impl ClientAuthentication {
    /// A request with the token has arrived, so the connection is authenticated.
    pub(crate) fn authenticate(&self) {
        self.all.state().of(self.owner).0.remove(&self.number);
    }
}

impl Drop for ClientAuthentication {
    fn drop(&mut self) {
        self.authenticate();
    }
}

/// Signals when a connection must be closed.
pub(crate) struct Eviction {
    receiver: Receiver<()>,
    timeout_after: Duration,
}

impl Eviction {
    /// Waits until the connection must be closed: its time is over, or a newer one displaces it. Never
    /// returns for an authenticated connection.
    pub(crate) async fn wait(self) {
        if let Ok(Err(_authenticated)) = timeout(self.timeout_after, self.receiver).await {
            pending::<()>().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_evicted(admission: &mut Admission) -> bool {
        admission.eviction.receiver.try_recv().is_ok()
    }

    #[test]
    fn a_flood_of_others_evicts_no_served_one() {
        let all = UnauthenticatedConnections::new(4, Duration::MAX);
        let mut served = all.admit(Owner::Served);
        let mut others: Vec<_> = (0..100).map(|_| all.admit(Owner::Other)).collect();
        assert!(!is_evicted(&mut served));
        assert_eq!(others.iter_mut().map(is_evicted).filter(|&evicted| evicted).count(), 96);
    }

    #[test]
    fn each_owner_has_the_whole_limit() {
        let all = UnauthenticatedConnections::new(2, Duration::MAX);
        for owner in [Owner::Served, Owner::Other] {
            let mut three: Vec<_> = (0..3).map(|_| all.admit(owner)).collect();
            let evicted: Vec<_> = three.iter_mut().map(is_evicted).collect();
            assert_eq!(evicted, [true, false, false], "{owner:?}");
        }
    }

    #[test]
    fn room_is_made_by_others_first() {
        let all = UnauthenticatedConnections::new(9, Duration::MAX);
        let mut older = all.admit(Owner::Served);
        let mut other = all.admit(Owner::Other);
        let mut newest = all.admit(Owner::Served);
        all.evict_for(Owner::Served);
        assert!(is_evicted(&mut other) && !is_evicted(&mut older));
        all.evict_for(Owner::Served);
        assert!(is_evicted(&mut older));
        all.evict_for(Owner::Served);
        assert!(!is_evicted(&mut newest));
    }

    #[test]
    fn no_served_one_goes_for_another_users() {
        let all = UnauthenticatedConnections::new(9, Duration::MAX);
        let mut served = [all.admit(Owner::Served), all.admit(Owner::Served)];
        let mut newest = all.admit(Owner::Other);
        all.evict_for(Owner::Other);
        assert!(!served.iter_mut().any(is_evicted) && !is_evicted(&mut newest));
    }
}
