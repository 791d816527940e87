//! The classes of the kernel's events, by their identifiers (Microsoft's "Event Tracing MOF Classes": the `Guid`
//! qualifier of each class).

use crate::Guid;

/// `EventTraceEvent`: what the session says of itself. Its first event is the header of a trace.
pub const EVENT_TRACE: Guid = Guid(0x68fd_d900_4a3e_11d1_84f4_0000_f804_64e3);
/// `Process`.
pub const PROCESS: Guid = Guid(0x3d6f_a8d0_fe05_11d0_9dda_00c0_4fd7_ba7c);
/// `Thread`.
pub const THREAD: Guid = Guid(0x3d6f_a8d1_fe05_11d0_9dda_00c0_4fd7_ba7c);
/// `Image`: files that are mapped for their code.
pub const IMAGE: Guid = Guid(0x2cb1_5d1d_5fc1_11d2_abe1_00a0_c911_f518);
/// `PerfInfo`: samples, among others.
pub const PERF_INFO: Guid = Guid(0xce1d_bfb4_137e_4da6_87b0_3f59_aa10_2cbc);
/// `StackWalk`.
pub const STACK_WALK: Guid = Guid(0xdef2_fe46_7bd6_4b80_bd94_f57f_e20d_0ce3);
/// `KernelTraceControl`'s `ImageID`: what a merge of traces adds about images. It is in no MOF class;
/// Microsoft's reader PerfView describes it (`SymbolTraceEventParser`).
pub const IMAGE_ID: Guid = Guid(0xb3e6_75d7_2554_4f18_830b_2762_7325_60de);
/// `KernelTraceControl`'s `SysConfigEx`: what a merge of traces adds about the system. It is in no MOF class;
/// PerfView describes it (`KernelTraceEventParser`).
pub const SYSTEM_CONFIG_EX: Guid = Guid(0x9b79_ee91_b5fd_41c0_a243_4248_e266_e9d0);
