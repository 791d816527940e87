//! Reads from `/proc` the state of a thread that is not stopped: whether it runs, its CPU time, and where it
//! waits (`fs/proc/base.c`: `proc_pid_schedstat`, `proc_pid_syscall`).

use std::fs::File;
use std::ops::Range;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::FileExt as _;

use bytes::Bytes;
use nyquist_convert::ProcessFile;
use nyquist_convert::event::{Registers, UserStack};

use crate::linux::arch;
use crate::linux::limits::descriptor_limit;
use crate::linux::target_access;

/// The longest line of these files: nine numbers of eighteen digits.
const MAX_LINE_LEN: usize = 256;

/// The files of a thread, which are read at every check. They are held open while enough descriptors are left
/// for other uses.
#[derive(Debug, Default)]
pub(crate) struct ThreadFiles {
    pid: u32,
    tid: u32,
    /// Whether the reader of `syscall` may have to wait for the process, so that the recorder does not read it itself.
    may_be_withheld: bool,
    schedstat: Option<File>,
    syscall: Option<File>,
}

const SCHEDSTAT: &str = "schedstat";
const SYSCALL: &str = "syscall";

/// The descriptors that are reserved for other uses: mapped files, mappings, memory, the output.
const OTHER_DESCRIPTORS: u64 = 256;

/// The scheduler's statistics of a thread. While they are unchanged, the thread has not begun to run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ScheduleStatistics {
    /// The CPU time in nanoseconds, up to the scheduler's last update.
    pub(crate) cpu_ns: u64,
    /// How long it has waited for a CPU, up to the last time that it got one.
    pub(crate) delay_ns: u64,
    /// How many times it got a CPU.
    pub(crate) turns: u64,
}

impl ScheduleStatistics {
    /// How long the thread has waited for a CPU since an earlier reading, if it has got one meanwhile.
    pub(crate) fn waited_for_cpu_since(&self, before: &Self) -> u64 {
        if self.turns == before.turns { 0 } else { self.delay_ns.saturating_sub(before.delay_ns) }
    }
}

/// What a thread does, as far as it is known without stopping it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunState {
    /// It runs, or is about to.
    Running,
    /// It waits in the kernel.
    Waiting(KernelWait),
    /// It is not known.
    Unknown,
}

/// A thread that waits in the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct KernelWait {
    /// The number and the arguments of its system call; `None` if it waits for something else, such as a
    /// page.
    pub(crate) call: Option<SystemCall>,
    pub(crate) stack_pointer: u64,
    pub(crate) instruction_pointer: u64,
}

/// A system call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SystemCall {
    pub(crate) number: i64,
    pub(crate) arguments: [u64; 6],
}

impl KernelWait {
    /// The stack, as far as the thread's registers and memory are readable without stopping it, limited to
    /// the room. `rest` is whether the stack extends beyond that.
    pub(crate) fn stack(
        &self,
        tid: u32,
        rest: bool,
        room: &mut [u8],
        has_32_bits: impl FnOnce() -> bool,
    ) -> UserStack {
        // The kernel does not report which kind of registers these are. A 32-bit program has no stack above
        // this range.
        if let Ok(ip) = u32::try_from(self.instruction_pointer)
            && u32::try_from(self.stack_pointer).is_ok()
            && has_32_bits()
        {
            let registers = Box::new(Registers::Bits32 { ip });
            return UserStack::Copied { registers, stack: Bytes::new(), limited: false };
        }
        let len = target_access::read(tid, self.stack_pointer, room);
        let arguments = self.call.map(|call| call.arguments);
        let registers = arch::waiting::registers(arguments, self.stack_pointer, self.instruction_pointer);
        UserStack::Copied {
            registers: Box::new(registers),
            stack: Bytes::copy_from_slice(room.get(..len).unwrap_or_default()),
            limited: len == room.len() && rest,
        }
    }
}

/// How many bytes of a stack to copy, and whether there are more. The stack is between its pointer and its
/// end; at most `most` bytes are copied.
pub(crate) fn window(stack: Option<&Range<u64>>, pointer: u64, most: usize) -> (usize, bool) {
    /// Larger memory does not contain just a stack.
    const MAX_STACK_BYTES: u64 = 64 << 20;
    /// The size of a copy if the stack is in such memory, or in unknown memory.
    const COPY_OF_UNKNOWN: usize = 32 << 10;
    let (len, most) = match stack {
        Some(stack) if stack.end - stack.start <= MAX_STACK_BYTES => {
            (stack.end.saturating_sub(pointer), most)
        }
        _ => (u64::MAX, most.min(COPY_OF_UNKNOWN)),
    };
    let len = usize::try_from(len).unwrap_or(usize::MAX);
    (len.min(most), len > most)
}

impl ThreadFiles {
    /// Opens the files of a thread.
    pub(crate) fn open(pid: u32, tid: u32) -> Self {
        let limit = descriptor_limit();
        Self::held_below(limit.saturating_sub(OTHER_DESCRIPTORS.min(limit / 2)), (pid, tid))
    }

    /// Keeps only descriptors below this number. A new descriptor always gets the lowest free number.
    fn held_below(limit: u64, (pid, tid): (u32, u32)) -> Self {
        let held = |file: &File| u64::try_from(file.as_raw_fd()).is_ok_and(|number| number < limit);
        let may_be_withheld = target_access::may_withhold(pid);
        let mut files = Self { pid, tid, may_be_withheld, schedstat: None, syscall: None };
        files.schedstat = files.file(SCHEDSTAT).filter(held);
        if !files.may_be_withheld {
            files.syscall = files.file(SYSCALL).filter(held);
        }
        files
    }

    fn file(&self, name: &str) -> Option<File> {
        File::open(format!("/proc/{}/task/{}/{name}", self.pid, self.tid)).ok()
    }

    /// The scheduler's statistics; `None` if the thread is gone, or if they are not available.
    pub(crate) fn schedule(&self) -> Option<ScheduleStatistics> {
        self.read(self.schedstat.as_ref(), SCHEDSTAT, schedule)
    }

    /// What the thread does.
    pub(crate) fn run_state(&self) -> RunState {
        if self.may_be_withheld {
            let line = target_access::process_file(self.pid, Some(self.tid), ProcessFile::SystemCall);
            let line = line.ok().and_then(|line| String::from_utf8(line).ok());
            return line.map_or(RunState::Unknown, |line| run_state(&line));
        }
        self.read(self.syscall.as_ref(), SYSCALL, |line| Some(run_state(line))).unwrap_or(RunState::Unknown)
    }

    /// Reads a file that is held open, or opens it for this reading.
    fn read<T>(&self, held: Option<&File>, name: &str, parse: fn(&str) -> Option<T>) -> Option<T> {
        let mut line = [0; MAX_LINE_LEN];
        let opened = if held.is_none() { self.file(name) } else { None };
        parse(read(held.or(opened.as_ref())?, &mut line)?)
    }
}

fn read<'a>(file: &File, line: &'a mut [u8]) -> Option<&'a str> {
    let len = file.read_at(line, 0).ok()?;
    std::str::from_utf8(line.get(..len)?).ok()
}

fn schedule(line: &str) -> Option<ScheduleStatistics> {
    let mut numbers = line.split_ascii_whitespace().map(|digits| digits.parse().ok());
    let mut next = || numbers.next().flatten();
    Some(ScheduleStatistics { cpu_ns: next()?, delay_ns: next()?, turns: next()? })
}

fn run_state(line: &str) -> RunState {
    if line.starts_with("running") {
        return RunState::Running;
    }
    waiting(line).map_or(RunState::Unknown, RunState::Waiting)
}

fn waiting(line: &str) -> Option<KernelWait> {
    let mut words = line.split_ascii_whitespace();
    let number: i64 = words.next()?.parse().ok()?;
    let mut next = || u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok();
    let mut call = None;
    if number >= 0 {
        let mut arguments = [0; 6];
        for argument in &mut arguments {
            *argument = next()?;
        }
        call = Some(SystemCall { number, arguments });
    }
    Some(KernelWait { call, stack_pointer: next()?, instruction_pointer: next()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schedule_is_three_numbers() {
        let expected = ScheduleStatistics { cpu_ns: 7_000, delay_ns: 36_008, turns: 1 };
        assert_eq!(schedule("7000 36008 1\n"), Some(expected));
        assert_eq!(schedule("7000 1\n"), None);
        assert_eq!(schedule(""), None);
    }

    #[test]
    fn places_are_distinguished() {
        assert_eq!(run_state("running\n"), RunState::Running);
        let fault = KernelWait { call: None, stack_pointer: 0x7ffd_0010, instruction_pointer: 0x55aa };
        assert_eq!(run_state("-1 0x7ffd0010 0x55aa\n"), RunState::Waiting(fault));
        let call = SystemCall { number: 232, arguments: [3, 0x7f00, 16, 0xffff_ffff, 0, 8] };
        let expected =
            KernelWait { call: Some(call), stack_pointer: 0x7ffd_0010, instruction_pointer: 0x55aa };
        let line = "232 0x3 0x7f00 0x10 0xffffffff 0x0 0x8 0x7ffd0010 0x55aa\n";
        assert_eq!(run_state(line), RunState::Waiting(expected));
        for line in ["", "232 0x3", "x", "-1 7 8"] {
            assert_eq!(run_state(line), RunState::Unknown, "{line:?}");
        }
    }

    #[test]
    fn this_thread_runs_and_has_a_schedule() {
        let pid = std::process::id();
        let files = ThreadFiles::open(pid, pid);
        assert!(files.schedule().is_some());
        assert_eq!(ThreadFiles::open(0, 0).run_state(), RunState::Unknown);
    }

    #[test]
    fn files_are_read_without_held_descriptors() {
        let pid = std::process::id();
        let files = ThreadFiles::held_below(0, (pid, pid));
        assert!(files.schedstat.is_none() && files.syscall.is_none());
        assert!(files.schedule().is_some());
        assert_ne!(files.run_state(), RunState::Unknown);
        let held = ThreadFiles::held_below(u64::MAX, (pid, pid));
        assert!(held.schedstat.is_some() && held.schedule().is_some());
    }
}
