//! Reading and decompressing on one CPU what is parsed on another.

use std::io::{self, Read};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread;

/// How many bytes are handed over at once.
const CHUNK_SIZE: usize = 256 * 1024;
/// How many chunks may wait to be parsed.
const CHUNKS_AHEAD: usize = 8;

type Chunk = io::Result<Vec<u8>>;

/// Runs `parse` on a thread of its own with what this thread reads from `input`. Where `parse` returns before the end,
/// no more is read.
pub(super) fn parse_ahead<T: Send>(input: impl Read, parse: impl FnOnce(&mut Chunks) -> T + Send) -> T {
    let (sender, receiver) = mpsc::sync_channel(CHUNKS_AHEAD);
    thread::scope(|scope| {
        let parser = scope.spawn(move || parse(&mut Chunks::new(receiver)));
        read_all(input, &sender);
        drop(sender);
        match parser.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// Sends the input until its end or first error, or until nobody wants more.
fn read_all(mut input: impl Read, sender: &SyncSender<Chunk>) {
    loop {
        let mut chunk = Vec::with_capacity(CHUNK_SIZE);
        let read = input.by_ref().take(CHUNK_SIZE as u64).read_to_end(&mut chunk);
        // What came before an error is parsed before it is reported.
        let is_last = chunk.len() < CHUNK_SIZE;
        let is_wanted = sender.send(Ok(chunk)).is_ok();
        if let Err(error) = read {
            // Nobody wants the error if nobody wants the rest.
            let _ = sender.send(Err(error));
            return;
        }
        if is_last || !is_wanted {
            return;
        }
    }
}

/// The chunks as one stream.
pub(super) struct Chunks {
    receiver: Receiver<Chunk>,
    chunk: Vec<u8>,
    position: usize,
}

impl Chunks {
    fn new(receiver: Receiver<Chunk>) -> Self {
        Self { receiver, chunk: Vec::new(), position: 0 }
    }
}

impl Read for Chunks {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        while self.position == self.chunk.len() {
            let Ok(chunk) = self.receiver.recv() else { return Ok(0) };
            (self.chunk, self.position) = (chunk?, 0);
        }
        let read = (&self.chunk[self.position..]).read(room)?;
        self.position += read;
        Ok(read)
    }
}
