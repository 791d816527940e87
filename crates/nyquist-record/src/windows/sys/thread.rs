//! Threads of other processes: their registers, their CPU time, and stopping them for a moment.

use std::io;
use std::os::windows::io::{AsRawHandle as _, OwnedHandle};
use std::sync::OnceLock;
use std::{mem, ptr};

use nyquist_convert::event::Registers;
use windows_sys::Wdk::System::Threading::{NtQueryInformationThread, ThreadBasicInformation};
use windows_sys::Win32::Foundation::{FILETIME, HANDLE, LocalFree, STATUS_SUCCESS};
use windows_sys::Win32::System::Diagnostics::Debug::{CONTEXT, GetThreadContext};
use windows_sys::Win32::System::Threading::{
    GetCurrentThread, GetProcessId, GetProcessIdOfThread, GetThreadTimes, OpenThread, ResumeThread,
    SuspendThread, THREAD_GET_CONTEXT, THREAD_QUERY_INFORMATION, THREAD_SUSPEND_RESUME,
};
use windows_sys::Win32::System::WindowsProgramming::QueryThreadCycleTime;
use windows_sys::core::HRESULT;

use super::privilege::as_debugger;
use super::process::nanoseconds;
use super::{check, optional_function, owned};

/// The longest name of a thread, in UTF-16 units, of which more is not read.
const MAX_NAME_LEN: usize = 256;
/// What the calls for suspending return if they fail.
const FAILED: u32 = u32::MAX;

/// Opens a thread to be sampled.
pub(crate) fn open(tid: u32) -> io::Result<OwnedHandle> {
    let rights = THREAD_SUSPEND_RESUME | THREAD_GET_CONTEXT | THREAD_QUERY_INFORMATION;
    // SAFETY: the call takes no pointers.
    as_debugger(|| owned(unsafe { OpenThread(rights, 0, tid) }))
}

/// Whether a thread is of a process. Its number may have become that of another one's thread since it was listed.
pub(crate) fn is_of(thread: &OwnedHandle, process: &OwnedHandle) -> bool {
    // SAFETY: both handles are open.
    let [of_thread, own] =
        unsafe { [GetProcessIdOfThread(thread.as_raw_handle()), GetProcessId(process.as_raw_handle())] };
    own != 0 && of_thread == own
}

/// Suspends a thread. Returns whether that was possible: it is not if the thread has ended.
pub(crate) fn suspend(thread: &OwnedHandle) -> bool {
    // SAFETY: the handle is open. The thread is of another process, or the caller needs no lock that it may
    // hold until it is resumed.
    unsafe { SuspendThread(thread.as_raw_handle()) != FAILED }
}

/// Takes back one suspension. Returns whether that was possible.
pub(crate) fn resume(thread: &OwnedHandle) -> bool {
    // SAFETY: the handle is open.
    unsafe { ResumeThread(thread.as_raw_handle()) != FAILED }
}

/// The structure for registers, which the system needs at an address that is a multiple of 16.
#[repr(C, align(16))]
struct ThreadContext(CONTEXT);

/// The general registers of a suspended thread. Allocates nothing.
pub(crate) struct ThreadRegisters {
    context: ThreadContext,
}

impl ThreadRegisters {
    /// Reads them.
    pub(crate) fn read(thread: &OwnedHandle) -> Option<Self> {
        // SAFETY: the structure is plain numbers, for which zeros are valid.
        let mut context = ThreadContext(unsafe { mem::zeroed() });
        context.0.ContextFlags = arch::GENERAL;
        // SAFETY: the handle is open, and the structure lives through the call and is aligned.
        let read = unsafe { GetThreadContext(thread.as_raw_handle(), &raw mut context.0) };
        (read != 0).then_some(Self { context })
    }

    /// The instruction pointer.
    pub(crate) fn instruction_pointer(&self) -> u64 {
        arch::instruction_pointer(&self.context.0)
    }

    /// The stack pointer.
    pub(crate) fn stack_pointer(&self) -> u64 {
        arch::stack_pointer(&self.context.0)
    }

    /// In the form of events.
    pub(crate) fn event_registers(&self) -> Registers {
        arch::event_registers(&self.context.0)
    }
}

#[cfg(target_arch = "x86_64")]
mod arch {
    use nyquist_convert::event::Registers;
    use windows_sys::Win32::System::Diagnostics::Debug::{
        CONTEXT, CONTEXT_CONTROL_AMD64, CONTEXT_INTEGER_AMD64,
    };

    /// The control registers and the integer registers.
    pub(super) const GENERAL: u32 = CONTEXT_CONTROL_AMD64 | CONTEXT_INTEGER_AMD64;

    pub(super) fn instruction_pointer(context: &CONTEXT) -> u64 {
        context.Rip
    }

    pub(super) fn stack_pointer(context: &CONTEXT) -> u64 {
        context.Rsp
    }

    pub(super) fn event_registers(it: &CONTEXT) -> Registers {
        Registers::X86_64([
            it.Rax, it.Rdx, it.Rcx, it.Rbx, it.Rsi, it.Rdi, it.Rbp, it.Rsp, it.R8, it.R9, it.R10, it.R11,
            it.R12, it.R13, it.R14, it.R15, it.Rip,
        ])
    }
}

#[cfg(target_arch = "aarch64")]
mod arch {
    use nyquist_convert::event::Registers;
    use windows_sys::Win32::System::Diagnostics::Debug::{
        CONTEXT, CONTEXT_CONTROL_ARM64, CONTEXT_INTEGER_ARM64,
    };

    /// The control registers and the integer registers.
    pub(super) const GENERAL: u32 = CONTEXT_CONTROL_ARM64 | CONTEXT_INTEGER_ARM64;

    pub(super) fn instruction_pointer(context: &CONTEXT) -> u64 {
        context.Pc
    }

    pub(super) fn stack_pointer(context: &CONTEXT) -> u64 {
        context.Sp
    }

    pub(super) fn event_registers(context: &CONTEXT) -> Registers {
        let mut values = [0; 33];
        // SAFETY: both forms of the union are the same 31 numbers.
        values[..31].copy_from_slice(unsafe { &context.Anonymous.X });
        (values[31], values[32]) = (context.Sp, context.Pc);
        Registers::Aarch64(Box::new(values))
    }
}

/// The CPU time of a thread in nanoseconds, user and kernel. It advances with the timer interrupts only.
pub(crate) fn coarse_cpu_ns(thread: &OwnedHandle) -> Option<u64> {
    let [mut created, mut exited, mut kernel, mut user] = [FILETIME::default(); 4];
    // SAFETY: the handle is open, and the four times live through the call.
    check(unsafe {
        GetThreadTimes(
            thread.as_raw_handle(),
            &raw mut created,
            &raw mut exited,
            &raw mut kernel,
            &raw mut user,
        )
    })
    .ok()?;
    Some(nanoseconds(kernel).saturating_add(nanoseconds(user)))
}

/// The CPU cycles that a thread has used. Their rate depends on the processor, and can vary.
pub(crate) fn cycles(thread: &OwnedHandle) -> Option<u64> {
    cycles_of(thread.as_raw_handle())
}

/// The CPU cycles that the calling thread has used; `None` if the system does not count them.
pub(crate) fn own_cycles() -> Option<u64> {
    // SAFETY: the call takes no pointers. The handle means the calling thread and is never closed.
    cycles_of(unsafe { GetCurrentThread() })
}

fn cycles_of(thread: HANDLE) -> Option<u64> {
    let mut cycles = 0;
    // SAFETY: the handle is open, and `cycles` lives through the call.
    let known = unsafe { QueryThreadCycleTime(thread, &raw mut cycles) };
    (known != 0 && cycles != 0).then_some(cycles)
}

/// The name that the program has given to a thread.
pub(crate) fn name(thread: &OwnedHandle) -> Option<String> {
    type GetThreadDescription = unsafe extern "system" fn(HANDLE, *mut *mut u16) -> HRESULT;
    static FUNCTION: OnceLock<Option<GetThreadDescription>> = OnceLock::new();
    let function = (*FUNCTION.get_or_init(|| {
        let found = optional_function(c"GetThreadDescription")?;
        // SAFETY: the function of this name has this type.
        Some(unsafe { mem::transmute::<unsafe extern "system" fn() -> isize, GetThreadDescription>(found) })
    }))?;
    let mut description: *mut u16 = ptr::null_mut();
    // SAFETY: the handle is open, and `description` lives through the call.
    let result = unsafe { function(thread.as_raw_handle(), &raw mut description) };
    if result < 0 || description.is_null() {
        return None;
    }
    let mut units = Vec::new();
    // SAFETY: the description is a string that ends with a zero, and is this process's own copy.
    unsafe {
        let mut next = description.cast_const();
        while *next != 0 && units.len() < MAX_NAME_LEN {
            units.push(*next);
            next = next.add(1);
        }
        LocalFree(description.cast());
    }
    (!units.is_empty()).then(|| String::from_utf16_lossy(&units))
}

/// What the system states about a thread (`THREAD_BASIC_INFORMATION`).
#[repr(C)]
struct BasicInformation {
    exit_status: i32,
    environment_block: usize,
    process: usize,
    thread: usize,
    affinity: usize,
    priority: i32,
    base_priority: i32,
}

/// The address of a thread's environment block (TEB) in its process.
pub(crate) fn environment_block(thread: &OwnedHandle) -> Option<u64> {
    // SAFETY: the structure is plain numbers, for which zeros are valid.
    let mut information: BasicInformation = unsafe { mem::zeroed() };
    // SAFETY: the handle is open; `information` lives through the call and has that size.
    let status = unsafe {
        NtQueryInformationThread(
            thread.as_raw_handle(),
            ThreadBasicInformation,
            (&raw mut information).cast(),
            size_of::<BasicInformation>() as u32,
            ptr::null_mut(),
        )
    };
    (status == STATUS_SUCCESS && information.environment_block != 0)
        .then_some(information.environment_block as u64)
}
