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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_parsed_is_what_was_read() {
        for length in [0, 1, CHUNK_SIZE - 1, CHUNK_SIZE, CHUNK_SIZE + 1, 20 * CHUNK_SIZE] {
            let input: Vec<u8> = (0..length).map(|index| (index % 251) as u8).collect();
            let mut output = Vec::new();
            parse_ahead(&*input, |chunks| chunks.read_to_end(&mut output)).unwrap();
            assert!(input == output, "{length}");
        }
    }

    #[test]
    fn input_without_end_is_read_no_longer_than_wanted() {
        let parsed = parse_ahead(io::repeat(7), |chunks| {
            let mut byte = [0];
            chunks.read_exact(&mut byte).map(|()| byte)
        });
        assert_eq!(parsed.unwrap(), [7]);
    }

    #[test]
    fn what_came_before_an_error_is_parsed_first() {
        struct Broken;
        impl Read for Broken {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::ErrorKind::IsADirectory.into())
            }
        }
        let (read, error) = parse_ahead(b"start".chain(Broken), |chunks| {
            let mut start = [0; 5];
            (
                chunks.read_exact(&mut start).map(|()| start),
                chunks.read(&mut [0]).map_err(|error| error.kind()),
            )
        });
        assert_eq!((read.unwrap(), error), (*b"start", Err(io::ErrorKind::IsADirectory)));
    }
}
