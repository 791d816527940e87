//! Sends what waits for a server: a bounded queue, and a thread that tries again by the rule of the protocol. Nothing
//! else waits for the server.

use super::counts::Counts;
use super::headers::Headers;
use super::server::{Payload, Server, ServerKind};
use crate::failure::{Failure, without_error_numbers};
use crate::identity;
use crate::printer::Printer;
use crate::system::users::give_up_capabilities;
use crate::text::one_line;
use crate::utc_date;
use nyquist_download::{Answer, NoAnswer, Sender};
use nyquist_formats::otlp;
use std::collections::VecDeque;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// What may wait: pieces and bytes. Beyond it, the oldest are lost.
const MAX_PIECES: usize = 4096;
const MAX_BYTES: usize = 32 << 20;

/// How often a piece is tried, and the pauses between.
const MAX_TRIES: u32 = 10;
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_mins(1);

/// Receivers refuse what is older.
const MAX_AGE: Duration = Duration::from_hours(1);

/// A queue with its thread.
#[derive(Debug)]
pub(super) struct Delivery {
    queue: Arc<Queue>,
}

#[derive(Debug, Default)]
struct Queue {
    state: Mutex<QueueState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct QueueState {
    pieces: VecDeque<Piece>,
    bytes: usize,
    /// When the last of it is given up.
    closing: Option<Instant>,
    /// Whether a piece was taken out and is being sent.
    is_sending: bool,
    /// Whether the thread has ended.
    is_done: bool,
}

#[derive(Debug)]
struct Piece {
    payload: Payload,
    bytes: usize,
    made: SystemTime,
    /// When it may be sent, so that not all hosts send at once.
    due: Instant,
}

/// What follows from an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Verdict {
    Taken,
    /// Later, after the pause that the server has asked for.
    Again(Option<Duration>, String),
    /// The server has no such address.
    NoSuchPath(String),
    Refused(String),
}

impl Delivery {
    /// Starts the thread.
    pub(super) fn start(
        server: Server,
        sender: Sender,
        headers: Headers,
        (counts, printer): (Arc<Counts>, Printer),
    ) -> Result<Self, Failure> {
        let queue = Arc::new(Queue::default());
        let mut courier = Courier {
            server,
            sender,
            headers,
            counts,
            printer,
            queue: Arc::clone(&queue),
            is_old: false,
            last_reason: String::new(),
        };
        let run = move || {
            // What talks to others has no rights of the recorder's.
            let _ = give_up_capabilities();
            if identity::as_invoking_user(|| courier.run()).is_err() {
                courier.queue.end(&courier.counts);
            }
        };
        let thread = thread::Builder::new().name("agent-sender".to_owned()).spawn(run);
        thread.map_err(|error| Failure::because("no thread can be started", &error))?;
        Ok(Self { queue })
    }

    /// Adds what is to be sent, at the earliest after `delay`.
    pub(super) fn add(&self, payloads: Vec<Payload>, delay: Duration, counts: &Counts) {
        let mut state = self.queue.lock();
        for payload in payloads {
            let bytes = payload.bytes();
            state.bytes += bytes;
            state.pieces.push_back(Piece {
                payload,
                bytes,
                made: SystemTime::now(),
                due: Instant::now() + delay,
            });
            while state.pieces.len() > MAX_PIECES || state.bytes > MAX_BYTES {
                let Some(oldest) = state.pieces.pop_front() else { break };
                state.bytes -= oldest.bytes;
                Counts::add(&counts.lost, 1);
            }
        }
        self.queue.changed.notify_all();
    }

    /// Sends what is there without delay, and ends by then.
    pub(super) fn close(&self, until: Instant) {
        self.queue.lock().closing = Some(until);
        self.queue.changed.notify_all();
    }

    /// Ends, and leaves what waits to another one for the same server.
    pub(super) fn leave_to(&self, other: &Self, until: Instant) {
        let (pieces, bytes) = {
            let mut state = self.queue.lock();
            (std::mem::take(&mut state.pieces), std::mem::take(&mut state.bytes))
        };
        {
            let mut state = other.queue.lock();
            state.bytes += bytes;
            // These are older, and no more than what may wait: the other one is new.
            state.pieces.extend(pieces);
        }
        other.queue.changed.notify_all();
        self.close(until);
    }

    /// Waits until all was sent, or until the time of closing. What was not sent by then is lost.
    pub(super) fn wait(&self, counts: &Counts) {
        let mut state = self.queue.lock();
        while !state.is_done {
            let Some(left) = state.closing.and_then(|until| until.checked_duration_since(Instant::now()))
            else {
                break;
            };
            state = self.queue.wait(state, left);
        }
        drop(state);
        self.queue.end(counts);
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'q>(&self, state: MutexGuard<'q, QueueState>, longest: Duration) -> MutexGuard<'q, QueueState> {
        self.changed.wait_timeout(state, longest).unwrap_or_else(PoisonError::into_inner).0
    }

    /// The next piece when it may be sent. `None` if the queue is closed, and empty or late.
    fn next(&self) -> Option<Piece> {
        let mut state = self.lock();
        loop {
            let now = Instant::now();
            if state.closing.is_some_and(|until| until <= now) {
                return None;
            }
            let due = state.pieces.front().map(|piece| piece.due.saturating_duration_since(now));
            match due {
                None if state.closing.is_some() => return None,
                Some(left) if left.is_zero() || state.closing.is_some() => break,
                left => state = self.wait(state, left.unwrap_or(MAX_PAUSE)),
            }
        }
        let piece = state.pieces.pop_front()?;
        state.bytes -= piece.bytes;
        state.is_sending = true;
        Some(piece)
    }

    /// The piece that is being sent has come to its end, unless it was given up before.
    fn settle(&self, counter: &AtomicU64) {
        if std::mem::take(&mut self.lock().is_sending) {
            Counts::add(counter, 1);
        }
    }

    /// Nothing more is taken. What is left is lost.
    fn end(&self, counts: &Counts) {
        let mut state = self.lock();
        let left = state.pieces.len() as u64 + u64::from(state.is_sending);
        (state.is_sending, state.is_done, state.bytes) = (false, true, 0);
        state.pieces.clear();
        Counts::add(&counts.lost, left);
        self.changed.notify_all();
    }

    /// Waits, unless the queue is given up before that. Returns whether it waited.
    fn pause(&self, pause: Duration) -> bool {
        let until = Instant::now() + pause;
        let mut state = self.lock();
        while state.closing.is_none_or(|end| until < end) {
            let Some(left) = until.checked_duration_since(Instant::now()) else { return true };
            state = self.wait(state, left);
        }
        false
    }
}

impl Payload {
    fn bytes(&self) -> usize {
        match self {
            Self::Otlp(body) => body.len(),
            Self::Series { series, .. } => series.files.iter().map(Vec::len).sum(),
        }
    }
}

/// Carries the pieces of a queue to a server.
struct Courier {
    server: Server,
    sender: Sender,
    headers: Headers,
    counts: Arc<Counts>,
    printer: Printer,
    queue: Arc<Queue>,
    /// Whether the server is a Pyroscope without the push API.
    is_old: bool,
    /// The last reason that was printed.
    last_reason: String,
}

impl Courier {
    fn run(&mut self) {
        while let Some(piece) = self.queue.next() {
            self.carry(&piece);
        }
        self.queue.end(&self.counts);
    }

    fn carry(&mut self, piece: &Piece) {
        let mut pause = FIRST_PAUSE;
        for _ in 0..MAX_TRIES {
            if piece.made.elapsed().is_ok_and(|age| age > MAX_AGE) {
                break;
            }
            match self.send(&piece.payload) {
                Verdict::Taken => {
                    self.queue.settle(&self.counts.sent);
                    self.say("");
                    return;
                }
                Verdict::NoSuchPath(reason) => {
                    self.is_old = !self.is_old;
                    if !self.is_old {
                        // It has neither. The next piece begins again with the new one.
                        self.say(&reason);
                        break;
                    }
                }
                Verdict::Refused(reason) => {
                    self.say(&reason);
                    break;
                }
                Verdict::Again(requested, reason) => {
                    self.say(&reason);
                    Counts::add(&self.counts.retried, 1);
                    if !self.queue.pause(requested.unwrap_or(pause).min(MAX_PAUSE)) {
                        break;
                    }
                    pause = (pause * 2).min(MAX_PAUSE);
                }
            }
        }
        self.queue.settle(&self.counts.lost);
    }

    /// Sends all requests of a payload, until one is not taken.
    fn send(&self, payload: &Payload) -> Verdict {
        for request in self.server.requests(payload, self.is_old) {
            let headers = request.headers.and(&self.headers);
            Counts::add(&self.counts.bytes, request.body.len() as u64);
            let answer = self.sender.post(&request.url, &headers, &request.body);
            match verdict(self.server.kind, answer) {
                Verdict::Taken => {}
                other => return other,
            }
        }
        Verdict::Taken
    }

    /// Prints a reason if it is another one than before.
    fn say(&mut self, reason: &str) {
        if self.last_reason != reason {
            let url = &self.server.url;
            if reason.is_empty() {
                self.printer.say(format_args!("{url} takes profiles again"));
            } else {
                self.printer.warn(format_args!("{url}: {reason}"));
            }
            reason.clone_into(&mut self.last_reason);
        }
    }
}

/// What follows from an answer, by the rule of the protocol.
fn verdict(kind: ServerKind, answer: Result<Answer, NoAnswer>) -> Verdict {
    let answer = match answer {
        Ok(answer) => answer,
        Err(error) => {
            return Verdict::Again(None, one_line(&without_error_numbers(error.to_string())).into_owned());
        }
    };
    let status = answer.status;
    let may_come_again = match kind {
        // Other statuses must not be tried again.
        ServerKind::Otlp => matches!(status, 429 | 502 | 503 | 504),
        ServerKind::Pyroscope => matches!(status, 408 | 429 | 500..=599),
    };
    match status {
        200..=299 if kind == ServerKind::Otlp => match otlp::rejected(&answer.body) {
            Some(reason) => {
                Verdict::Refused(format!("it has rejected profiles: {}", shown_text(reason.as_bytes())))
            }
            None => Verdict::Taken,
        },
        200..=299 => Verdict::Taken,
        404 | 405 if kind == ServerKind::Pyroscope => {
            Verdict::NoSuchPath(format!("status {status}: {}", shown_text(&answer.body)))
        }
        _ if may_come_again => {
            let requested = answer.retry_after.as_deref().and_then(pause_of);
            Verdict::Again(requested, format!("status {status}: {}", shown_text(&answer.body)))
        }
        _ => Verdict::Refused(format!("status {status}: {}", shown_text(&answer.body))),
    }
}

/// The beginning of what a server says.
fn shown_text(body: &[u8]) -> String {
    const SHOWN: usize = 200;
    let text = String::from_utf8_lossy(&body[..body.len().min(SHOWN)]);
    one_line(text.trim()).to_string()
}

/// The pause of `Retry-After`: seconds, or a date.
fn pause_of(text: &str) -> Option<Duration> {
    let seconds = text.trim().parse().ok().or_else(|| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?.as_secs();
        Some(utc_date::of_http(text.trim())?.saturating_sub(now))
    });
    seconds.map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    fn answer(status: u16, retry_after: Option<&str>) -> Answer {
        Answer { status, retry_after: retry_after.map(str::to_owned), body: b"why\x1b".to_vec() }
    }

    fn is_again(kind: ServerKind, status: u16) -> bool {
        matches!(verdict(kind, Ok(answer(status, None))), Verdict::Again(..))
    }

    #[test]
    fn each_protocol_has_its_rule() {
        for status in [429, 502, 503, 504] {
            assert!(is_again(ServerKind::Otlp, status) && is_again(ServerKind::Pyroscope, status));
        }
        assert!(!is_again(ServerKind::Otlp, 500) && is_again(ServerKind::Pyroscope, 500));
        for status in [400, 401, 413, 302] {
            assert!(!is_again(ServerKind::Otlp, status) && !is_again(ServerKind::Pyroscope, status));
        }
        let verdict = |kind| verdict(kind, Ok(answer(404, None)));
        assert!(matches!(verdict(ServerKind::Pyroscope), Verdict::NoSuchPath(_)));
        assert!(matches!(verdict(ServerKind::Otlp), Verdict::Refused(_)));
    }

    #[test]
    fn a_server_asks_for_a_pause() {
        let pause = |text| match verdict(ServerKind::Otlp, Ok(answer(429, Some(text)))) {
            Verdict::Again(pause, reason) => {
                assert!(!reason.contains('\x1b'), "{reason}");
                pause
            }
            other => panic!("{other:?}"),
        };
        assert_eq!(pause("7"), Some(Duration::from_secs(7)));
        assert_eq!(pause("Wed, 21 Oct 2015 07:28:00 GMT"), Some(Duration::ZERO));
        assert_eq!(pause("soon"), None);
    }

    #[test]
    fn a_full_queue_loses_the_oldest() {
        let delivery = Delivery { queue: Arc::default() };
        let counts = Counts::default();
        let payload = || Payload::Otlp(vec![0; MAX_BYTES / 4]);
        delivery.add((0..6).map(|_| payload()).collect(), Duration::ZERO, &counts);
        let lost = || counts.lost.load(Ordering::Relaxed);
        assert_eq!(lost(), 2);
        assert_eq!(delivery.queue.lock().pieces.len(), 4);
        assert!(delivery.queue.next().is_some());
        delivery.close(Instant::now());
        assert!(delivery.queue.next().is_none());
        delivery.wait(&counts);
        // With the one that was being sent, which is counted once.
        assert_eq!(lost(), 6);
        delivery.queue.settle(&counts.sent);
        assert_eq!((lost(), counts.sent.load(Ordering::Relaxed)), (6, 0));
    }

    #[test]
    fn what_waits_is_left_to_the_next_one() {
        let (old, new) = (Delivery { queue: Arc::default() }, Delivery { queue: Arc::default() });
        let counts = Counts::default();
        old.add(vec![Payload::Otlp(vec![0; 7]), Payload::Otlp(vec![1])], Duration::ZERO, &counts);
        assert!(old.queue.next().is_some());
        old.leave_to(&new, Instant::now());
        old.wait(&counts);
        assert_eq!((counts.lost.load(Ordering::Relaxed), new.queue.lock().bytes), (1, 1));
        assert!(new.queue.next().is_some());
    }

    #[test]
    fn a_closed_queue_tries_while_there_is_time() {
        let delivery = Delivery { queue: Arc::default() };
        delivery.close(Instant::now() + Duration::from_mins(1));
        assert!(delivery.queue.pause(Duration::ZERO) && delivery.queue.pause(Duration::from_millis(1)));
        assert!(!delivery.queue.pause(MAX_PAUSE * 2));
    }
}
