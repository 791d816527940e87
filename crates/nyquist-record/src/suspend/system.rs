//! What a system must provide to be sampled by suspending threads.

use std::fmt::Debug;
use std::ops::Range;

use nyquist_convert::event::{MappedFile, Registers};

/// A process, as the system lists it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ListedProcess {
    pub(crate) pid: u32,
    /// The process that has started it. It may have ended, and its number may be another process's by now.
    pub(crate) parent: u32,
    /// When it was started, in any unit.
    pub(crate) began: u64,
}

/// A thread, as the system lists it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ListedThread {
    pub(crate) tid: u32,
    /// When it was started, in any unit.
    pub(crate) began: u64,
    /// How often it got a CPU, if the system counts that.
    pub(crate) turns: u32,
    /// Whether it has or awaits a CPU, if the system provides that.
    pub(crate) is_active: bool,
}

/// An image in the list of those that a process has loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ListedImage {
    /// The first address.
    pub(crate) start: u64,
    /// A number that differs for another image that is loaded at the same address later.
    pub(crate) stamp: u64,
}

/// An image that a process has loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LoadedModule {
    /// The first address, and what tells it from others there.
    pub(crate) listed: ListedImage,
    /// The number of bytes.
    pub(crate) len: u64,
    /// The path of its file.
    pub(crate) path: String,
    /// The identity of the file that was loaded.
    pub(crate) identity: MappedFile,
    /// Whether system calls are made by its code.
    pub(crate) makes_calls: bool,
}

/// Why a process cannot be sampled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SamplingDenied {
    /// It has ended, or never was.
    Gone,
    /// The system refuses it, for this reason and with this advice.
    Refused { reason: String, advice: Option<String> },
}

/// Gives the end of the known image at an address.
pub(crate) type ImageEnd<'a> = &'a dyn Fn(u64) -> Option<u64>;

/// The registers of a suspended thread.
pub(crate) trait StoppedRegisters {
    fn instruction_pointer(&self) -> u64;
    fn stack_pointer(&self) -> u64;
    /// In the form of events. May allocate memory, so it is called when the thread runs again.
    fn event_registers(&self) -> Registers;
}

/// The calls of a system. None of them may wait for a process.
pub(crate) trait System {
    /// An open process.
    type Process: Debug;
    /// An open thread, whose CPU time can be read after its end.
    type Thread: Debug;
    /// The registers of a thread.
    type Registers: StoppedRegisters;

    /// The current time in nanoseconds.
    fn now(&self) -> u64;
    /// Waits until a time in nanoseconds. Returns whether the recording is to end.
    fn wait_until(&mut self, time_ns: u64) -> bool;

    /// Lists the processes that may be recorded, those of the machine if need be, and looks at their threads.
    /// Returns whether that was possible.
    fn list_processes(&mut self, out: &mut Vec<ListedProcess>) -> bool;
    /// The threads of a process at the last listing.
    fn list_threads(&mut self, pid: u32, process: &Self::Process, out: &mut Vec<ListedThread>);
    /// Whether a process was found to execute another program when its threads were last listed. The listed
    /// threads are those of the new program. An error if that program may not be sampled: then no threads were
    /// listed.
    fn has_new_program(&mut self, _process: &Self::Process) -> Result<bool, SamplingDenied> {
        Ok(false)
    }
    /// A number that changes when a process executes another program, if the system provides that.
    fn program_stamp(&mut self, _pid: u32) -> Option<u64> {
        None
    }

    /// Opens a process to be sampled.
    fn open_process(&mut self, pid: u32) -> Result<Self::Process, SamplingDenied>;
    /// The name of a process's program.
    fn process_name(&mut self, process: &Self::Process) -> Option<String>;
    /// Whether a process has ended.
    fn has_ended(&mut self, process: &Self::Process) -> bool;
    /// The images that a process has loaded; `None` if they cannot be listed now. `known` returns whether an
    /// image needs no description, because it was described before.
    fn modules(
        &mut self,
        process: &Self::Process,
        known: &dyn Fn(ListedImage) -> bool,
    ) -> Option<(Vec<ListedImage>, Vec<LoadedModule>)>;
    /// The executable memory of a process that is not of images the system knows, by address: code that is made at
    /// run time. `image_end` gives the end of the known image at an address, because images need no look.
    fn made_code(&mut self, process: &Self::Process, image_end: ImageEnd<'_>) -> Vec<Range<u64>>;

    /// Opens a thread to be sampled; `None` if it has ended or the system refuses.
    fn open_thread(&mut self, process: &Self::Process, tid: u32) -> Option<Self::Thread>;
    /// The name that the program has given to a thread.
    fn thread_name(&mut self, thread: &Self::Thread) -> Option<String>;
    /// The CPU time of a thread in nanoseconds, user and kernel, as the system counts it.
    fn cpu_time_ns(&mut self, thread: &Self::Thread) -> Option<u64>;
    /// Whether a thread had or awaited a CPU when its CPU time was last read, if the system provides that too.
    fn was_active(&self, _thread: &Self::Thread) -> bool {
        false
    }
    /// How long a thread has run, in nanoseconds, between the last two readings of its CPU time. `None` unless a
    /// finer clock shows each run and its rate is about known. The CPU time is the exact sum.
    fn estimated_run_ns(&self, _thread: &Self::Thread) -> Option<u64> {
        None
    }
    /// The steps in nanoseconds in which that time advances; 0 if it is exact.
    fn cpu_clock_step_ns(&self) -> u64;
    /// The stack of a thread that contains a stack pointer. May be called while the thread is suspended.
    fn stack(&mut self, process: &Self::Process, thread: &Self::Thread, pointer: u64) -> Option<Range<u64>>;

    /// Suspends a thread. Returns whether it is suspended: it is not if it has ended.
    fn suspend(&mut self, thread: &Self::Thread) -> bool;
    /// The registers of a suspended thread. Allocates nothing.
    fn registers(&mut self, thread: &Self::Thread) -> Option<Self::Registers>;
    /// Copies memory of a process, and returns the number of bytes. Allocates nothing.
    fn read_memory(&mut self, process: &Self::Process, address: u64, out: &mut [u8]) -> usize;
    /// Lets a suspended thread run.
    fn resume(&mut self, thread: &Self::Thread);

    /// Whether a thread whose next instruction this is, in code that makes system calls, is in a call.
    fn is_at_call(&mut self, process: &Self::Process, instruction_pointer: u64) -> bool;
}
