//! A bounded pool of buffers for records or stack pages. A buffer returns to the pool when it is no longer
//! used.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use bytes::Bytes;

/// The size of a buffer for records: it holds several of the largest size.
pub(crate) const BUFFER_BYTES: usize = 256 << 10;
/// The most buffers for records: 64 MB. Most recordings need a few of them.
pub(crate) const BUFFERS: usize = 256;
/// How many CPUs share that many buffers.
#[cfg(target_os = "linux")]
const CPUS_EACH: usize = 32;

/// The number of buffers for the records of this many CPUs.
#[cfg(target_os = "linux")]
pub(crate) fn buffers_for(cpus: usize) -> usize {
    cpus.div_ceil(CPUS_EACH).max(1) * BUFFERS
}

/// The buffers that samples may not use.
const KEPT_FOR_SIDEBAND: usize = 16;

/// The buffers that additional events may not use: a burst of them must leave room for the samples.
const KEPT_FOR_SAMPLES: usize = BUFFERS / 2;

/// The buffers that are reserved for the oldest records.
const KEPT_FOR_OLDEST: usize = 8;

/// The reader's end: buffers to fill.
#[derive(Debug)]
pub(crate) struct Pool {
    buffer_bytes: usize,
    returned: Receiver<Vec<u8>>,
    /// The returned buffers. The last one is reused first, because it may still be in the CPU's cache.
    free: RefCell<Vec<Vec<u8>>>,
    back: SyncSender<Vec<u8>>,
    count: Arc<AtomicUsize>,
}

/// The priority for the last buffers: each may use more of them than the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Need {
    /// Additional events: if there is no buffer for them, they are dropped.
    Occurrences,
    /// Samples: a loss of some is tolerable.
    Samples,
    /// Mappings, names and tasks: without them, all following samples are of little use.
    Sideband,
    /// Records older than all that wait in the rings. The receiver returns buffers when nothing older can
    /// come any more, so only this lets a full pool make progress.
    Oldest,
}

impl Need {
    /// How many buffers it leaves to others.
    fn leaves(self) -> usize {
        match self {
            Self::Occurrences => KEPT_FOR_OLDEST + KEPT_FOR_SIDEBAND + KEPT_FOR_SAMPLES,
            Self::Samples => KEPT_FOR_OLDEST + KEPT_FOR_SIDEBAND,
            Self::Sideband => KEPT_FOR_OLDEST,
            Self::Oldest => 0,
        }
    }
}

impl Pool {
    /// A pool for records.
    pub(crate) fn new() -> Self {
        Self::of(BUFFERS, BUFFER_BYTES)
    }

    /// A pool of this many buffers with this many bytes. Each is allocated when it is first needed.
    pub(crate) fn of(buffers: usize, buffer_bytes: usize) -> Self {
        let (back, returned) = sync_channel(buffers);
        let free = RefCell::new(Vec::new());
        Self { buffer_bytes, returned, free, back, count: Arc::new(AtomicUsize::new(buffers)) }
    }

    /// Takes a buffer for records, if one is available for this need. It may be filled with records of the
    /// lowest need that could have taken it.
    pub(crate) fn take(&self, need: Need) -> Option<BufferWriter> {
        let all = [Need::Occurrences, Need::Samples, Need::Sideband, Need::Oldest];
        let could_have_it = all.into_iter().filter(|least| *least <= need);
        let (least, mut filling) =
            could_have_it.into_iter().find_map(|least| Some((least, self.take_leaving(least.leaves())?)))?;
        filling.kept_for = least;
        Some(filling)
    }

    /// Takes a buffer, if more than `kept` are left.
    pub(crate) fn take_leaving(&self, retained: usize) -> Option<BufferWriter> {
        // Only this thread takes buffers, so the count cannot fall below the value that it has read.
        if self.count.load(Ordering::Acquire) <= retained {
            return None;
        }
        // If none was returned, fewer than the maximum have been allocated, because the count is not zero.
        let mut free = self.free.borrow_mut();
        free.extend(self.returned.try_iter());
        let buffer = free.pop().unwrap_or_else(|| vec![0; self.buffer_bytes]);
        self.count.fetch_sub(1, Ordering::AcqRel);
        let (back, count) = (self.back.clone(), Arc::clone(&self.count));
        let buffer = PooledBuffer { buffer, len: 0, back, count };
        Some(BufferWriter { buffer, kept_for: Need::Occurrences })
    }
}

/// A buffer that is being filled.
#[derive(Debug)]
pub(crate) struct BufferWriter {
    buffer: PooledBuffer,
    kept_for: Need,
}

impl BufferWriter {
    /// Whether it is reserved for a higher need than this one.
    #[cfg(any(target_os = "linux", windows, test))]
    pub(crate) fn is_kept_from(&self, need: Need) -> bool {
        self.kept_for > need
    }

    /// The bytes that are not filled yet.
    pub(crate) fn room(&mut self) -> &mut [u8] {
        self.buffer.buffer.get_mut(self.buffer.len..).unwrap_or_default()
    }

    /// Marks the next `len` bytes as filled.
    pub(crate) fn advance(&mut self, len: usize) {
        self.buffer.len = (self.buffer.len + len).min(self.buffer.buffer.len());
    }

    /// Whether nothing was filled.
    pub(crate) fn is_empty(&self) -> bool {
        self.buffer.len == 0
    }

    /// The filled bytes, which return to the pool when their last slice is dropped.
    pub(crate) fn into_bytes(self) -> Bytes {
        Bytes::from_owner(self.buffer)
    }
}

/// A buffer that returns to its pool.
#[derive(Debug)]
struct PooledBuffer {
    buffer: Vec<u8>,
    len: usize,
    back: SyncSender<Vec<u8>>,
    count: Arc<AtomicUsize>,
}

impl AsRef<[u8]> for PooledBuffer {
    fn as_ref(&self) -> &[u8] {
        self.buffer.get(..self.len).unwrap_or_default()
    }
}

impl Drop for PooledBuffer {
    fn drop(&mut self) {
        // If the recording has ended, the pool is gone, and the memory is freed.
        if self.back.try_send(std::mem::take(&mut self.buffer)).is_ok() {
            self.count.fetch_add(1, Ordering::AcqRel);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(mut filling: BufferWriter, bytes: &[u8]) -> Bytes {
        filling.room()[..bytes.len()].copy_from_slice(bytes);
        filling.advance(bytes.len());
        filling.into_bytes()
    }

    #[test]
    fn filled_bytes_come_out_and_memory_comes_back() {
        let pool = Pool::new();
        let taken: Vec<BufferWriter> = std::iter::from_fn(|| pool.take(Need::Oldest)).collect();
        assert_eq!(taken.len(), BUFFERS);
        let mut bytes: Vec<Bytes> = taken.into_iter().map(|filling| fill(filling, b"record")).collect();
        assert!(pool.take(Need::Oldest).is_none());
        let slice = bytes.pop().unwrap().slice(2..4);
        assert_eq!(slice, b"co"[..]);
        assert!(pool.take(Need::Oldest).is_none(), "a slice of the buffer is still there");
        drop(slice);
        assert!(pool.take(Need::Oldest).is_some_and(|filling| filling.is_empty()));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_pool_grows_with_the_cpus() {
        assert_eq!([0, 2, 32, 33, 256].map(buffers_for), [1, 1, 1, 2, 8].map(|pools| pools * BUFFERS));
    }

    #[test]
    fn samples_leave_memory_for_sideband_and_oldest() {
        let pool = Pool::new();
        let samples: Vec<BufferWriter> = std::iter::from_fn(|| pool.take(Need::Samples)).collect();
        assert_eq!(samples.len(), BUFFERS - KEPT_FOR_SIDEBAND - KEPT_FOR_OLDEST);
        let sideband: Vec<BufferWriter> = std::iter::from_fn(|| pool.take(Need::Sideband)).collect();
        assert_eq!(sideband.len(), KEPT_FOR_SIDEBAND);
        let oldest: Vec<BufferWriter> = std::iter::from_fn(|| pool.take(Need::Oldest)).collect();
        assert_eq!(oldest.len(), KEPT_FOR_OLDEST);
        let kept_from =
            |filling: &BufferWriter| [Need::Samples, Need::Sideband].map(|need| filling.is_kept_from(need));
        assert!(samples.iter().all(|filling| kept_from(filling) == [false, false]));
        assert!(sideband.iter().all(|filling| kept_from(filling) == [true, false]));
        assert!(oldest.iter().all(|filling| kept_from(filling) == [true, true]));
        drop((samples, sideband, oldest));
        assert!(pool.take(Need::Samples).is_some());
        assert!(pool.take(Need::Oldest).is_some_and(|filling| !filling.is_kept_from(Need::Samples)));
    }

    #[test]
    fn memory_can_outlive_the_pool() {
        let pool = Pool::new();
        let bytes = fill(pool.take(Need::Samples).unwrap(), b"record");
        drop(pool);
        assert_eq!(bytes, b"record"[..]);
    }
}
