//! Declarations of the Mach interface, from the public headers `mach/mach_init.h`, `mach/task.h`,
//! `mach/thread_act.h`, `mach/mach_vm.h`, `mach/mach_port.h`, `mach/mach_time.h`, `mach/thread_info.h`,
//! `mach/task_info.h`, `mach/vm_region.h`, `mach/arm/_structs.h` and `mach/i386/_structs.h`.

use std::ffi::{c_char, c_int};

/// The name of a port in this process (`mach_port_name_t`).
pub(super) type Name = u32;
/// The result of a call (`kern_return_t`).
pub(super) type Status = c_int;
/// The only status that is no failure (`KERN_SUCCESS`).
pub(super) const SUCCESS: Status = 0;

pub(super) const THREAD_BASIC_INFO: c_int = 3;
pub(super) const THREAD_IDENTIFIER_INFO: c_int = 4;
pub(super) const THREAD_EXTENDED_INFO: c_int = 5;
pub(super) const TH_STATE_RUNNING: c_int = 1;
pub(super) const TASK_DYLD_INFO: c_int = 17;
pub(super) const TASK_DYLD_ALL_IMAGE_INFO_64: c_int = 1;
pub(super) const VM_REGION_BASIC_INFO_64: c_int = 9;

/// Seconds and microseconds (`time_value_t`).
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct TimeValue {
    pub(super) seconds: c_int,
    pub(super) microseconds: c_int,
}

/// `thread_basic_info`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct ThreadBasicInfo {
    pub(super) user_time: TimeValue,
    pub(super) system_time: TimeValue,
    pub(super) cpu_usage: c_int,
    pub(super) policy: c_int,
    pub(super) run_state: c_int,
    pub(super) flags: c_int,
    pub(super) suspend_count: c_int,
    pub(super) sleep_time: c_int,
}

/// `thread_identifier_info`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct ThreadIdentifierInfo {
    pub(super) thread_id: u64,
    pub(super) thread_handle: u64,
    pub(super) dispatch_qaddr: u64,
}

/// `thread_extended_info`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct ThreadExtendedInfo {
    pub(super) user_time: u64,
    pub(super) system_time: u64,
    pub(super) cpu_usage: c_int,
    pub(super) policy: c_int,
    pub(super) run_state: c_int,
    pub(super) flags: c_int,
    pub(super) sleep_time: c_int,
    pub(super) current_priority: c_int,
    pub(super) priority: c_int,
    pub(super) highest_priority: c_int,
    pub(super) name: [c_char; 64],
}

/// `task_dyld_info`. The header packs its structures to 4 bytes.
#[repr(C, packed(4))]
#[derive(Clone, Copy, Default)]
pub(super) struct TaskDyldInfo {
    pub(super) address: u64,
    pub(super) size: u64,
    pub(super) format: c_int,
}

/// `vm_region_basic_info_64`. The header packs its structures to 4 bytes.
#[repr(C, packed(4))]
#[derive(Clone, Copy, Default)]
pub(super) struct RegionBasicInfo {
    pub(super) protection: c_int,
    pub(super) max_protection: c_int,
    pub(super) inheritance: u32,
    pub(super) shared: u32,
    pub(super) reserved: u32,
    pub(super) offset: u64,
    pub(super) behavior: c_int,
    pub(super) user_wired_count: u16,
}

/// `ARM_THREAD_STATE64` and `arm_thread_state64_t`.
#[cfg(target_arch = "aarch64")]
pub(super) const THREAD_STATE: c_int = 6;

/// `arm_thread_state64_t` as programs see it that do not authenticate pointers.
#[cfg(target_arch = "aarch64")]
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct ThreadState {
    pub(super) x: [u64; 29],
    pub(super) fp: u64,
    pub(super) lr: u64,
    pub(super) sp: u64,
    pub(super) pc: u64,
    pub(super) cpsr: u32,
    pub(super) flags: u32,
}

/// `x86_THREAD_STATE64`.
#[cfg(target_arch = "x86_64")]
pub(super) const THREAD_STATE: c_int = 4;

/// `x86_thread_state64_t`.
#[cfg(target_arch = "x86_64")]
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct ThreadState {
    pub(super) rax: u64,
    pub(super) rbx: u64,
    pub(super) rcx: u64,
    pub(super) rdx: u64,
    pub(super) rdi: u64,
    pub(super) rsi: u64,
    pub(super) rbp: u64,
    pub(super) rsp: u64,
    pub(super) r8: u64,
    pub(super) r9: u64,
    pub(super) r10: u64,
    pub(super) r11: u64,
    pub(super) r12: u64,
    pub(super) r13: u64,
    pub(super) r14: u64,
    pub(super) r15: u64,
    pub(super) rip: u64,
    pub(super) rflags: u64,
    pub(super) cs: u64,
    pub(super) fs: u64,
    pub(super) gs: u64,
}

/// `mach_timebase_info`: the fraction by which counts become nanoseconds.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct Timebase {
    pub(super) numer: u32,
    pub(super) denom: u32,
}

/// The size of a structure in the unit of the calls, which is 4 bytes (`natural_t`).
pub(super) const fn words<T>() -> u32 {
    (size_of::<T>() / size_of::<u32>()) as u32
}

// The counts that the headers state, such as `THREAD_BASIC_INFO_COUNT`.
const _: () = assert!(words::<ThreadBasicInfo>() == 10 && words::<ThreadIdentifierInfo>() == 6);
const _: () = assert!(words::<ThreadExtendedInfo>() == 28 && words::<TaskDyldInfo>() == 5);
const _: () = assert!(words::<RegionBasicInfo>() == 9);
#[cfg(target_arch = "aarch64")]
const _: () = assert!(words::<ThreadState>() == 68);
#[cfg(target_arch = "x86_64")]
const _: () = assert!(words::<ThreadState>() == 42);

unsafe extern "C" {
    /// This process's own task port, which the C library sets before `main` (`mach_task_self()`).
    pub(super) safe static mach_task_self_: Name;

    pub(super) fn task_for_pid(own: Name, pid: c_int, task: *mut Name) -> Status;
    pub(super) fn task_threads(task: Name, threads: *mut *mut Name, count: *mut u32) -> Status;
    pub(super) fn task_info(task: Name, flavor: c_int, info: *mut c_int, words: *mut u32) -> Status;
    pub(super) fn thread_info(thread: Name, flavor: c_int, info: *mut c_int, words: *mut u32) -> Status;
    pub(super) fn thread_suspend(thread: Name) -> Status;
    pub(super) fn thread_resume(thread: Name) -> Status;
    pub(super) fn thread_get_state(thread: Name, flavor: c_int, state: *mut u32, words: *mut u32) -> Status;
    pub(super) fn mach_port_deallocate(own: Name, name: Name) -> Status;
    pub(super) fn mach_vm_deallocate(own: Name, address: u64, size: u64) -> Status;
    pub(super) fn mach_vm_read_overwrite(
        task: Name,
        address: u64,
        size: u64,
        data: u64,
        copied: *mut u64,
    ) -> Status;
    pub(super) fn mach_vm_region(
        task: Name,
        address: *mut u64,
        size: *mut u64,
        flavor: c_int,
        info: *mut c_int,
        words: *mut u32,
        object: *mut Name,
    ) -> Status;
    pub(super) safe fn mach_absolute_time() -> u64;
    pub(super) fn mach_timebase_info(info: *mut Timebase) -> Status;
}
