//! Processes: opening them, their state, and the priority of our own threads.

use std::ffi::c_void;
use std::io;
use std::mem;
use std::os::windows::io::{AsRawHandle as _, OwnedHandle};
use std::sync::OnceLock;
use std::time::Duration;

use windows_sys::Win32::Foundation::{FILETIME, HANDLE, WAIT_OBJECT_0};
use windows_sys::Win32::System::SystemInformation::{IMAGE_FILE_MACHINE, IMAGE_FILE_MACHINE_UNKNOWN};
use windows_sys::Win32::System::Threading::{
    ALL_PROCESSOR_GROUPS, GetActiveProcessorCount, GetCurrentProcess, GetCurrentThread, GetExitCodeProcess,
    GetProcessTimes, GetThreadPriority, INFINITE, IsWow64Process2, OpenProcess, PROCESS_INFORMATION_CLASS,
    PROCESS_MACHINE_INFORMATION, PROCESS_QUERY_INFORMATION, PROCESS_QUERY_LIMITED_INFORMATION,
    PROCESS_SYNCHRONIZE, PROCESS_VM_READ, ProcessMachineTypeInfo, QueryFullProcessImageNameW,
    SetThreadPriority, THREAD_PRIORITY_HIGHEST, THREAD_PRIORITY_TIME_CRITICAL, TerminateProcess,
    WaitForSingleObject,
};
use windows_sys::core::BOOL;

use super::privilege::as_debugger;
use super::{check, optional_function, owned, text};

/// The longest path, in UTF-16 units, that the system has.
const MAX_PATH_LEN: usize = 1 << 15;
/// What `GetThreadPriority` returns if it fails (`THREAD_PRIORITY_ERROR_RETURN`).
const NO_PRIORITY: i32 = i32::MAX;

/// Opens a process to be sampled.
pub(crate) fn open(pid: u32) -> io::Result<OwnedHandle> {
    as_debugger(|| open_with(pid, PROCESS_QUERY_INFORMATION | PROCESS_VM_READ | PROCESS_SYNCHRONIZE))
}

/// Opens a process to ask whether it lives and what program it is, which almost every process permits.
pub(crate) fn open_to_ask(pid: u32) -> io::Result<OwnedHandle> {
    open_with(pid, PROCESS_QUERY_LIMITED_INFORMATION | PROCESS_SYNCHRONIZE)
}

fn open_with(pid: u32, rights: u32) -> io::Result<OwnedHandle> {
    // SAFETY: the call takes no pointers.
    owned(unsafe { OpenProcess(rights, 0, pid) })
}

/// Whether a process has ended.
pub(crate) fn has_ended(process: &OwnedHandle) -> bool {
    // SAFETY: the handle is open.
    unsafe { WaitForSingleObject(process.as_raw_handle(), 0) == WAIT_OBJECT_0 }
}

/// Waits until a process has ended, and returns its exit code.
pub(crate) fn wait(process: &OwnedHandle) -> io::Result<u32> {
    // SAFETY: the handle is open.
    if unsafe { WaitForSingleObject(process.as_raw_handle(), INFINITE) } != WAIT_OBJECT_0 {
        return Err(io::Error::last_os_error());
    }
    let mut code = 0;
    // SAFETY: the handle is open, and `code` lives through the call.
    check(unsafe { GetExitCodeProcess(process.as_raw_handle(), &raw mut code) })?;
    Ok(code)
}

/// Ends a process at once, with this exit code.
pub(crate) fn end(process: &OwnedHandle, code: u32) -> io::Result<()> {
    // SAFETY: the handle is open.
    check(unsafe { TerminateProcess(process.as_raw_handle(), code) })
}

/// The CPU time of a process in user code and in the kernel.
pub(crate) fn cpu_times(process: &OwnedHandle) -> io::Result<(Duration, Duration)> {
    let [_, kernel, user] = times(process)?;
    let duration = |time| Duration::from_nanos(nanoseconds(time));
    Ok((duration(user), duration(kernel)))
}

/// When a process was started, in the units in which processes are listed.
pub(crate) fn began(process: &OwnedHandle) -> Option<u64> {
    times(process).ok().map(|[created, ..]| units(created))
}

/// When a process was started, and its CPU time in the kernel and in user code.
fn times(process: &OwnedHandle) -> io::Result<[FILETIME; 3]> {
    let [mut created, mut exited, mut kernel, mut user] = [FILETIME::default(); 4];
    // SAFETY: the handle is open, and the four times live through the call.
    check(unsafe {
        GetProcessTimes(
            process.as_raw_handle(),
            &raw mut created,
            &raw mut exited,
            &raw mut kernel,
            &raw mut user,
        )
    })?;
    Ok([created, kernel, user])
}

/// A time in units of 100 ns.
fn units(time: FILETIME) -> u64 {
    u64::from(time.dwHighDateTime) << 32 | u64::from(time.dwLowDateTime)
}

/// A time in units of 100 ns, in nanoseconds.
pub(super) fn nanoseconds(time: FILETIME) -> u64 {
    units(time).saturating_mul(100)
}

/// The kind of processor that a process's code is for; `None` if the system does not provide it. Translated programs
/// are distinguished from native ones only since Windows 11, which is the first that translates 64-bit programs.
pub(crate) fn machine(process: &OwnedHandle) -> Option<IMAGE_FILE_MACHINE> {
    provided_machine(process).or_else(|| {
        let [process, native] = emulated_and_native(process.as_raw_handle())?;
        is_known(process).or(is_known(native))
    })
}

/// The same as Windows 11 states it.
fn provided_machine(process: &OwnedHandle) -> Option<IMAGE_FILE_MACHINE> {
    type GetProcessInformation =
        unsafe extern "system" fn(HANDLE, PROCESS_INFORMATION_CLASS, *mut c_void, u32) -> BOOL;
    static FUNCTION: OnceLock<Option<GetProcessInformation>> = OnceLock::new();
    let function = (*FUNCTION.get_or_init(|| {
        let found = optional_function(c"GetProcessInformation")?;
        // SAFETY: the function of this name has this type.
        Some(unsafe { mem::transmute::<unsafe extern "system" fn() -> isize, GetProcessInformation>(found) })
    }))?;
    let mut information = PROCESS_MACHINE_INFORMATION::default();
    let (out, size) = ((&raw mut information).cast(), size_of_val(&information) as u32);
    // SAFETY: the handle is open; the structure has the size that is passed, and lives through the call.
    let known = unsafe { function(process.as_raw_handle(), ProcessMachineTypeInfo, out, size) };
    Some(information.ProcessMachine).filter(|_| known != 0).and_then(is_known)
}

/// The kind of processor that this machine has, whatever this program's code is for.
pub(crate) fn native_machine() -> Option<IMAGE_FILE_MACHINE> {
    // SAFETY: the call takes no pointers. The handle means this process and is never closed.
    let [_, native] = emulated_and_native(unsafe { GetCurrentProcess() })?;
    is_known(native)
}

/// The kind of processor of a 32-bit process, which is unknown for others, and that of the machine.
fn emulated_and_native(process: HANDLE) -> Option<[IMAGE_FILE_MACHINE; 2]> {
    let [mut emulated, mut native] = [IMAGE_FILE_MACHINE_UNKNOWN; 2];
    // SAFETY: the handle is open, and both numbers live through the call.
    let known = unsafe { IsWow64Process2(process, &raw mut emulated, &raw mut native) };
    (known != 0).then_some([emulated, native])
}

fn is_known(machine: IMAGE_FILE_MACHINE) -> Option<IMAGE_FILE_MACHINE> {
    Some(machine).filter(|machine| *machine != IMAGE_FILE_MACHINE_UNKNOWN)
}

/// The path of the program's file.
pub(crate) fn program(process: &OwnedHandle) -> Option<String> {
    let mut units = vec![0; MAX_PATH_LEN];
    let mut len = units.len() as u32;
    // SAFETY: the handle is open; `units` has `len` units, and both live through the call.
    let found =
        unsafe { QueryFullProcessImageNameW(process.as_raw_handle(), 0, units.as_mut_ptr(), &raw mut len) };
    (found != 0).then(|| text(units.get(..len as usize).unwrap_or_default()))
}

/// The number of CPUs, of all groups. A machine with more than 64 has several groups.
pub(crate) fn cpus() -> usize {
    // SAFETY: the call takes no pointers.
    (unsafe { GetActiveProcessorCount(ALL_PROCESSOR_GROUPS) } as usize).max(1)
}

/// Gives a thread a higher CPU priority until it is dropped. Threads that read or convert samples need it:
/// beside many busy threads they would fall behind, and samples would be lost.
#[derive(Debug)]
pub struct Preference {
    before: i32,
}

impl Preference {
    /// Gives the calling thread more CPU time than others.
    #[must_use]
    pub fn of_this_thread() -> Self {
        Self::with(THREAD_PRIORITY_HIGHEST)
    }

    /// Gives the calling thread a CPU as soon as it is woken. It must sleep most of the time.
    #[must_use]
    pub fn at_once() -> Self {
        Self::with(THREAD_PRIORITY_TIME_CRITICAL)
    }

    fn with(priority: i32) -> Self {
        // SAFETY: the calls take no pointers, and the handle means the calling thread.
        unsafe {
            let before = GetThreadPriority(GetCurrentThread());
            SetThreadPriority(GetCurrentThread(), priority);
            Self { before }
        }
    }
}

impl Drop for Preference {
    fn drop(&mut self) {
        if self.before != NO_PRIORITY {
            // SAFETY: the call takes no pointers, and the handle means the calling thread.
            unsafe { SetThreadPriority(GetCurrentThread(), self.before) };
        }
    }
}
