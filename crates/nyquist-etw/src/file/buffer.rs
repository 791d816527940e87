//! The header of a buffer (`WMI_BUFFER_HEADER`), whose first part is `WNODE_HEADER` (wmistr.h).

/// A buffer's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BufferHeader {
    /// The number of bytes in the file, with this header.
    pub(super) size: u32,
    /// The number of bytes that are used, with this header. If the buffer is compressed, they are counted
    /// after decompression.
    pub(super) used: u32,
    /// Counts the buffers of the session.
    pub(super) sequence: u64,
    /// The CPU.
    pub(super) cpu: u16,
    /// The session, in a file that was merged from those of several sessions.
    pub(super) session: u16,
    /// The state; in the first buffer of a compressed file, its lower half is the compression.
    pub(super) state: u32,
    flags: u16,
    kind: u16,
}

impl BufferHeader {
    /// Its size in bytes.
    pub(super) const SIZE: usize = 72;

    /// `ETW_BUFFER_FLAG_PROC_INDEX`: the CPU's number has 16 bits, and not 8.
    const LONG_CPU: u16 = 0x20;
    /// `ETW_BUFFER_FLAG_COMPRESSED`.
    const COMPRESSED: u16 = 0x40;
    /// `ETW_BUFFER_TYPE_HEADER`.
    const HEADER: u16 = 4;

    pub(super) fn parse(bytes: &[u8; Self::SIZE]) -> Self {
        let flags = u16_at(bytes, 52);
        let long_cpu = u16_at(bytes, 40);
        let cpu = if flags & Self::LONG_CPU == 0 { long_cpu & 0xff } else { long_cpu };
        Self {
            size: u32_at(bytes, 0),
            used: u32_at(bytes, 4),
            sequence: u64::from(u32_at(bytes, 28)) << 32 | u64::from(u32_at(bytes, 24)),
            cpu,
            session: u16_at(bytes, 42),
            state: u32_at(bytes, 44),
            flags,
            kind: u16_at(bytes, 54),
        }
    }

    /// Whether the events after the header are compressed.
    pub(super) fn is_compressed(&self) -> bool {
        self.flags & Self::COMPRESSED != 0
    }

    /// Whether it is the buffer that describes the trace.
    pub(super) fn is_of_header(&self) -> bool {
        self.kind == Self::HEADER
    }
}

fn u16_at(bytes: &[u8; BufferHeader::SIZE], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8; BufferHeader::SIZE], at: usize) -> u32 {
    u32::from(u16_at(bytes, at + 2)) << 16 | u32::from(u16_at(bytes, at))
}
