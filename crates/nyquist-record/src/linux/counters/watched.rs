//! A process whose quantities are read periodically.

use std::ffi::{CStr, CString};
use std::io;

use nyquist_convert::ProcessFile;
use nyquist_convert::event::{Pid, Timestamp};

use super::own_io::{IoReading, MAX_THREADS, OwnIo};
use super::quantity::{COUNT, Quantity};
use super::switches::Switches;
use super::texts::{ProcessIo, ProcessStat};
use crate::linux::sys::clock::{boot_ns, monotonic_ns, process_cpu_ns};
use crate::linux::sys::limits::page_size;
use crate::linux::sys::process_folder::ProcessFolder;
use crate::linux::target_access;

/// One in this many readings also reads the expensive quantities.
const THOROUGH: u32 = 4;

/// The nanoseconds of a tick of `stat` (`USER_HZ` is 100 on every supported architecture).
const TICK_NS: u64 = 10_000_000;

/// The tolerance for the age of a process, because its birth is given in ticks.
const AGE_TOLERANCE_NS: u64 = 2 * TICK_NS;

/// The reading of each quantity, by its index in [`Quantity::ALL`].
pub(super) type Readings = [Option<u64>; COUNT];

/// A process that is to be watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WatchedProcess {
    pub(super) pid: Pid,
    /// The process that has begun it, if that is recorded.
    pub(super) parent: Option<Pid>,
    /// When it was born, if known. A younger process is another one with the same pid.
    pub(super) born: Option<Timestamp>,
    /// Whether all that it has used counts for this recording.
    pub(super) is_new: bool,
}

/// A process that is watched.
#[derive(Debug)]
pub(super) struct MeasuredProcess {
    subject: WatchedProcess,
    folder: ProcessFolder,
    /// Whether the reader of its files may have to wait for it, so that the recorder does not read them itself.
    may_be_withheld: bool,
    /// When it was born, in ticks since boot, once that was read.
    born_ticks: Option<u64>,
    switches: Switches,
    io: OwnIo,
    readings_taken: u32,
    /// The CPU time at the last two readings.
    cpu_ns: [Option<u64>; 2],
    /// The values of sums at the first reading, if the process is older than the recording.
    bases: Readings,
    /// The quantities that have a value already.
    known: [bool; COUNT],
    has_ended: bool,
}

/// A value of a quantity of a process.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct QuantityValue {
    pub(super) quantity: Quantity,
    pub(super) amount: u64,
    /// Whether it is the first value of a level, which rises from zero.
    pub(super) is_first_level: bool,
}

impl MeasuredProcess {
    /// Opens a process to read it. Fails if it has ended, or if another process has its pid by now.
    pub(super) fn open(subject: WatchedProcess, text: &mut Vec<u8>) -> io::Result<Self> {
        let folder = ProcessFolder::open(subject.pid.0)?;
        let may_be_withheld = target_access::may_withhold(subject.pid.0);
        let mut process = Self {
            subject,
            folder,
            may_be_withheld,
            born_ticks: None,
            switches: Switches::default(),
            io: OwnIo::default(),
            readings_taken: 0,
            cpu_ns: [None; 2],
            bases: [None; COUNT],
            known: [false; COUNT],
            has_ended: false,
        };
        if let Some(born) = subject.born {
            let stat = process.stat(text).ok_or(io::ErrorKind::InvalidData)?;
            let age = boot_ns().saturating_sub(stat.born_ticks.saturating_mul(TICK_NS));
            if age.saturating_add(AGE_TOLERANCE_NS) < monotonic_ns().saturating_sub(born.0) {
                return Err(io::ErrorKind::NotFound.into());
            }
        }
        Ok(process)
    }

    /// Its `stat`; `None` if it is gone. Who has its pid then was born later.
    fn stat(&mut self, text: &mut Vec<u8>) -> Option<ProcessStat> {
        self.file((c"stat", ProcessFile::Stat), text)?;
        let stat = ProcessStat::parse(text)?;
        (*self.born_ticks.get_or_insert(stat.born_ticks) == stat.born_ticks).then_some(stat)
    }

    /// Reads a file of it.
    fn file(&self, (name, file): (&CStr, ProcessFile), text: &mut Vec<u8>) -> Option<()> {
        if self.may_be_withheld {
            *text = target_access::process_file(self.subject.pid.0, None, file).ok()?;
            return Some(());
        }
        self.folder.read(name, text).ok()
    }

    pub(super) fn pid(&self) -> Pid {
        self.subject.pid
    }

    /// Notes that it has a child.
    pub(super) fn note_child(&mut self) {
        self.io.note_child();
    }

    /// Whether it has run between the last two readings.
    pub(super) fn has_run(&self) -> bool {
        self.cpu_ns[0] != self.cpu_ns[1]
    }

    /// Whether it had ended at the last reading, which is complete then.
    pub(super) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Reads the process; `None` if it is gone. Of a zombie, which uses nothing any more, the sums are read.
    pub(super) fn read(&mut self, text: &mut Vec<u8>) -> Option<Vec<QuantityValue>> {
        let readings = self.readings(text)?;
        let values = Quantity::ALL.into_iter().zip(readings);
        Some(values.filter_map(|(quantity, reading)| self.value(quantity, reading?)).collect())
    }

    fn readings(&mut self, text: &mut Vec<u8>) -> Option<Readings> {
        // The next read fails if another process has got the pid meanwhile.
        let cpu_ns = process_cpu_ns(self.subject.pid.0);
        self.cpu_ns = [self.cpu_ns[1], cpu_ns];
        // Refused for a process with other rights.
        let whole_io = self.file((c"io", ProcessFile::Io), text).and_then(|()| ProcessIo::parse(text));
        let stat = self.stat(text)?;
        let io = whole_io.map(|whole| self.own_io(whole, &stat, text));
        self.has_ended = stat.has_ended;
        let is_thorough = self.has_ended || self.readings_taken.is_multiple_of(THOROUGH);
        self.readings_taken = self.readings_taken.wrapping_add(1);
        let (pid, folder) = (self.subject.pid.0, &self.folder);
        let switches = is_thorough.then(|| self.switches.read(pid, folder, stat.threads, text)).flatten();
        // The size is the number of open files since Linux 6.2, and 0 before.
        let files = is_thorough.then(|| folder.size(c"fd").ok()).flatten().filter(|count| *count > 0);
        let reading = |quantity| match quantity {
            Quantity::Cpu => cpu_ns,
            Quantity::Memory => Some(stat.resident_pages.saturating_mul(page_size() as u64)),
            Quantity::PageFaults => Some(stat.minor_faults.saturating_add(stat.major_faults)),
            Quantity::MajorPageFaults => Some(stat.major_faults),
            Quantity::Read => io.map(|io| io.read),
            Quantity::Written => io.map(|io| io.written),
            Quantity::ReadFromStorage => io.map(|io| io.read_from_storage),
            Quantity::WrittenToStorage => io.map(|io| io.written_to_storage),
            Quantity::ContextSwitches => switches,
            Quantity::Threads => Some(stat.threads),
            Quantity::OpenFiles => files,
        };
        let lives = |quantity: &Quantity| !stat.has_ended || !quantity.is_level();
        Some(Quantity::ALL.map(|quantity| Some(quantity).filter(lives).and_then(reading)))
    }

    /// The bytes that it has itself read and written, by the kernel's sum, which has children's too.
    fn own_io(&mut self, whole: ProcessIo, stat: &ProcessStat, text: &mut Vec<u8>) -> ProcessIo {
        let mut io = std::mem::take(&mut self.io);
        let reading = IoReading { whole, child_faults: stat.child_minor_faults };
        let own = io.note(reading, || self.thread_io(stat, text));
        self.io = io;
        own
    }

    /// The bytes of each living thread; `None` if there are too many, or if they are not readable.
    fn thread_io(&self, stat: &ProcessStat, text: &mut Vec<u8>) -> Option<Vec<(u32, ProcessIo)>> {
        let tids = match stat.threads {
            0 | 1 => vec![self.subject.pid.0],
            2..=MAX_THREADS => self.folder.threads().ok()?,
            _ => return None,
        };
        // A thread may have ended meanwhile.
        let io = |tid| Some((tid, self.io_of_thread(tid, text)?));
        Some(tids.into_iter().filter_map(io).collect())
    }

    fn io_of_thread(&self, tid: u32, text: &mut Vec<u8>) -> Option<ProcessIo> {
        if self.may_be_withheld {
            *text = target_access::process_file(self.subject.pid.0, Some(tid), ProcessFile::Io).ok()?;
        } else {
            let name = CString::new(format!("task/{tid}/io")).ok()?;
            self.folder.read(&name, text).ok()?;
        }
        ProcessIo::parse(text)
    }

    /// The reported value of a reading: for a sum, its growth within the recording.
    fn value(&mut self, quantity: Quantity, reading: u64) -> Option<QuantityValue> {
        let at = quantity as usize;
        let is_first = !std::mem::replace(self.known.get_mut(at)?, true);
        if quantity.is_level() {
            return Some(QuantityValue { quantity, amount: reading, is_first_level: is_first });
        }
        let first = if self.subject.is_new { 0 } else { reading };
        let base = *self.bases.get_mut(at)?.get_or_insert(first);
        Some(QuantityValue { quantity, amount: reading.saturating_sub(base), is_first_level: false })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::hint::black_box;
    use std::io::Read as _;

    fn own(born: Option<Timestamp>) -> io::Result<MeasuredProcess> {
        let subject = WatchedProcess { pid: Pid(std::process::id()), parent: None, born, is_new: false };
        MeasuredProcess::open(subject, &mut Vec::new())
    }

    fn value(values: &[QuantityValue], quantity: Quantity) -> u64 {
        values.iter().find(|value| value.quantity == quantity).unwrap().amount
    }

    #[test]
    fn a_process_is_seen_to_use_what_it_uses() {
        let (mut watched, mut text) = (own(None).unwrap(), Vec::new());
        let before = watched.read(&mut text).unwrap();
        for sum in [Quantity::Cpu, Quantity::PageFaults, Quantity::Read, Quantity::ContextSwitches] {
            assert_eq!(value(&before, sum), 0, "{sum:?}");
        }
        let memory = black_box(vec![1_u8; 64 << 20]);
        let files: Vec<_> = (0..50).map(|_| File::open("/dev/null").unwrap()).collect();
        std::fs::read("/proc/self/maps").unwrap();
        (1..THOROUGH).for_each(|_| drop(watched.read(&mut text)));
        let after = watched.read(&mut text).unwrap();
        let risen = |quantity| value(&after, quantity).saturating_sub(value(&before, quantity));
        // Other tests of this process come and go beside this one.
        assert!(risen(Quantity::Memory) > 50 << 20 && risen(Quantity::PageFaults) > 0, "{after:?}");
        assert!(risen(Quantity::Cpu) > 0 && risen(Quantity::Read) > 0, "{after:?}");
        assert!(risen(Quantity::OpenFiles) > 25, "{before:?} {after:?} {}", files.len() + memory.len());
    }

    #[test]
    fn what_a_child_has_written_is_not_the_parents() {
        // The shell waits for `dd` and lives on until its input ends.
        let script = "dd if=/dev/zero of=/dev/null bs=1M count=20 status=none; echo; read line";
        let (input, output) = (std::process::Stdio::piped(), std::process::Stdio::piped());
        let mut child = std::process::Command::new("sh");
        let mut child = child.args(["-c", script]).stdin(input).stdout(output).spawn().unwrap();
        let subject = WatchedProcess { pid: Pid(child.id()), parent: None, born: None, is_new: true };
        let mut text = Vec::new();
        let mut watched = MeasuredProcess::open(subject, &mut text).unwrap();
        watched.read(&mut text).unwrap();
        child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        let whole = std::fs::read(format!("/proc/{}/io", child.id())).unwrap();
        assert!(ProcessIo::parse(&whole).unwrap().written > 20 << 20);
        let values = watched.read(&mut text).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        let amounts = [Quantity::Read, Quantity::Written].map(|quantity| value(&values, quantity));
        assert!(amounts[0] > 0 && amounts.iter().all(|bytes| *bytes < 1 << 20), "{amounts:?}");
    }

    #[test]
    fn a_level_rises_from_nothing_once() {
        let (mut watched, mut text) = (own(None).unwrap(), Vec::new());
        let first = |values: &[QuantityValue]| values.iter().filter(|value| value.is_first_level).count();
        assert_eq!(first(&watched.read(&mut text).unwrap()), 3);
        assert_eq!(first(&watched.read(&mut text).unwrap()), 0);
    }

    #[test]
    fn what_a_child_has_used_is_of_the_recording() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let subject = WatchedProcess {
            pid: Pid(child.id()),
            parent: None,
            born: Some(Timestamp(monotonic_ns())),
            is_new: true,
        };
        let mut text = Vec::new();
        let watched = MeasuredProcess::open(subject, &mut text).map(|mut watched| watched.read(&mut text));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(value(&watched.unwrap().unwrap(), Quantity::PageFaults) > 0);
    }

    #[test]
    fn a_process_that_is_younger_is_another() {
        // A process born an hour after boot that has this pid. This test runs for less than an hour.
        let long_ago = Timestamp(monotonic_ns().saturating_sub(3_600_000_000_000));
        assert!(own(Some(long_ago)).is_err());
        assert!(own(Some(Timestamp(monotonic_ns()))).is_ok());
    }

    #[test]
    fn a_zombie_has_all_that_it_has_used() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let subject = WatchedProcess { pid: Pid(child.id()), parent: None, born: None, is_new: true };
        let mut text = Vec::new();
        let mut watched = MeasuredProcess::open(subject, &mut text).unwrap();
        let mut last = Vec::new();
        while !watched.has_ended() {
            std::thread::yield_now();
            last = watched.read(&mut text).unwrap();
        }
        child.wait().unwrap();
        assert!(watched.read(&mut text).is_none());
        for sum in [Quantity::Cpu, Quantity::PageFaults, Quantity::Read, Quantity::ContextSwitches] {
            assert!(value(&last, sum) > 0, "{sum:?} of {last:?}");
        }
        assert!(last.iter().all(|value| !value.quantity.is_level()), "{last:?}");
    }
}
