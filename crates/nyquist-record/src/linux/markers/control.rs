//! The markers of a process that the profiler did not start: its control file, which contains all its rings.
//!
//! The file belongs to the program, which can change it at any time. It is therefore read and written by
//! system calls only, and its contents are not trusted as limits.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use nyquist_convert::event::Pid;
use nyquist_tracing::protocol::{CAPACITY, control};

use super::folder_reader::{MAX_FILES, RingState};
use super::rings::Rings;
use crate::linux::sys::beneath::{Status, memory_file};
use crate::linux::sys::{futex, limits};
use crate::linux::{proc, target_access};

/// How many memory files of that name are looked at.
const MAX_NAMESAKES: u32 = 16;

/// How many rings that are not ready are checked each time, both of the new ones and of the others.
const NOT_READY: usize = 32;

/// The enabled control file of a program.
#[derive(Debug)]
pub(super) struct ControlFile {
    file: Arc<File>,
    /// How many rings existed before the recording.
    first: u32,
    /// How many rings of the recording have been checked.
    seen: u32,
    /// The rings that were not ready.
    waiting: VecDeque<u32>,
    /// Whether the file has become shorter than its first page.
    pub(super) is_cut: bool,
}

impl ControlFile {
    /// Enables the markers of a process. Returns `None` if it has none.
    pub(super) fn switch_on(pid: Pid) -> io::Result<Option<Self>> {
        find(pid)?.map(Self::of_file).transpose()
    }

    fn of_file(file: File) -> io::Result<Self> {
        // Only one recorder at a time: each would consume what the other has not read yet.
        file.try_lock().map_err(|_| io::Error::other("another recorder reads them"))?;
        let first = word(&file, control::RINGS)?;
        let last = word(&file, control::LAST)?;
        let number = last.checked_add(1).unwrap_or_default().max(control::STOPPING + 1);
        set_word(&file, control::LAST, number)?;
        let control = Self { file: Arc::new(file), first, seen: 0, waiting: VecDeque::new(), is_cut: false };
        control.set_state(number)?;
        Ok(control)
    }

    /// Checks for rings that were made since the last time.
    pub(super) fn poll(&mut self, rings: &mut Rings, last: bool) {
        match word(&self.file, control::RINGS) {
            Ok(count) => self.poll_until(count, rings, if last { MAX_FILES } else { NOT_READY }),
            Err(_) => self.is_cut = true,
        }
    }

    fn poll_until(&mut self, count: u32, rings: &mut Rings, most_not_ready: usize) {
        for _ in 0..self.waiting.len().min(most_not_ready) {
            let Some(number) = self.waiting.pop_front() else { break };
            self.take(number, rings);
        }
        let count = count.saturating_sub(self.first).min(control::MAX_RINGS);
        let before = self.waiting.len();
        while self.seen < count && self.waiting.len() - before < most_not_ready {
            let number = self.first.saturating_add(self.seen);
            self.seen += 1;
            self.take(number, rings);
        }
    }

    fn take(&mut self, number: u32, rings: &mut Rings) {
        let at = control::ring_at(number);
        if at.saturating_add(control::STRIDE) > limits::file_size() {
            // Writing the read position back would end this process.
            rings.refuse();
        } else if rings.take(Arc::clone(&self.file), at, CAPACITY as u64) == RingState::NotYet {
            self.waiting.push_back(number);
        }
    }

    /// Makes the program stop writing. What it has written can still be read.
    pub(super) fn stop(&self) {
        // A program that does not notice goes on writing until its rings are full.
        let _ = self.set_state(control::STOPPING);
    }

    fn set_state(&self, state: u32) -> io::Result<()> {
        set_word(&self.file, control::STATE, state)?;
        // This fails if the program has just made the file shorter. The next look finds that.
        let _ = futex::wake(&self.file, control::STATE);
        Ok(())
    }
}

impl Drop for ControlFile {
    fn drop(&mut self) {
        // Nothing more will be read.
        let _ = self.set_state(control::OFF);
    }
}

/// Searches the descriptors of a process for the control file.
fn find(pid: Pid) -> io::Result<Option<File>> {
    // Whether it may be looked at.
    fs::read_dir(format!("/proc/{}/fd", pid.0))?;
    let memory = Status::of(memory_file(c"nyquist")?.as_fd())?;
    let user = proc::effective_user(pid.0);
    // The program can replace what a descriptor is at any time, so what was opened is what is checked.
    let mut opened = (0..MAX_NAMESAKES)
        .map_while(|index| target_access::targets().open_memory_file(pid, control::NAME, index));
    Ok(opened.find(|file| is_control_file(file, &memory, user)))
}

/// Whether an open file is a control file. Any file can have that name, and another process can pass it to the
/// program. The file must therefore be in the kernel's own file system for memory files, as `memory` is. Its
/// owner must be the program's user, or root (if the program was root when it made the file).
fn is_control_file(file: &File, memory: &Status, user: Option<u32>) -> bool {
    let Ok(status) = Status::of(file.as_fd()) else { return false };
    let is_theirs = status.owner == 0 || Some(status.owner) == user;
    let mut magic = [0; control::MAGIC.len()];
    status.device == memory.device
        && status.is_file()
        && is_theirs
        && file.read_exact_at(&mut magic, 0).is_ok()
        && magic == control::MAGIC
}

fn word(file: &File, at: usize) -> io::Result<u32> {
    let mut bytes = [0; 4];
    file.read_exact_at(&mut bytes, at as u64)?;
    Ok(u32::from_le_bytes(bytes))
}

fn set_word(file: &File, at: usize, number: u32) -> io::Result<()> {
    file.write_all_at(&number.to_le_bytes(), at as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::sys::beneath::at_once;
    use nyquist_convert::event::Timestamp;
    use nyquist_perf::Budget;
    use nyquist_tracing::protocol::{self, Values, header, put_marker, record};
    use std::os::fd::AsRawFd as _;

    /// A control file as a program makes it.
    fn control_file(rings: u32) -> File {
        let file = memory_file(c"nyquist-markers").unwrap();
        file.set_len(control::LEN as u64).unwrap();
        file.write_all_at(&control::MAGIC, 0).unwrap();
        set_word(&file, control::RINGS, rings).unwrap();
        file
    }

    /// A ring with one marker.
    fn put_ring(file: &File, number: u32, capacity: u64) {
        let mut bytes = vec![0; header::LEN];
        bytes[..8].copy_from_slice(&protocol::MAGIC);
        bytes[header::CAPACITY..][..8].copy_from_slice(&capacity.to_le_bytes());
        bytes[header::PID..][..4].copy_from_slice(&std::process::id().to_le_bytes());
        put_marker(&mut bytes, (record::INSTANT, 0), "here", (1, 0), &Values::new(), &[]);
        let written = (bytes.len() - header::LEN) as u64;
        bytes[header::WRITTEN..][..8].copy_from_slice(&written.to_le_bytes());
        file.write_all_at(&bytes, control::ring_at(number)).unwrap();
    }

    fn switched_on(file: &File) -> (ControlFile, Rings) {
        let again = at_once(true).open(format!("/proc/self/fd/{}", file.as_raw_fd())).unwrap();
        (ControlFile::of_file(again).unwrap(), Rings::new(&Budget::default()))
    }

    fn read(control: &mut ControlFile, rings: &mut Rings) -> usize {
        let mut events = Vec::new();
        control.poll(rings, false);
        rings.read(&mut events, false);
        assert!(events.iter().all(|event| event.time == Timestamp(1)));
        events.len()
    }

    #[test]
    fn the_program_is_notified_of_each_recording() {
        let file = control_file(3);
        let mut states = Vec::new();
        for _ in 0..2 {
            let (control, _) = switched_on(&file);
            states.push(word(&file, control::STATE).unwrap());
            control.stop();
            states.push(word(&file, control::STATE).unwrap());
            drop(control);
            states.push(word(&file, control::STATE).unwrap());
        }
        assert_eq!(states, [2, control::STOPPING, control::OFF, 3, control::STOPPING, control::OFF]);
        set_word(&file, control::LAST, u32::MAX).unwrap();
        let (_control, _) = switched_on(&file);
        assert_eq!(word(&file, control::STATE).unwrap(), 2);
    }

    #[test]
    fn one_recorder_at_a_time() {
        let file = control_file(0);
        let (_control, _) = switched_on(&file);
        let again = at_once(true).open(format!("/proc/self/fd/{}", file.as_raw_fd())).unwrap();
        assert!(ControlFile::of_file(again).is_err());
    }

    #[test]
    fn rings_of_a_recording_are_read_when_ready() {
        let file = control_file(2);
        put_ring(&file, 1, 4096);
        let (mut control, mut rings) = switched_on(&file);
        assert_eq!(read(&mut control, &mut rings), 0, "it was there before");
        set_word(&file, control::RINGS, 4).unwrap();
        put_ring(&file, 3, 4096);
        assert_eq!(read(&mut control, &mut rings), 1);
        put_ring(&file, 2, CAPACITY as u64);
        assert_eq!(read(&mut control, &mut rings), 1);
        assert_eq!(read(&mut control, &mut rings), 0, "both were read");
        set_word(&file, control::RINGS, 5).unwrap();
        put_ring(&file, 4, CAPACITY as u64 + 8);
        assert_eq!(
            (read(&mut control, &mut rings), rings.finish(&mut Vec::new()).unreadable),
            (0, 1),
            "too long"
        );
    }

    #[test]
    fn a_lying_count_costs_a_bounded_number_of_looks() {
        let file = control_file(0);
        let (mut control, mut rings) = switched_on(&file);
        set_word(&file, control::RINGS, u32::MAX).unwrap();
        for round in 1..=4 {
            assert_eq!(read(&mut control, &mut rings), 0);
            assert_eq!(control.seen as usize, round * NOT_READY);
        }
        set_word(&file, control::RINGS, 0).unwrap();
        assert_eq!(read(&mut control, &mut rings), 0);
        set_word(&file, control::RINGS, u32::MAX).unwrap();
        // The other rings of this size are checked once more at the end.
        put_ring(&file, 9, 4096);
        control.poll(&mut rings, true);
        assert_eq!(
            (control.seen, control.waiting.len()),
            (control::MAX_RINGS, control::MAX_RINGS as usize - 1)
        );
        let mut events = Vec::new();
        rings.read(&mut events, true);
        assert_eq!(events.len(), 1);
    }

    #[test]
    fn markers_take_no_more_than_their_memory() {
        let file = control_file(0);
        let again = at_once(true).open(format!("/proc/self/fd/{}", file.as_raw_fd())).unwrap();
        let (mut control, mut rings) = (ControlFile::of_file(again).unwrap(), Rings::new(&Budget::new(100)));
        set_word(&file, control::RINGS, 2).unwrap();
        put_ring(&file, 0, 4096);
        put_ring(&file, 1, 4096);
        // The first ring is read whole, because its length bounds the excess over the budget.
        assert_eq!(read(&mut control, &mut rings), 1);
        assert_eq!(read(&mut control, &mut rings), 0);
        assert!(rings.finish(&mut Vec::new()).is_full);
    }

    #[test]
    fn a_file_that_is_cut_ends_the_markers() {
        let file = control_file(0);
        let (mut control, mut rings) = switched_on(&file);
        set_word(&file, control::RINGS, 1).unwrap();
        put_ring(&file, 0, 4096);
        assert_eq!((read(&mut control, &mut rings), control.is_cut), (1, false));
        file.set_len(control::ring_at(0) + 8).unwrap();
        assert_eq!((read(&mut control, &mut rings), control.is_cut), (0, false));
        assert_eq!(rings.finish(&mut Vec::new()).cut, 1);
        file.set_len(0).unwrap();
        assert_eq!((read(&mut control, &mut rings), control.is_cut), (0, true));
        control.stop();
        drop(control);
        // Any size is valid.
        let file = control_file(0);
        let (mut control, mut rings) = switched_on(&file);
        file.set_len(1 << 44).unwrap();
        set_word(&file, control::RINGS, 1).unwrap();
        assert_eq!((read(&mut control, &mut rings), control.is_cut), (0, false));
    }

    #[test]
    fn files_that_only_look_like_it_are_left_alone() {
        let memory = Status::of(memory_file(c"own").unwrap().as_fd()).unwrap();
        let opens = |file: &File, user| is_control_file(file, &memory, user);
        let user = proc::effective_user(std::process::id());
        let good = control_file(0);
        assert!(user.is_some() && opens(&good, user));
        if user != Some(0) {
            assert!(!opens(&good, None), "somebody else's");
        }
        good.write_all_at(b"nyqctrl\x01", 0).unwrap();
        assert!(!opens(&good, user), "another version");
        let path = std::env::temp_dir().join(format!("nyquist-control-{}", std::process::id()));
        let ordinary = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
        fs::remove_file(path).unwrap();
        ordinary.write_all_at(&control::MAGIC, 0).unwrap();
        assert!(!opens(&ordinary, user), "an ordinary file");
    }
}
