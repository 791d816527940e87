//! The numbers of the ABI, under the kernel's own names (`include/uapi/linux/perf_event.h`).

/// `enum perf_event_type`.
pub mod record {
    #![allow(missing_docs, reason = "the names are the kernel's own, and its header documents them")]
    pub const MMAP: u32 = 1;
    pub const LOST: u32 = 2;
    pub const COMM: u32 = 3;
    pub const EXIT: u32 = 4;
    pub const THROTTLE: u32 = 5;
    pub const UNTHROTTLE: u32 = 6;
    pub const FORK: u32 = 7;
    pub const READ: u32 = 8;
    pub const SAMPLE: u32 = 9;
    pub const MMAP2: u32 = 10;
    pub const LOST_SAMPLES: u32 = 13;
    pub const SWITCH: u32 = 14;
    pub const SWITCH_CPU_WIDE: u32 = 15;
    pub const NAMESPACES: u32 = 16;
    pub const KSYMBOL: u32 = 17;
    pub const BPF_EVENT: u32 = 18;
    pub const CGROUP: u32 = 19;
    pub const TEXT_POKE: u32 = 20;
    pub const CALLCHAIN_DEFERRED: u32 = 22;
}

/// The bits of `perf_event_header.misc`.
pub mod misc {
    #![allow(missing_docs, reason = "the names are the kernel's own, and its header documents them")]
    pub const CPUMODE_MASK: u16 = 7;
    pub const KERNEL: u16 = 1;
    pub const USER: u16 = 2;
    pub const HYPERVISOR: u16 = 3;
    pub const GUEST_KERNEL: u16 = 4;
    pub const GUEST_USER: u16 = 5;
    pub const MMAP_DATA: u16 = 1 << 13;
    pub const COMM_EXEC: u16 = 1 << 13;
    pub const SWITCH_OUT: u16 = 1 << 13;
    pub const EXACT_IP: u16 = 1 << 14;
    pub const SWITCH_OUT_PREEMPT: u16 = 1 << 14;
    pub const MMAP_BUILD_ID: u16 = 1 << 14;
    /// Perf's extension: samples that its filter left out.
    pub const LOST_SAMPLES_BPF: u16 = 1 << 15;
}

/// `enum perf_callchain_context`: words in a call chain that are not addresses but mark what follows.
pub mod context {
    #![allow(missing_docs, reason = "the names are the kernel's own, and its header documents them")]
    pub const HV: u64 = -32_i64 as u64;
    pub const KERNEL: u64 = -128_i64 as u64;
    pub const USER: u64 = -512_i64 as u64;
    /// The user's part is in a separate record with the number that follows.
    pub const USER_DEFERRED: u64 = -640_i64 as u64;
    pub const GUEST: u64 = -2048_i64 as u64;
    pub const GUEST_KERNEL: u64 = -2176_i64 as u64;
    pub const GUEST_USER: u64 = -2560_i64 as u64;
    /// Every word from here on is a context and not an address.
    pub const MAX: u64 = -4095_i64 as u64;
}

/// The registers of x86 in the order of a sample's mask (`arch/x86/include/uapi/asm/perf_regs.h`,
/// `enum perf_event_x86_regs`).
pub mod x86 {
    #![allow(missing_docs, reason = "the names are the kernel's own, and its header documents them")]
    pub const AX: u32 = 0;
    pub const BX: u32 = 1;
    pub const CX: u32 = 2;
    pub const DX: u32 = 3;
    pub const SI: u32 = 4;
    pub const DI: u32 = 5;
    pub const BP: u32 = 6;
    pub const SP: u32 = 7;
    pub const IP: u32 = 8;
    pub const FLAGS: u32 = 9;
    pub const CS: u32 = 10;
    pub const SS: u32 = 11;
    /// The first of r8 to r15.
    pub const R8: u32 = 16;
    /// The user registers that can be requested on x86_64 with a 64-bit kernel: all except the segment
    /// registers ds, es, fs and gs (`arch/x86/kernel/perf_regs.c`, `REG_NOSUPPORT`).
    pub const ALL_64: u64 = 0xff_0fff;
}

/// The registers of 64-bit ARM in the order of a sample's mask (`arch/arm64/include/uapi/asm/perf_regs.h`,
/// `enum perf_event_arm_regs`): x0 to x30 by their numbers, then these.
pub mod aarch64 {
    #![allow(missing_docs, reason = "the names are the kernel's own, and its header documents them")]
    pub const SP: u32 = 31;
    pub const PC: u32 = 32;
    /// All registers of user code, without the length of vectors, which not all kernels have.
    pub const ALL_64: u64 = (1 << 33) - 1;
}
