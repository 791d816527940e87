//! Reads and decompresses on one CPU while another parses.

use std::io::{self, Read};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::sync::{Mutex, PoisonError};
use std::thread;

use nyquist_resources::spawn_helper;

/// The number of bytes in one chunk.
const CHUNK_SIZE: usize = 256 * 1024;
/// The number of chunks that may wait for the parser.
const CHUNKS_AHEAD: usize = 8;

type ReadResult = io::Result<Vec<u8>>;

/// Runs `parse` on a separate thread with the data that this thread reads from `input`. If `parse` returns
/// before the end, reading stops. If no thread can be started, `parse` reads directly.
pub(super) fn parse_ahead<T: Send>(
    input: impl Read,
    parse: impl FnOnce(&mut ChunkReader<'_>) -> T + Send,
) -> T {
    // If the thread does not start, its closure is dropped.
    let parse = Mutex::new(Some(parse));
    let take = || parse.lock().unwrap_or_else(PoisonError::into_inner).take();
    let (sender, receiver) = mpsc::sync_channel(CHUNKS_AHEAD);
    let parsed = thread::scope(|scope| {
        let parse = move || take().map(|parse| parse(&mut ChunkReader::of(InputSource::Ahead(receiver))));
        let Some(parser) = spawn_helper(scope, parse) else {
            return take().map(|parse| parse(&mut ChunkReader::of(InputSource::Input(Box::new(input)))));
        };
        read_all(input, &sender);
        drop(sender);
        parser.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    let Some(parsed) = parsed else { unreachable!("the thread, or else the caller, has taken it") };
    parsed
}

/// Sends the input until its end or first error, or until the receiver is gone.
fn read_all(mut input: impl Read, sender: &SyncSender<ReadResult>) {
    loop {
        let mut chunk = Vec::with_capacity(CHUNK_SIZE);
        let read = input.by_ref().take(CHUNK_SIZE as u64).read_to_end(&mut chunk);
        // Data before an error is parsed before the error is reported.
        let is_last = chunk.len() < CHUNK_SIZE;
        let is_requested = sender.send(Ok(chunk)).is_ok();
        if let Err(error) = read {
            // If the receiver is gone, the error is not needed.
            let _ = sender.send(Err(error));
            return;
        }
        if is_last || !is_requested {
            return;
        }
    }
}

/// The chunks as one stream.
pub(super) struct ChunkReader<'i> {
    source: InputSource<'i>,
    chunk: Vec<u8>,
    position: usize,
}

/// The source of chunks.
enum InputSource<'i> {
    /// Another thread.
    Ahead(Receiver<ReadResult>),
    /// The input itself.
    Input(Box<dyn Read + 'i>),
}

impl InputSource<'_> {
    /// The next chunk; `None` at the end.
    fn next(&mut self) -> Option<ReadResult> {
        match self {
            Self::Ahead(receiver) => receiver.recv().ok(),
            Self::Input(input) => {
                let mut chunk = vec![0; CHUNK_SIZE];
                let read = retry_on_intr(|| input.read(&mut chunk));
                read.map(|size| (size > 0).then(|| chunk[..size].to_vec())).transpose()
            }
        }
    }
}

/// Repeats a read that a signal has interrupted.
fn retry_on_intr(mut read: impl FnMut() -> io::Result<usize>) -> io::Result<usize> {
    loop {
        match read() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

impl<'i> ChunkReader<'i> {
    fn of(source: InputSource<'i>) -> Self {
        Self { source, chunk: Vec::new(), position: 0 }
    }
}

impl Read for ChunkReader<'_> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        while self.position == self.chunk.len() {
            let Some(chunk) = self.source.next() else { return Ok(0) };
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
    fn without_a_thread_the_input_is_read_as_it_is() {
        let input: Vec<u8> = (0..=3 * CHUNK_SIZE).map(|index| (index % 251) as u8).collect();
        let (mut output, mut chunks) = (Vec::new(), ChunkReader::of(InputSource::Input(Box::new(&*input))));
        chunks.read_to_end(&mut output).unwrap();
        assert!(input == output);
    }

    #[test]
    fn endless_input_is_read_no_longer_than_wanted() {
        let parsed = parse_ahead(io::repeat(7), |chunks| {
            let mut byte = [0];
            chunks.read_exact(&mut byte).map(|()| byte)
        });
        assert_eq!(parsed.unwrap(), [7]);
    }

    #[test]
    fn what_came_before_an_error_is_parsed_first() {
        struct BrokenInput;
        impl Read for BrokenInput {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::ErrorKind::IsADirectory.into())
            }
        }
        let (read, error) = parse_ahead(b"start".chain(BrokenInput), |chunks| {
            let mut start = [0; 5];
            (
                chunks.read_exact(&mut start).map(|()| start),
                chunks.read(&mut [0]).map_err(|error| error.kind()),
            )
        });
        assert_eq!((read.unwrap(), error), (*b"start", Err(io::ErrorKind::IsADirectory)));
    }
}
