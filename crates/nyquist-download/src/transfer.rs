//! Gets one file from the first of several servers that has it, within limits of time and size.

use crate::Observer;
use crate::request::{self, FetchError, RequestEvent};
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Write as _};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use ureq::Agent;

/// The interval of checking whether to continue the download.
const TICK: Duration = Duration::from_millis(100);

/// The data that must arrive within each [`Limits::timeout`].
const MIN_BYTES: u64 = 100 << 10;

/// The number of chunks of a file that may wait to be written.
const WAITING: usize = 4;

/// The limits of a download.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// In each period of this length 100 KiB must arrive, or the file must end. `None`: no minimum speed.
    pub timeout: Option<Duration>,
    /// The maximum time of the whole download.
    pub max_time: Option<Duration>,
    /// The maximum size of a file in bytes.
    pub max_bytes: u64,
}

impl Default for Limits {
    /// 90 seconds for each 100 KiB, and 4 GiB.
    fn default() -> Self {
        Self { timeout: Some(Duration::from_secs(90)), max_time: None, max_bytes: 4 << 30 }
    }
}

/// The reason why a file was not received.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TransferFailure {
    #[error("the server has no such file")]
    NotFound,
    #[error("the download was cancelled")]
    Cancelled,
    #[error("the file is larger than {0} bytes")]
    TooLarge(u64),
    #[error("less than 100 KiB came within {} seconds", .0.as_secs())]
    TooSlow(Duration),
    #[error("the download took longer than {} seconds", .0.as_secs())]
    TooLong(Duration),
    #[error("the server answered with status {0}")]
    Status(u16),
    #[error("the server cannot be reached: {0}")]
    Unreachable(String),
    #[error("the connection failed: {0}")]
    Broken(String),
    #[error("not requested again: {0}")]
    LeftOut(String),
    #[error("cannot write {0}")]
    Write(String),
}

/// Downloads files.
#[derive(Debug)]
pub(crate) struct Client {
    agent: Agent,
    limits: Limits,
    headers: Vec<(String, String)>,
    /// The number of retries after a broken connection.
    retries: u32,
    /// The servers that could not be reached, with the reason. They are not tried again.
    left_out: Mutex<HashMap<String, String>>,
}

/// A file on one of the servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    /// The server.
    pub(crate) server: String,
    /// The full address.
    pub(crate) url: String,
}

/// The outcome of requests to several servers: the index of the one that sent the file, if any, and the
/// others' errors.
#[derive(Debug, Default)]
pub(crate) struct RaceOutcome {
    pub(crate) winner: Option<usize>,
    pub(crate) failures: Vec<(usize, TransferFailure)>,
}

impl Client {
    pub(crate) fn new(limits: Limits, headers: Vec<(String, String)>, retries: u32) -> Self {
        let agent = request::agent(limits.timeout);
        Self { agent, limits, headers, retries, left_out: Mutex::default() }
    }

    /// Requests a file from all servers at once, and writes the first response that contains it.
    pub(crate) fn get(&self, addresses: &[Address], file: &mut File, observer: &dyn Observer) -> RaceOutcome {
        let mut failures = Vec::new();
        let mut open: Vec<usize> = Vec::new();
        for (number, address) in addresses.iter().enumerate() {
            match self.left_out().get(&address.server) {
                Some(reason) => failures.push((number, TransferFailure::LeftOut(reason.clone()))),
                None => open.push(number),
            }
        }
        for attempt in 0..=self.retries {
            let race = self.race(addresses, &open, file, observer);
            if race.winner.is_some() {
                return RaceOutcome { failures, ..race };
            }
            let is_broken =
                |(_, failure): &(usize, TransferFailure)| matches!(failure, TransferFailure::Broken(_));
            let (broken, others): (Vec<_>, Vec<_>) = race.failures.into_iter().partition(is_broken);
            failures.extend(others);
            open = broken.iter().map(|(number, _)| *number).collect();
            if open.is_empty() {
                break;
            }
            if attempt == self.retries {
                failures.extend(broken);
            }
        }
        for (number, failure) in &failures {
            if let TransferFailure::Unreachable(_) | TransferFailure::TooSlow(_) = failure {
                self.left_out().insert(addresses[*number].server.clone(), failure.to_string());
            }
        }
        RaceOutcome { winner: None, failures }
    }

    fn left_out(&self) -> std::sync::MutexGuard<'_, HashMap<String, String>> {
        self.left_out.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn race(
        &self,
        addresses: &[Address],
        open: &[usize],
        file: &mut File,
        observer: &dyn Observer,
    ) -> RaceOutcome {
        let url = |number: usize| addresses.get(number).map_or("", |address| &*address.url);
        let mut shown = open.first().copied().unwrap_or_default();
        let mut transfer = Transfer::start(self, addresses, open);
        let result = transfer.run(file, &mut |number, bytes, total| {
            if number != shown {
                observer.ended(url(shown));
                shown = number;
            }
            observer.progress(url(number), bytes, total);
            observer.is_cancelled()
        });
        observer.ended(url(shown));
        let mut race = RaceOutcome { winner: None, failures: transfer.failures };
        match result {
            Ok(winner) => race.winner = Some(winner),
            Err(Some(failure)) => {
                let failed = |number: &usize| race.failures.iter().any(|(known, _)| known == number);
                let rest: Vec<_> = open.iter().copied().filter(|number| !failed(number)).collect();
                race.failures.extend(rest.into_iter().map(|number| (number, failure.clone())));
            }
            Err(None) => {}
        }
        race
    }

    fn failure(&self, denied: FetchError) -> TransferFailure {
        match denied {
            FetchError::NotFound => TransferFailure::NotFound,
            FetchError::TooLarge => TransferFailure::TooLarge(self.limits.max_bytes),
            FetchError::Status(status) => TransferFailure::Status(status),
            FetchError::Unreachable(reason) => TransferFailure::Unreachable(reason),
            FetchError::Broken(reason) => TransferFailure::Broken(reason),
        }
    }
}

/// The requests of one file from several servers, until one of them has sent it.
struct Transfer<'a> {
    client: &'a Client,
    /// The numbers of the servers.
    servers: &'a [usize],
    events: Receiver<(usize, RequestEvent)>,
    /// The requests without a response, by their servers. A message lets a request receive the file.
    waiting: HashMap<usize, SyncSender<()>>,
    current: Option<SendingServer>,
    /// The number of bytes of the file so far.
    received: u64,
    failures: Vec<(usize, TransferFailure)>,
}

/// The server that sends the file.
struct SendingServer {
    number: usize,
    /// The size of the file, if the server has stated it.
    total: Option<u64>,
    /// The request ends when this is dropped.
    _go: SyncSender<()>,
}

impl<'a> Transfer<'a> {
    fn start(client: &'a Client, addresses: &[Address], servers: &'a [usize]) -> Self {
        let (sender, events) = sync_channel(WAITING);
        let request = |number: usize| {
            let url = &addresses[number].url;
            (number, request::start(&client.agent, url, &client.headers, number, sender.clone()))
        };
        let waiting = servers.iter().copied().map(request).collect();
        Self { client, servers, events, waiting, current: None, received: 0, failures: Vec::new() }
    }

    /// Receives the file, and returns the number of its server. The error applies to all remaining servers;
    /// `None` if each server has failed separately.
    fn run(
        &mut self,
        file: &mut File,
        shall_end: &mut dyn FnMut(usize, u64, Option<u64>) -> bool,
    ) -> Result<usize, Option<TransferFailure>> {
        let mut pace = Pace::new(self.client.limits);
        restart(file)?;
        loop {
            let event = self.events.recv_timeout(TICK);
            let Some((number, total)) = self.shown_server() else { return Err(None) };
            if pace.is_tick() && shall_end(number, self.received, total) {
                return Err(Some(TransferFailure::Cancelled));
            }
            pace.check(self.received)?;
            match event {
                Ok((number, RequestEvent::Found(size))) => self.choose(number, size),
                Ok((number, RequestEvent::Bytes(bytes))) => self.append(number, &bytes, file)?,
                Ok((number, RequestEvent::End)) => return Ok(number),
                Ok((number, RequestEvent::Failed(denied))) => self.note_refusal(number, denied)?,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Some(TransferFailure::Broken("no answer".to_owned())));
                }
            }
            if self.current.is_none() && self.waiting.is_empty() {
                return Err(None);
            }
        }
    }

    /// The server whose progress is shown, and the file's size if it is known. `None` without servers.
    fn shown_server(&self) -> Option<(usize, Option<u64>)> {
        match &self.current {
            Some(sending) => Some((sending.number, sending.total)),
            None => self.servers.first().map(|first| (*first, None)),
        }
    }

    /// Chooses a server that has the file, if it is the first one.
    fn choose(&mut self, number: usize, size: Option<u64>) {
        let Some(go) = self.waiting.remove(&number).filter(|_| self.current.is_none()) else { return };
        let max_bytes = self.client.limits.max_bytes;
        if size.is_some_and(|size| size > max_bytes) {
            self.failures.push((number, TransferFailure::TooLarge(max_bytes)));
            return;
        }
        // The other requests are abandoned. They end when they find that no caller waits.
        self.waiting.clear();
        let _ = go.send(());
        self.current = Some(SendingServer { number, total: size, _go: go });
    }

    fn append(
        &mut self,
        number: usize,
        bytes: &[u8],
        file: &mut File,
    ) -> Result<(), Option<TransferFailure>> {
        let max_bytes = self.client.limits.max_bytes;
        self.received += bytes.len() as u64;
        if self.received > max_bytes {
            self.failures.push((number, TransferFailure::TooLarge(max_bytes)));
            return Err(None);
        }
        write(file, bytes)
    }

    /// Notes that a server does not send the file. Fails if it had begun to.
    fn note_refusal(&mut self, number: usize, denied: FetchError) -> Result<(), Option<TransferFailure>> {
        let was_current = self.current.as_ref().is_some_and(|sending| sending.number == number);
        if was_current || self.waiting.remove(&number).is_some() {
            self.failures.push((number, self.client.failure(denied)));
        }
        if was_current { Err(None) } else { Ok(()) }
    }
}

fn restart(file: &mut File) -> Result<(), Option<TransferFailure>> {
    use io::Seek as _;
    let restarted = file.set_len(0).and_then(|()| file.rewind());
    restarted.map_err(|error| Some(TransferFailure::Write(error.to_string())))
}

fn write(file: &mut File, bytes: &[u8]) -> Result<(), Option<TransferFailure>> {
    file.write_all(bytes).map_err(|error| Some(TransferFailure::Write(error.to_string())))
}

/// Measures the speed of a download.
struct Pace {
    limits: Limits,
    start: Instant,
    last_tick: Option<Instant>,
    stretch: Instant,
    /// The number of bytes at the start of the period.
    before: u64,
}

impl Pace {
    fn new(limits: Limits) -> Self {
        let start = Instant::now();
        Self { limits, start, last_tick: None, stretch: start, before: 0 }
    }

    /// Whether it is time to report progress.
    fn is_tick(&mut self) -> bool {
        let is_due = self.last_tick.is_none_or(|last| last.elapsed() >= TICK);
        if is_due {
            self.last_tick = Some(Instant::now());
        }
        is_due
    }

    fn check(&mut self, received: u64) -> Result<(), Option<TransferFailure>> {
        if let Some(limit) = self.limits.max_time.filter(|limit| self.start.elapsed() > *limit) {
            return Err(Some(TransferFailure::TooLong(limit)));
        }
        if let Some(limit) = self.limits.timeout.filter(|limit| self.stretch.elapsed() > *limit) {
            if received.saturating_sub(self.before) < MIN_BYTES {
                return Err(Some(TransferFailure::TooSlow(limit)));
            }
            (self.stretch, self.before) = (Instant::now(), received);
        }
        Ok(())
    }
}
