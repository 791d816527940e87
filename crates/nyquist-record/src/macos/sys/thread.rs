//! Threads of other processes: their registers, their CPU time, and stopping them for a moment.

use nyquist_convert::event::Registers;

use super::mach::{
    SUCCESS, TH_STATE_RUNNING, THREAD_BASIC_INFO, THREAD_EXTENDED_INFO, THREAD_IDENTIFIER_INFO, THREAD_STATE,
    ThreadBasicInfo, ThreadExtendedInfo, ThreadIdentifierInfo, ThreadState, TimeValue, thread_get_state,
    thread_info, thread_resume, thread_suspend, words,
};
use super::port::Port;

/// Suspends a thread. Returns whether that was possible: it is not if the thread has ended. A system call that
/// the thread waits in goes on, and is not interrupted.
pub(crate) fn suspend(thread: &Port) -> bool {
    // SAFETY: the call takes a name of a right that this process owns. The thread is of another process, so it
    // holds no lock that this one needs.
    unsafe { thread_suspend(thread.name()) == SUCCESS }
}

/// Takes back one suspension.
pub(crate) fn resume(thread: &Port) {
    // SAFETY: the call takes a name of a right that this process owns. It fails for a thread that has ended,
    // which needs no resuming.
    unsafe { thread_resume(thread.name()) };
}

/// The general registers of a suspended thread. Allocates nothing.
pub(crate) struct ThreadRegisters(ThreadState);

impl ThreadRegisters {
    /// Reads them.
    pub(crate) fn read(thread: &Port) -> Option<Self> {
        let mut state = ThreadState::default();
        let mut len = words::<ThreadState>();
        // SAFETY: both pointers live through the call. `state` has `len` words, of which the kernel writes no
        // more, and any bits are valid in it.
        let status =
            unsafe { thread_get_state(thread.name(), THREAD_STATE, (&raw mut state).cast(), &raw mut len) };
        (status == SUCCESS && len == words::<ThreadState>()).then_some(Self(state))
    }
}

/// The addresses of user memory have no more bits than these. Above them, signed pointers have their signature.
#[cfg(target_arch = "aarch64")]
const ADDRESS: u64 = (1 << 47) - 1;

#[cfg(target_arch = "aarch64")]
impl ThreadRegisters {
    /// The instruction pointer.
    pub(crate) fn instruction_pointer(&self) -> u64 {
        self.0.pc & ADDRESS
    }

    /// The stack pointer.
    pub(crate) fn stack_pointer(&self) -> u64 {
        self.0.sp & ADDRESS
    }

    /// In the form of events.
    pub(crate) fn event_registers(&self) -> Registers {
        let state = &self.0;
        let mut values = [0; 33];
        values[..29].copy_from_slice(&state.x);
        for (value, register) in values[29..].iter_mut().zip([state.fp, state.lr, state.sp, state.pc]) {
            *value = register & ADDRESS;
        }
        Registers::Aarch64(Box::new(values))
    }
}

#[cfg(target_arch = "x86_64")]
impl ThreadRegisters {
    /// The instruction pointer.
    pub(crate) fn instruction_pointer(&self) -> u64 {
        self.0.rip
    }

    /// The stack pointer.
    pub(crate) fn stack_pointer(&self) -> u64 {
        self.0.rsp
    }

    /// In the form of events.
    pub(crate) fn event_registers(&self) -> Registers {
        let it = &self.0;
        Registers::X86_64([
            it.rax, it.rdx, it.rcx, it.rbx, it.rsi, it.rdi, it.rbp, it.rsp, it.r8, it.r9, it.r10, it.r11,
            it.r12, it.r13, it.r14, it.r15, it.rip,
        ])
    }
}

/// What a thread has used, and whether it runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThreadUsage {
    /// Its CPU time in nanoseconds, user and kernel.
    pub(crate) cpu_ns: u64,
    /// Whether it has or awaits a CPU.
    pub(crate) is_running: bool,
}

/// What a thread has used; `None` if it has ended. The kernel counts the time of a thread that runs when the
/// thread enters or leaves the kernel.
pub(crate) fn used(thread: &Port) -> Option<ThreadUsage> {
    let mut info = ThreadBasicInfo::default();
    let mut len = words::<ThreadBasicInfo>();
    // SAFETY: both pointers live through the call. `info` has `len` words, of which the kernel writes no more.
    let status =
        unsafe { thread_info(thread.name(), THREAD_BASIC_INFO, (&raw mut info).cast(), &raw mut len) };
    (status == SUCCESS).then(|| ThreadUsage {
        cpu_ns: nanoseconds(info.user_time).saturating_add(nanoseconds(info.system_time)),
        is_running: info.run_state == TH_STATE_RUNNING,
    })
}

fn nanoseconds(time: TimeValue) -> u64 {
    let part = |value| u64::try_from(value).unwrap_or_default();
    part(time.seconds) * 1_000_000_000 + part(time.microseconds) * 1000
}

/// The number of a thread, which no other thread gets until the system is started again.
pub(crate) fn id(thread: &Port) -> Option<u64> {
    let mut info = ThreadIdentifierInfo::default();
    let mut len = words::<ThreadIdentifierInfo>();
    // SAFETY: both pointers live through the call. `info` has `len` words, of which the kernel writes no more.
    let status =
        unsafe { thread_info(thread.name(), THREAD_IDENTIFIER_INFO, (&raw mut info).cast(), &raw mut len) };
    (status == SUCCESS && info.thread_id != 0).then_some(info.thread_id)
}

/// The name that the program has given to a thread (`pthread_setname_np`).
pub(crate) fn name(thread: &Port) -> Option<String> {
    // SAFETY: the structure is plain numbers, for which zeros are valid.
    let mut info: ThreadExtendedInfo = unsafe { std::mem::zeroed() };
    let mut len = words::<ThreadExtendedInfo>();
    // SAFETY: both pointers live through the call. `info` has `len` words, of which the kernel writes no more.
    let status =
        unsafe { thread_info(thread.name(), THREAD_EXTENDED_INFO, (&raw mut info).cast(), &raw mut len) };
    let bytes: Vec<u8> = info.name.iter().take_while(|byte| **byte != 0).map(|byte| *byte as u8).collect();
    (status == SUCCESS && !bytes.is_empty()).then(|| String::from_utf8_lossy(&bytes).into_owned())
}
