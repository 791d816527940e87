//! A delegate: a process of this program that opens and reads files for a recorder, and may wait for ever.

use super::channel;
use super::message::{Answer, Handle, MAX_BYTES, MAX_REQUEST, Request};
use super::silences::Silences;
use crate::event::Pid;
use crate::files::view::MountView;
use rustix::event::Timespec;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{Shutdown, shutdown};
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How often it is checked whether a delegate that has not answered waits.
const CHECK_EVERY: Duration = Duration::from_millis(20);

/// The longest time for one request, however busy the machine is.
const MAX_WAIT: Duration = Duration::from_secs(30);

/// How long a delegate may take to end when it is asked to.
const TO_END: Duration = Duration::from_millis(50);

/// An answer, and the descriptor that came with it.
pub(super) type Received = (Answer, Option<OwnedFd>);

/// What a request is about: a process, and its view of files, if that is known.
pub(super) type Subject = (Pid, Option<MountView>);

/// One delegate.
#[derive(Debug)]
pub(super) struct Delegate {
    /// The user whose processes it is for.
    user: u32,
    socket: OwnedFd,
    /// The room for an answer. Who holds it waits for one.
    buffer: Mutex<Vec<u8>>,
    process: Mutex<Child>,
    /// Whether it gave no answer, and is not asked again.
    is_left: AtomicBool,
    silences: Arc<Silences>,
}

/// Starts a process.
pub type Spawn = fn(&mut Command) -> io::Result<Child>;

impl Delegate {
    /// Starts a delegate. It belongs to no terminal's group, so that only the end of the channel ends it.
    pub(super) fn start(
        (mut program, spawn): (Command, Spawn),
        user: u32,
        silences: Arc<Silences>,
    ) -> io::Result<Self> {
        let (socket, theirs) = channel::pair()?;
        program.stdin(Stdio::from(theirs)).stdout(Stdio::null()).stderr(Stdio::null());
        let process = Mutex::new(spawn(program.current_dir("/").process_group(0))?);
        let buffer = Mutex::new(vec![0; MAX_BYTES + 64]);
        Ok(Self { user, socket, buffer, process, is_left: AtomicBool::new(false), silences })
    }

    /// Whether it is not asked again.
    pub(super) fn is_left(&self) -> bool {
        self.is_left.load(Ordering::Relaxed)
    }

    /// Asks, and waits for the answer, but not for ever. `None` if there is none.
    pub(super) fn ask(&self, subject: Subject, request: &Request) -> Option<Received> {
        let request = request.to_bytes();
        if request.len() > MAX_REQUEST {
            return None;
        }
        let mut buffer = self.buffer.lock().unwrap_or_else(PoisonError::into_inner);
        if self.is_left() {
            return None;
        }
        let received = self.exchange(&request, &mut buffer);
        if received.is_none() {
            self.leave();
            self.silences.note(self.user, subject.0, subject.1);
        }
        received
    }

    fn exchange(&self, request: &[u8], buffer: &mut [u8]) -> Option<Received> {
        channel::send(&self.socket, request, None, false).ok()?;
        if !self.answers() {
            return None;
        }
        let (len, file) = channel::receive(&self.socket, buffer).ok()?;
        Some((Answer::parse(buffer.get(..len)?)?, file))
    }

    /// Waits until it answers. The time counts in which it waits itself, and not that in which it has no CPU.
    fn answers(&self) -> bool {
        let (patience, begun) = (self.silences.patience(), Instant::now());
        let mut waited = Duration::ZERO;
        let mut checked = begun;
        while waited < patience && begun.elapsed() < MAX_WAIT {
            let mut sockets = [PollFd::new(&self.socket, PollFlags::IN)];
            let time = Timespec { tv_sec: 0, tv_nsec: i64::from(CHECK_EVERY.subsec_nanos()) };
            if poll(&mut sockets, Some(&time)).is_ok_and(|ready| ready > 0) {
                return true;
            }
            let now = Instant::now();
            if !self.is_running() {
                waited += now - checked;
            }
            checked = now;
        }
        false
    }

    /// Whether it has work to do, and not something to wait for.
    fn is_running(&self) -> bool {
        let process = self.process.lock().unwrap_or_else(PoisonError::into_inner).id();
        let stat = fs::read(format!("/proc/{process}/stat")).unwrap_or_default();
        // The state comes behind the name, which is in brackets (proc_pid_stat(5)).
        let name_end = stat.iter().rposition(|byte| *byte == b')').unwrap_or(stat.len());
        stat.get(name_end + 2) == Some(&b'R')
    }

    /// Asks no more. It may not end before its file system answers, so nothing waits for that.
    fn leave(&self) {
        self.is_left.store(true, Ordering::Relaxed);
        let _ = shutdown(&self.socket, Shutdown::Both);
        let mut process = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = process.kill();
        let _ = process.try_wait();
    }

    /// Lets it close something that it holds. There is no answer.
    pub(super) fn close(&self, handle: Handle) {
        if !self.is_left() {
            // If it takes nothing now, the file stays open until it ends.
            let _ = channel::send(&self.socket, &Request::Close(handle).to_bytes(), None, false);
        }
    }

    /// Ends it, and waits for that a little. It may have to close files that are withheld.
    pub(super) fn end(&self) {
        let was_left = self.is_left.swap(true, Ordering::Relaxed);
        let _ = shutdown(&self.socket, Shutdown::Both);
        let mut process = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        let begun = Instant::now();
        while !was_left && begun.elapsed() < TO_END {
            if !matches!(process.try_wait(), Ok(None)) {
                return;
            }
            sleep(Duration::from_micros(200));
        }
        let _ = process.kill();
        let _ = process.try_wait();
    }
}

impl Drop for Delegate {
    fn drop(&mut self) {
        self.end();
    }
}
