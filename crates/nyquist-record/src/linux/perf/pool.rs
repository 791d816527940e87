//! The bounded pool of memory that records are copied into, and that comes back when nobody needs them.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use bytes::Bytes;

/// The size of a buffer: some records of the largest size.
pub(crate) const BUFFER_BYTES: usize = 256 << 10;
/// The number of buffers: 64 MB, touched only as far as it is used.
pub(crate) const BUFFERS: usize = 256;

/// The reader's end: buffers to fill.
#[derive(Debug)]
pub(crate) struct Pool {
    free: Receiver<Vec<u8>>,
    back: SyncSender<Vec<u8>>,
}

impl Pool {
    /// Makes all buffers.
    pub(crate) fn new() -> Self {
        let (back, free) = sync_channel(BUFFERS);
        for _ in 0..BUFFERS {
            // The channel has room for all, and its other end is here. The pages of zeros are not there before
            // they are written to.
            let _ = back.try_send(vec![0; BUFFER_BYTES]);
        }
        Self { free, back }
    }

    /// Takes a buffer, if there is one.
    pub(crate) fn take(&self) -> Option<Filling> {
        let buffer = self.free.try_recv().ok()?;
        Some(Filling { buffer: PooledBuffer { buffer, len: 0, back: self.back.clone() } })
    }
}

/// A buffer that is being filled.
#[derive(Debug)]
pub(crate) struct Filling {
    buffer: PooledBuffer,
}

impl Filling {
    /// The bytes that are not filled yet.
    pub(crate) fn room(&mut self) -> &mut [u8] {
        self.buffer.buffer.get_mut(self.buffer.len..).unwrap_or_default()
    }

    /// Counts the next `len` bytes as filled.
    pub(crate) fn advance(&mut self, len: usize) {
        self.buffer.len = (self.buffer.len + len).min(self.buffer.buffer.len());
    }

    /// Whether nothing was filled.
    pub(crate) fn is_empty(&self) -> bool {
        self.buffer.len == 0
    }

    /// The filled bytes, which go back to the pool when the last slice of them is dropped.
    pub(crate) fn into_bytes(self) -> Bytes {
        Bytes::from_owner(self.buffer)
    }
}

/// A buffer that goes back to its pool.
#[derive(Debug)]
struct PooledBuffer {
    buffer: Vec<u8>,
    len: usize,
    back: SyncSender<Vec<u8>>,
}

impl AsRef<[u8]> for PooledBuffer {
    fn as_ref(&self) -> &[u8] {
        self.buffer.get(..self.len).unwrap_or_default()
    }
}

impl Drop for PooledBuffer {
    fn drop(&mut self) {
        // Where the recording has ended, the pool is gone, and the memory goes back to the system.
        let _ = self.back.try_send(std::mem::take(&mut self.buffer));
    }
}
