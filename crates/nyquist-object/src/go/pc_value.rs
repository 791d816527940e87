//! Lists of values by instruction: its line, or the depth of its stack.

/// A value, and the instructions that it applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PcValue {
    /// The offset in bytes from the function's start where it begins to apply.
    pub start: u64,
    /// The offset in bytes where it ends.
    pub end: u64,
    /// The value.
    pub value: i32,
}

/// Reads the list at the start of its bytes. It has pairs of differences, of the value and of the address,
/// each as a LEB128 ("Go 1.2 Runtime Symbol Information", "PC-Value Table Encoding"; `step`).
///
/// It ends with the list or, if the list has no end, with the bytes.
#[derive(Clone, Debug)]
pub struct PcValueReader<'a> {
    bytes: &'a [u8],
    quantum: u8,
    end: u64,
    value: i32,
    is_whole: bool,
}

impl<'a> PcValueReader<'a> {
    /// The values of a list. `quantum` is [`super::TableHeader::quantum`].
    pub fn new(bytes: &'a [u8], quantum: u8) -> Self {
        Self { bytes, quantum, end: 0, value: -1, is_whole: false }
    }

    /// Whether the list was read to its end, and not only to the end of the bytes.
    pub fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// A LEB128; bits beyond the 32nd are dropped, because no valid number has them.
    fn number(&mut self) -> Option<u32> {
        let mut value = 0;
        let mut shift = 0_u32;
        loop {
            let (&byte, rest) = self.bytes.split_first()?;
            self.bytes = rest;
            value |= u32::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
            if byte < 0x80 {
                return Some(value);
            }
            shift = shift.saturating_add(7);
        }
    }
}

impl Iterator for PcValueReader<'_> {
    type Item = PcValue;

    fn next(&mut self) -> Option<PcValue> {
        if self.is_whole {
            return None;
        }
        let difference = self.number()?;
        let advance = if difference == 0 && self.end != 0 { 0 } else { self.number()? };
        if advance == 0 {
            self.is_whole = true;
            return None;
        }
        // The lowest bit is the sign.
        let sign = -((difference & 1) as i32);
        self.value = self.value.wrapping_add((difference >> 1) as i32 ^ sign);
        let start = self.end;
        self.end += u64::from(advance) * u64::from(self.quantum);
        Some(PcValue { start, end: self.end, value: self.value })
    }
}
