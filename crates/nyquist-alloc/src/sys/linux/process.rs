//! Whether the process is recorded, and where: decided at its first allocation, and anew after a fork.

use super::calls;
use super::shared::SharedFile;
use crate::protocol::{DEFAULT_RATE, EXTENSION, FOLDER_VARIABLE, RATE_VARIABLE};
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicI64, AtomicPtr, AtomicU32, AtomicU64, Ordering};

/// Not decided yet.
const UNKNOWN: u32 = 0;
/// Allocations are recorded.
const ON: u32 = 1;
/// They are not, and never will be.
const OFF: u32 = 2;

/// How often a thread looks whether the lock is free before it sleeps.
const MAX_TURNS: u32 = 512;

/// How long it sleeps at a time.
const LOCK_PAUSE_NS: u64 = 100_000;

/// The most bytes of the folder's path.
const MAX_PATH: usize = 256;

/// The bytes for a file's name behind its folder.
const NAME: usize = 40;

static STATE: AtomicU32 = AtomicU32::new(UNKNOWN);
/// A word that a fork sets to zero: a child process has its own memory, and must not write to its parent's file.
static ALIVE: AtomicPtr<AtomicU32> = AtomicPtr::new(core::ptr::null_mut());
/// The number of the recording: a child process has another.
static RECORDING: AtomicU32 = AtomicU32::new(1);
/// The mean distance of samples.
static RATE: AtomicU64 = AtomicU64::new(DEFAULT_RATE);
/// Held while the process prepares, or writes a record.
static LOCK: AtomicU32 = AtomicU32::new(0);
/// The bytes that the process has allocated and not freed, without what threads have not added yet.
static LIVE: AtomicI64 = AtomicI64::new(0);
static FILE: AtomicPtr<u8> = AtomicPtr::new(core::ptr::null_mut());
static FOLDER: Folder = Folder(UnsafeCell::new([0; MAX_PATH]));

/// The folder of the files. Written once, before the state is `ON`.
struct Folder(UnsafeCell<[u8; MAX_PATH]>);

// SAFETY: it is written under the lock, before the state that makes others read it.
unsafe impl Sync for Folder {}

/// Whether nothing is recorded in this process.
#[inline(always)]
pub(in crate::sys) fn is_off() -> bool {
    STATE.load(Ordering::Relaxed) == OFF
}

/// Whether this very process is recorded, and not one that it was forked from.
#[inline(always)]
pub(super) fn is_on() -> bool {
    let alive = ALIVE.load(Ordering::Acquire);
    // SAFETY: the page is never unmapped.
    !alive.is_null() && unsafe { (*alive).load(Ordering::Relaxed) } != 0
}

/// The number of the recording.
pub(super) fn recording() -> u32 {
    RECORDING.load(Ordering::Relaxed)
}

/// The mean distance of samples in bytes.
#[inline(always)]
pub(super) fn rate() -> u64 {
    RATE.load(Ordering::Relaxed)
}

/// Whether each allocation is recorded.
#[inline(always)]
pub(super) fn records_each() -> bool {
    rate() <= 1
}

/// Adds to the bytes that are allocated, and returns them.
pub(super) fn add_live(bytes: i64) -> i64 {
    LIVE.fetch_add(bytes, Ordering::Relaxed).wrapping_add(bytes)
}

/// The process's file, if it has one.
#[inline(always)]
pub(super) fn file() -> Option<SharedFile> {
    SharedFile::at(FILE.load(Ordering::Acquire))
}

/// Ends recording for good, because the recorder does not read any more.
pub(super) fn turn_off() {
    STATE.store(OFF, Ordering::Relaxed);
}

/// Decides whether the process is recorded. Returns whether it is.
#[cold]
pub(super) fn prepare() -> bool {
    if is_off() {
        return false;
    }
    if is_on() {
        return true;
    }
    let has_begun = STATE.load(Ordering::Relaxed) == ON;
    if has_begun {
        // This process was forked. It has one thread, and another may have had the lock at the fork.
        LOCK.store(0, Ordering::Relaxed);
        FILE.store(core::ptr::null_mut(), Ordering::Relaxed);
        RECORDING.fetch_add(1, Ordering::Relaxed);
    }
    lock();
    let is_on = is_on() || begin(has_begun);
    STATE.store(if is_on { ON } else { OFF }, Ordering::Release);
    unlock();
    is_on
}

/// Finds out whether a recorder listens, and prepares for forks.
fn begin(has_begun: bool) -> bool {
    if has_begun {
        let alive = ALIVE.load(Ordering::Relaxed);
        // SAFETY: the page is never unmapped.
        unsafe { (*alive).store(1, Ordering::Relaxed) };
        return true;
    }
    let mut folder = [0; MAX_PATH];
    let mut rate = [0; 24];
    let Some(len) = variable(FOLDER_VARIABLE.as_bytes(), &mut folder).filter(|len| *len > 0) else {
        return false;
    };
    if len + NAME > MAX_PATH {
        return false;
    }
    if let Some(len) = variable(RATE_VARIABLE.as_bytes(), &mut rate) {
        let digits = rate.iter().take(len).filter(|byte| byte.is_ascii_digit());
        let number = digits
            .fold(0_u64, |number, digit| number.saturating_mul(10).saturating_add(u64::from(digit - b'0')));
        RATE.store(number.max(1), Ordering::Relaxed);
    }
    let Some(page) = calls::map(None, calls::PAGE) else { return false };
    // A kernel without this cannot tell children from their parents.
    if !calls::wipe_on_fork(page) {
        return false;
    }
    let alive = page.cast::<AtomicU32>();
    // SAFETY: the page was mapped just now; nobody else reads the folder before the page is known.
    unsafe {
        *FOLDER.0.get() = folder;
        (*alive).store(1, Ordering::Relaxed);
    }
    ALIVE.store(alive, Ordering::Release);
    true
}

/// The process's file, which is made now if it has none. Called with the lock held.
pub(super) fn open_file() -> Option<SharedFile> {
    if let Some(file) = file() {
        return Some(file);
    }
    // SAFETY: it was written before recording began.
    let folder = unsafe { &*FOLDER.0.get() };
    let len = folder.iter().position(|byte| *byte == 0)?;
    let process = calls::process_id();
    // A process that becomes another program has a second file.
    for number in 0..64 {
        let mut path = [0_u8; MAX_PATH + NAME];
        path.get_mut(..len)?.copy_from_slice(folder.get(..len)?);
        let mut at = len;
        put(&mut path, &mut at, b"/");
        put_number(&mut path, &mut at, process);
        put(&mut path, &mut at, b"-");
        put_number(&mut path, &mut at, number);
        put(&mut path, &mut at, b".");
        put(&mut path, &mut at, EXTENSION.as_bytes());
        let len = SharedFile::len_at(rate());
        match calls::new_file(path.get(..=at)?, len) {
            calls::NewFile::Made(file) => {
                let Some(made) = SharedFile::map(file, len, process, rate()) else { break };
                FILE.store(made.address(), Ordering::Release);
                return Some(made);
            }
            calls::NewFile::Exists => {}
            calls::NewFile::NoSpace => break,
        }
    }
    turn_off();
    None
}

fn put(path: &mut [u8], at: &mut usize, text: &[u8]) {
    for byte in text {
        if let Some(place) = path.get_mut(*at) {
            *place = *byte;
            *at += 1;
        }
    }
}

fn put_number(path: &mut [u8], at: &mut usize, number: u32) {
    let mut digits = [0_u8; 10];
    let (mut rest, mut first) = (number, digits.len());
    loop {
        first -= 1;
        if let Some(digit) = digits.get_mut(first) {
            *digit = b'0' + (rest % 10) as u8;
        }
        rest /= 10;
        if rest == 0 || first == 0 {
            break;
        }
    }
    put(path, at, digits.get(first..).unwrap_or(&[]));
}

/// Takes the lock. Whoever has it allocates nothing, and waits for the recorder only where each allocation is recorded.
pub(super) fn lock() {
    let mut turns = 0_u32;
    while LOCK.compare_exchange_weak(0, 1, Ordering::Acquire, Ordering::Relaxed).is_err() {
        turns = turns.saturating_add(1);
        if turns > MAX_TURNS {
            // Its holder waits for the recorder.
            calls::sleep_ns(LOCK_PAUSE_NS);
        } else if turns % 64 == 0 {
            calls::yield_now();
        } else {
            core::hint::spin_loop();
        }
    }
}

/// Gives the lock back.
pub(super) fn unlock() {
    LOCK.store(0, Ordering::Release);
}

/// Reads a variable of the environment that the process began with, and returns its length. The C library may
/// not know its environment yet. A value that does not fit counts as none.
fn variable(name: &[u8], value: &mut [u8]) -> Option<usize> {
    let file = calls::open_to_read(b"/proc/self/environ\0")?;
    let found = search(name, value, |buffer| calls::read(file, buffer));
    calls::close(file);
    found
}

/// Searches a variable in what `read` returns piece by piece.
fn search(name: &[u8], value: &mut [u8], mut read: impl FnMut(&mut [u8]) -> usize) -> Option<usize> {
    let mut buffer = [0_u8; 512];
    // How much of the name has matched; `None` inside of another variable.
    let mut matched = Some(0);
    let mut len = None;
    loop {
        let count = read(&mut buffer);
        if count == 0 {
            return None;
        }
        for &byte in buffer.iter().take(count) {
            match (&mut len, matched) {
                (Some(len), _) if byte == 0 => return (*len <= value.len()).then_some(*len),
                (Some(len), _) => {
                    if let Some(place) = value.get_mut(*len) {
                        *place = byte;
                    }
                    *len += 1;
                }
                (None, _) if byte == 0 => matched = Some(0),
                (None, Some(at)) if at == name.len() && byte == b'=' => len = Some(0),
                (None, Some(at)) => matched = (name.get(at) == Some(&byte)).then_some(at + 1),
                (None, None) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &[u8], name: &[u8], piece: usize) -> Option<Vec<u8>> {
        let (mut rest, mut value) = (text, [0; 8]);
        let len = search(name, &mut value, |buffer| {
            let count = rest.len().min(piece);
            buffer[..count].copy_from_slice(&rest[..count]);
            rest = &rest[count..];
            count
        });
        len.map(|len| value[..len].to_vec())
    }

    #[test]
    fn a_variable_is_found_whole_or_not_at_all() {
        let text = b"AB=1\0A=two\0XA=3\0B=\0C=123456789\0D=4";
        for piece in [1, 3, 512] {
            assert_eq!(found(text, b"A", piece).as_deref(), Some(&b"two"[..]));
            assert_eq!(found(text, b"AB", piece).as_deref(), Some(&b"1"[..]));
            assert_eq!(found(text, b"B", piece).as_deref(), Some(&b""[..]));
            for name in [b"C", b"D", b"X"] {
                assert_eq!(found(text, name, piece), None);
            }
        }
    }

    #[test]
    fn numbers_are_written_in_digits() {
        let (mut path, mut at) = ([0; 12], 0);
        put_number(&mut path, &mut at, 0);
        put_number(&mut path, &mut at, 4_294_967_295);
        assert_eq!((&path[..at], at), (&b"04294967295"[..], 11));
    }
}
