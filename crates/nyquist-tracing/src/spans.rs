//! The living spans, and the data of each.
//!
//! tracing's registry could store it, but a lookup there costs several times as much, four times for each
//! span.

use crate::protocol::Values;
use crate::sys::SpinLock;
use tracing_core::Metadata;
use tracing_core::span::Id;

/// The number of shards of the table. With this many, threads hardly ever need the same one at the same time.
const SHARDS: usize = 1 << 10;

/// The data of a span until it ends.
#[derive(Debug)]
pub(crate) struct Span {
    pub(crate) metadata: &'static Metadata<'static>,
    pub(crate) values: Values,
    /// Unique in the process, because tracing reuses its own ids.
    pub(crate) id: u64,
    /// The id of the span around it, or 0.
    pub(crate) parent: u64,
    pub(crate) created: u64,
    /// The number of times that it was entered and left.
    pub(crate) runs: u32,
    /// The time that threads were in it, in ns.
    pub(crate) busy: u64,
}

/// The living spans of one registry.
#[derive(Debug)]
pub(crate) struct Spans {
    shards: Box<[Shard]>,
}

type Shard = SpinLock<Vec<(u64, Span)>>;

impl Spans {
    pub(crate) fn new() -> Self {
        Self { shards: (0..SHARDS).map(|_| Shard::default()).collect() }
    }

    pub(crate) fn insert(&self, id: &Id, span: Span) {
        self.shard(id).with(|spans| spans.push((id.into_u64(), span)));
    }

    /// Calls `then` with the span, if it belongs to the layer. `then` must not call tracing.
    pub(crate) fn with<R>(&self, id: &Id, then: impl FnOnce(&mut Span) -> R) -> Option<R> {
        let requested = id.into_u64();
        self.shard(id)
            .with(|spans| spans.iter_mut().find(|(id, _)| *id == requested).map(|(_, span)| then(span)))
    }

    pub(crate) fn remove(&self, id: &Id) -> Option<Span> {
        let requested = id.into_u64();
        self.shard(id).with(|spans| {
            let at = spans.iter().position(|(id, _)| *id == requested)?;
            Some(spans.swap_remove(at).1)
        })
    }

    fn shard(&self, id: &Id) -> &Shard {
        let spread = id.into_u64().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        &self.shards[spread as usize % SHARDS]
    }
}
