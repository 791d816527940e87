//! Compresses with gzip on several threads, while the calling thread produces the input.
//!
//! Blocks of the text are compressed separately, each up to a byte boundary (a sync flush, RFC 1951, section
//! 3.2.4). They follow each other in one member, because browsers do not read beyond the first member.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::mpsc::{self, Receiver, SyncSender, TryRecvError};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Scope};

use flate2::{Compress, Compression, Crc, FlushCompress};
use nyquist_resources::{cpu_count, spawn_helper};

/// The size of a separately compressed block. A block cannot refer to earlier text, which costs some size.
const BLOCK_SIZE: usize = 512 * 1024;

/// The member's header (RFC 1952, section 2.3): deflate, no name, no time, fastest algorithm, unknown system.
const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 255];

/// An empty last block.
const LAST_BLOCK: [u8; 2] = [3, 0];

/// Compresses the output of `write` to `output`, and returns `output`. A document of one block needs no other
/// thread.
pub(super) fn compress<W: Write>(
    output: W,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<W> {
    let queue = BlockQueue::default();
    thread::scope(|scope| {
        // Threads that wait for work must learn that there is none, even if this function fails.
        let _closing = QueueCloser(&queue);
        let mut compressor = Compressor::new(scope, &queue, output);
        compressor.output.write_all(&HEADER)?;
        write(&mut compressor)?;
        compressor.finish()
    })
}

/// Receives text, and writes it compressed.
struct Compressor<'scope, 'env, W> {
    scope: &'scope Scope<'scope, 'env>,
    queue: &'env BlockQueue,
    output: W,
    text: Vec<u8>,
    compress: Compress,
    /// The blocks that are not written yet, in order.
    waiting: VecDeque<Receiver<CompressedBlock>>,
    /// The maximum number of other threads that compress.
    threads: usize,
    started: bool,
    crc: Crc,
}

/// A block to compress.
struct BlockJob {
    text: Vec<u8>,
    done: SyncSender<CompressedBlock>,
}

/// A compressed block, and its text's checksum. The text's memory is reused.
struct CompressedBlock {
    compressed: Vec<u8>,
    text: Vec<u8>,
    crc: Crc,
}

impl BlockJob {
    fn run(self, compress: &mut Compress) {
        let Self { text, done } = self;
        let block = CompressedBlock::of(text, compress);
        // The receiver is gone only if writing has failed.
        let _ = done.send(block);
    }
}

impl CompressedBlock {
    fn of(text: Vec<u8>, compress: &mut Compress) -> Self {
        let mut crc = Crc::new();
        crc.update(&text);
        compress.reset();
        let mut compressed = Vec::with_capacity(text.len() / 3 + 64);
        loop {
            let rest = &text[usize::try_from(compress.total_in()).unwrap_or(text.len())..];
            // It can only run out of space, and the next iteration provides more.
            let _ = compress.compress_vec(rest, &mut compressed, FlushCompress::Sync);
            // A flush that has filled the buffer may be incomplete.
            if compress.total_in() == text.len() as u64 && compressed.len() < compressed.capacity() {
                return Self { compressed, text, crc };
            }
            compressed.reserve(compressed.capacity());
        }
    }
}

impl<'scope, 'env, W: Write> Compressor<'scope, 'env, W> {
    fn new(scope: &'scope Scope<'scope, 'env>, queue: &'env BlockQueue, output: W) -> Self {
        let threads = cpu_count().get();
        Self {
            scope,
            queue,
            output,
            text: Vec::with_capacity(BLOCK_SIZE),
            compress: new_compress(),
            waiting: VecDeque::new(),
            threads: threads.saturating_sub(1).max(1),
            started: false,
            crc: Crc::new(),
        }
    }

    fn finish(mut self) -> io::Result<W> {
        let last = CompressedBlock::of(std::mem::take(&mut self.text), &mut self.compress);
        while !self.waiting.is_empty() {
            self.write_oldest()?;
        }
        self.write_block(&last)?;
        self.output.write_all(&LAST_BLOCK)?;
        self.output.write_all(&self.crc.sum().to_le_bytes())?;
        self.output.write_all(&self.crc.amount().to_le_bytes())?;
        Ok(self.output)
    }

    /// Passes the current text to the other threads.
    fn hand_over(&mut self) -> io::Result<()> {
        if !self.started {
            self.started = true;
            for _ in 0..self.threads {
                let queue = self.queue;
                // If no thread can be started, this thread compresses the blocks.
                spawn_helper(self.scope, move || queue.work());
            }
        }
        let (done, block) = mpsc::sync_channel(1);
        self.queue.push(BlockJob { text: std::mem::take(&mut self.text), done });
        self.waiting.push_back(block);
        while self.waiting.len() > 2 * self.threads {
            self.write_oldest()?;
        }
        Ok(())
    }

    /// Writes the oldest block. Until that is ready, it compresses another one.
    fn write_oldest(&mut self) -> io::Result<()> {
        while let Some(oldest) = self.waiting.front() {
            let block = match oldest.try_recv() {
                Err(TryRecvError::Empty) => match self.queue.take() {
                    Some(job) => {
                        job.run(&mut self.compress);
                        continue;
                    }
                    None => oldest.recv().ok(),
                },
                block => block.ok(),
            };
            let Some(block) = block else {
                return Err(io::Error::other("a thread that compresses has ended"));
            };
            self.waiting.pop_front();
            self.write_block(&block)?;
            self.text = block.text;
            self.text.clear();
            return Ok(());
        }
        Ok(())
    }

    fn write_block(&mut self, block: &CompressedBlock) -> io::Result<()> {
        self.crc.combine(&block.crc);
        self.output.write_all(&block.compressed)
    }
}

impl<W: Write> Write for Compressor<'_, '_, W> {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        let taken = text.len().min(BLOCK_SIZE - self.text.len());
        self.text.extend_from_slice(&text[..taken]);
        if self.text.len() == BLOCK_SIZE {
            self.hand_over()?;
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn new_compress() -> Compress {
    Compress::new(Compression::fast(), false)
}

/// The blocks that no thread compresses yet.
#[derive(Default)]
struct BlockQueue {
    state: Mutex<QueueState>,
    changed: Condvar,
}

#[derive(Default)]
struct QueueState {
    jobs: VecDeque<BlockJob>,
    closed: bool,
}

impl BlockQueue {
    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, job: BlockJob) {
        self.lock().jobs.push_back(job);
        self.changed.notify_one();
    }

    fn take(&self) -> Option<BlockJob> {
        self.lock().jobs.pop_front()
    }

    /// Compresses blocks until the queue is closed.
    fn work(&self) {
        let mut compress = new_compress();
        let is_idle = |state: &mut QueueState| state.jobs.is_empty() && !state.closed;
        loop {
            let state = self.changed.wait_while(self.lock(), is_idle);
            let job = state.unwrap_or_else(PoisonError::into_inner).jobs.pop_front();
            match job {
                Some(job) => job.run(&mut compress),
                None => return,
            }
        }
    }
}

/// Closes the queue at the end of its scope.
struct QueueCloser<'a>(&'a BlockQueue);

impl Drop for QueueCloser<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.closed = true;
        // After an error the remaining blocks are not needed.
        state.jobs.clear();
        drop(state);
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use flate2::read::GzDecoder;

    use super::*;

    /// Text that neither repeats soon nor is random.
    fn text(len: usize) -> Vec<u8> {
        let numbers = (0_u64..).map(|number| number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 50);
        let digits = numbers.flat_map(|number| format!("{number},").into_bytes());
        digits.take(len).collect()
    }

    #[test]
    fn what_is_decompressed_is_what_was_written() {
        for len in [0, 1, BLOCK_SIZE - 1, BLOCK_SIZE, BLOCK_SIZE + 1, 11 * BLOCK_SIZE + 77] {
            let text = text(len);
            let compressed = compress(Vec::new(), |compressor| {
                text.chunks(100_003).try_for_each(|chunk| compressor.write_all(chunk))
            });
            let compressed = compressed.unwrap();
            let mut read = Vec::new();
            // A decoder of one member ignores the data after it.
            let mut decoder = GzDecoder::new(compressed.as_slice());
            decoder.read_to_end(&mut read).unwrap();
            assert!(read == text, "{len}");
            assert!(decoder.into_inner().is_empty(), "{len}: one member");
        }
    }

    #[test]
    fn text_that_cannot_be_compressed_is_kept() {
        let mut state = 1_u64;
        let noise = std::iter::repeat_with(|| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as u8
        });
        let noise: Vec<u8> = noise.take(3 * BLOCK_SIZE).collect();
        let compressed = compress(Vec::new(), |compressor| compressor.write_all(&noise)).unwrap();
        let mut read = Vec::new();
        GzDecoder::new(compressed.as_slice()).read_to_end(&mut read).unwrap();
        assert!(read == noise);
    }

    #[test]
    fn an_error_of_the_output_ends_it() {
        struct FullOutput(usize);
        impl Write for FullOutput {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
                Ok(bytes.len())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let text = text(20 * BLOCK_SIZE);
        for room in [0, 5, 1 << 20] {
            let result = compress(FullOutput(room), |compressor| compressor.write_all(&text));
            assert_eq!(result.err().map(|error| error.kind()), Some(io::ErrorKind::StorageFull), "{room}");
        }
    }
}
