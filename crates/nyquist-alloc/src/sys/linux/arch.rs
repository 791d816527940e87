//! What differs by processor: system calls, the thread's own memory, and the caller of an allocator.

use core::arch::{asm, global_asm};

/// The registers at the call of an allocator: those that its caller has again after the call.
#[derive(Clone, Copy)]
pub(in crate::sys) struct Caller {
    pub(in crate::sys) ip: usize,
    pub(in crate::sys) sp: usize,
    pub(in crate::sys) fp: usize,
}

// The thread's own memory, in the initial-exec model: no call is needed to find it. Calls would allocate.
global_asm!(
    ".pushsection .tbss,\"awT\",@nobits",
    ".p2align 6",
    ".globl nyquist_alloc_thread",
    ".hidden nyquist_alloc_thread",
    ".type nyquist_alloc_thread,@object",
    ".size nyquist_alloc_thread,128",
    "nyquist_alloc_thread:",
    ".zero 128",
    ".popsection",
);

// Rust's core library names this function, which finds what to do when a panic unwinds. Nothing unwinds here. It is
// hidden, because Rust's own shared libraries have a real one.
#[cfg(nyquist_preloaded)]
global_asm!(
    ".pushsection .text",
    ".globl rust_eh_personality",
    ".hidden rust_eh_personality",
    ".type rust_eh_personality,@function",
    "rust_eh_personality:",
    "ret",
    ".popsection",
);

/// The address of the 128 bytes that belong to the thread. They are zero at first.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) fn thread_memory() -> *mut u8 {
    let address: *mut u8;
    // SAFETY: it reads the offset of a symbol of this file and the thread pointer, which every thread of a C
    // library has.
    unsafe {
        asm!(
            "mov {0}, qword ptr [rip + nyquist_alloc_thread@GOTTPOFF]",
            "add {0}, qword ptr fs:[0]",
            out(reg) address,
            options(pure, readonly, nostack)
        );
    }
    address
}

/// The address of the 128 bytes that belong to the thread. They are zero at first.
#[cfg(target_arch = "aarch64")]
#[inline(always)]
pub(super) fn thread_memory() -> *mut u8 {
    let address: *mut u8;
    // SAFETY: it reads the offset of a symbol of this file and the thread pointer, which every thread of a C
    // library has.
    unsafe {
        asm!(
            "adrp {0}, :gottprel:nyquist_alloc_thread",
            "ldr {0}, [{0}, :gottprel_lo12:nyquist_alloc_thread]",
            "mrs {1}, tpidr_el0",
            "add {0}, {0}, {1}",
            out(reg) address,
            out(reg) _,
            options(pure, readonly, nostack)
        );
    }
    address
}

/// The thread pointer. The C library has it at the outer end of the stack of each thread but the first.
pub(super) fn thread_pointer() -> usize {
    let address: usize;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the first word behind the register is its own value, by the ABI.
    unsafe {
        asm!("mov {0}, qword ptr fs:[0]", out(reg) address, options(pure, readonly, nostack));
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: it reads a register.
    unsafe {
        asm!("mrs {0}, tpidr_el0", out(reg) address, options(pure, nomem, nostack));
    }
    address
}

/// The registers here, for a wrapper that is inlined into its caller.
#[cfg(not(nyquist_preloaded))]
#[inline(always)]
pub(in crate::sys) fn here() -> Caller {
    let (ip, sp, fp): (usize, usize, usize);
    #[cfg(target_arch = "x86_64")]
    // SAFETY: it reads registers.
    unsafe {
        asm!("lea {0}, [rip]", "mov {1}, rsp", "mov {2}, rbp", out(reg) ip, out(reg) sp, out(reg) fp, options(nomem, nostack));
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: it reads registers.
    unsafe {
        asm!("adr {0}, .", "mov {1}, sp", "mov {2}, x29", out(reg) ip, out(reg) sp, out(reg) fp, options(nomem, nostack));
    }
    Caller { ip, sp, fp }
}

/// Ends the process by a signal.
#[cfg(nyquist_operators)]
pub(super) fn trap() -> ! {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the instruction raises a signal, and does nothing else.
    unsafe {
        asm!("ud2", options(noreturn));
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: the instruction raises a signal, and does nothing else.
    unsafe {
        asm!("udf #0", options(noreturn));
    }
}

/// A system call with up to six arguments. Returns what the kernel does: an error is a small negative number.
///
/// # Safety
/// The arguments are those of a call that does not write to memory that Rust relies on.
pub(super) unsafe fn call(number: usize, arguments: [usize; 6]) -> isize {
    let result: isize;
    let [first, second, third, fourth, fifth, sixth] = arguments;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the caller's promise; the kernel changes these registers alone.
    unsafe {
        asm!("syscall", inlateout("rax") number as isize => result, in("rdi") first, in("rsi") second, in("rdx") third, in("r10") fourth, in("r8") fifth, in("r9") sixth, lateout("rcx") _, lateout("r11") _, options(nostack));
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: the caller's promise; the kernel changes the first register alone.
    unsafe {
        asm!("svc 0", in("x8") number, inlateout("x0") first as isize => result, in("x1") second, in("x2") third, in("x3") fourth, in("x4") fifth, in("x5") sixth, options(nostack));
    }
    result
}

/// The numbers of system calls.
#[cfg(target_arch = "x86_64")]
pub(super) mod number {
    pub(crate) const READ: usize = 0;
    pub(crate) const CLOSE: usize = 3;
    pub(crate) const MMAP: usize = 9;
    pub(crate) const RT_SIGPROCMASK: usize = 14;
    pub(crate) const SCHED_YIELD: usize = 24;
    pub(crate) const MADVISE: usize = 28;
    pub(crate) const NANOSLEEP: usize = 35;
    pub(crate) const GETPID: usize = 39;
    pub(crate) const GETTID: usize = 186;
    pub(crate) const CLOCK_GETTIME: usize = 228;
    pub(crate) const OPENAT: usize = 257;
    pub(crate) const READLINKAT: usize = 267;
    pub(crate) const FALLOCATE: usize = 285;
    pub(crate) const PRLIMIT64: usize = 302;
}

/// The numbers of system calls.
#[cfg(target_arch = "aarch64")]
pub(super) mod number {
    pub(crate) const FALLOCATE: usize = 47;
    pub(crate) const OPENAT: usize = 56;
    pub(crate) const CLOSE: usize = 57;
    pub(crate) const READ: usize = 63;
    pub(crate) const READLINKAT: usize = 78;
    pub(crate) const NANOSLEEP: usize = 101;
    pub(crate) const CLOCK_GETTIME: usize = 113;
    pub(crate) const SCHED_YIELD: usize = 124;
    pub(crate) const RT_SIGPROCMASK: usize = 135;
    pub(crate) const GETPID: usize = 172;
    pub(crate) const GETTID: usize = 178;
    pub(crate) const MMAP: usize = 222;
    pub(crate) const MADVISE: usize = 233;
    pub(crate) const PRLIMIT64: usize = 261;
}
