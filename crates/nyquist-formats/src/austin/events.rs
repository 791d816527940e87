//! The events of Austin's binary form (MOJO), in the order of the file.
//!
//! It is described at <https://github.com/P403n1x87/austin/wiki/The-MOJO-file-format>. For later additions (a
//! stack that begins like the thread's last one, tasks of asyncio), the reference is the reader of
//! austin-python 2.4.

/// The magic number of every file.
const MAGIC: &[u8] = b"MOJ";

/// The supported versions. The second one has columns, the third one the interpreters' numbers, and the fourth one
/// stacks that begin like the thread's last one.
pub(super) const VERSIONS: std::ops::RangeInclusive<u64> = 1..=4;

/// An event. Keys belong to the process of the last [`Stack`](Self::Stack).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event<'a> {
    Metadata {
        key: &'a [u8],
        value: &'a [u8],
    },
    /// Begins a sample and ends the previous one. The thread is a number in hexadecimal digits.
    Stack {
        pid: u64,
        tid: &'a [u8],
    },
    /// Defines a frame.
    Frame {
        key: u64,
        file: u64,
        name: u64,
        line: u64,
        column: u64,
    },
    /// The sample's next frame, from the outermost one on.
    FrameRef(u64),
    InvalidFrame,
    /// A function of the kernel.
    KernelFrame(&'a [u8]),
    /// The garbage collector was running.
    Collecting,
    Idle,
    /// In µs.
    Time(i64),
    /// In bytes. Negative if memory was freed.
    Memory(i64),
    /// Defines a text.
    Text {
        key: u64,
        text: &'a [u8],
    },
    /// The sample's outer frames are those of the thread's previous sample, without the native ones at its
    /// inner end.
    Repeat,
    /// The stack of a task of asyncio: this many next frames belong to the task and not to the sample.
    TaskStack {
        frames: u64,
    },
    /// Other data of a task, or an unused reference to a text.
    Ignored,
}

/// The version of the file, if it begins with the magic number.
pub(super) fn version(bytes: &[u8]) -> Option<u64> {
    let [first, ..] = bytes.strip_prefix(MAGIC)? else { return None };
    // The sign and further bytes are in the two highest bits. Text has letters there.
    (1..0x20).contains(first).then(|| u64::from(*first))
}

/// The events, up to the first one that is damaged or truncated.
pub(super) struct MojoEvents<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Where the last event begins.
    last: usize,
    version: u64,
    is_broken: bool,
}

impl<'a> MojoEvents<'a> {
    /// The events of a file of this version.
    pub(super) fn new(bytes: &'a [u8], version: u64) -> Self {
        let at = MAGIC.len() + 1;
        Self { bytes, at, last: at, version, is_broken: false }
    }

    /// The offset of the event at which reading stopped, unless it was the end of the file.
    pub(super) fn broken_at(&self) -> Option<usize> {
        self.is_broken.then_some(self.last)
    }

    /// Marks the last event as invalid.
    pub(super) fn break_off(&mut self) {
        self.is_broken = true;
    }

    fn event(&self, cursor: &mut MojoCursor<'a>) -> Option<Event<'a>> {
        let kind = cursor.byte()?;
        let mut number = || cursor.unsigned();
        Some(match kind {
            1 => Event::Metadata { key: cursor.text()?, value: cursor.text()? },
            2 => {
                let pid = number()?;
                if self.version >= 3 {
                    number()?;
                }
                Event::Stack { pid, tid: cursor.text()? }
            }
            3 => {
                let [key, file, name, line] = [number()?, number()?, number()?, number()?];
                // The line and the column at which it ends are between and after these.
                let [_, column, _] =
                    if self.version >= 2 { [number()?, number()?, number()?] } else { [0; 3] };
                Event::Frame { key, file, name, line, column }
            }
            4 => Event::InvalidFrame,
            5 => Event::FrameRef(number()?),
            6 => Event::KernelFrame(cursor.text()?),
            7 => Event::Collecting,
            8 => Event::Idle,
            9 => Event::Time(cursor.signed()?),
            10 => Event::Memory(cursor.signed()?),
            11 => Event::Text { key: number()?, text: cursor.text()? },
            12 | 16 => number().map(|_| Event::Ignored)?,
            13 => Event::Repeat,
            14 => {
                let [_task, _name, frames] = [number()?, number()?, number()?];
                Event::TaskStack { frames }
            }
            15 => number().and(number()).map(|_| Event::Ignored)?,
            _ => return None,
        })
    }
}

impl<'a> Iterator for MojoEvents<'a> {
    type Item = Event<'a>;

    fn next(&mut self) -> Option<Event<'a>> {
        if self.is_broken || self.at >= self.bytes.len() {
            return None;
        }
        let mut cursor = MojoCursor { bytes: self.bytes, at: self.at };
        let event = self.event(&mut cursor);
        self.last = self.at;
        match event {
            Some(_) => self.at = cursor.at,
            None => self.is_broken = true,
        }
        event
    }
}

/// Bytes that are read in sequence. Every method returns `None` at the end of the bytes.
struct MojoCursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> MojoCursor<'a> {
    fn byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    /// A text that ends with a zero.
    fn text(&mut self) -> Option<&'a [u8]> {
        let rest = &self.bytes[self.at..];
        let length = rest.iter().position(|&byte| byte == 0)?;
        self.at += length + 1;
        Some(&rest[..length])
    }

    /// A number of at most 64 bits: its amount, and whether it is negative. Its lowest bits come first: six
    /// of them with the sign, and then seven in each byte.
    fn number(&mut self) -> Option<(u64, bool)> {
        let first = self.byte()?;
        let mut amount = u64::from(first & 0x3f);
        let (mut shift, mut byte) = (6_u32, first);
        while byte & 0x80 != 0 {
            byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if bits > 0 && (shift > 63 || bits > u64::MAX >> shift) {
                return None;
            }
            amount |= bits.checked_shl(shift).unwrap_or(0);
            shift = shift.saturating_add(7);
        }
        Some((amount, first & 0x40 != 0))
    }

    /// An unsigned number.
    fn unsigned(&mut self) -> Option<u64> {
        self.number().map(|(amount, _)| amount)
    }

    /// A signed number of at most 63 bits.
    fn signed(&mut self) -> Option<i64> {
        let (amount, is_negative) = self.number()?;
        let amount = i64::try_from(amount).ok()?;
        Some(if is_negative { -amount } else { amount })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_have_their_sign_in_the_first_byte() {
        fn signed(bytes: &[u8]) -> Option<i64> {
            MojoCursor { bytes, at: 0 }.signed()
        }
        fn unsigned(bytes: &[u8]) -> Option<u64> {
            MojoCursor { bytes, at: 0 }.unsigned()
        }
        // The example in the description.
        assert_eq!(signed(&[0xc3, 0x02]), Some(-131));
        assert_eq!([signed(&[0]), signed(&[0x3f]), signed(&[0x7f])], [Some(0), Some(63), Some(-63)]);
        // A key of Austin 3.7.
        let largest = [0xbf, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x03];
        assert_eq!((unsigned(&largest), signed(&largest)), (Some(u64::MAX), None));
        assert_eq!(unsigned(&[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x04]), None);
        let endless = [[0x80; 40].as_slice(), &[1]].concat();
        assert_eq!(unsigned(&endless), None);
        assert_eq!([unsigned(&[]), unsigned(&[0x80])], [None, None]);
    }

    #[test]
    fn a_file_has_a_version_of_one_byte() {
        assert_eq!(version(b"MOJ\x03\x01"), Some(3));
        assert_eq!([version(b"MOJO;main 3"), version(b"MOJ"), version(b"MOJ\0")], [None; 3]);
    }

    #[test]
    fn events_of_each_version_are_distinguished() {
        let stack = Event::Stack { pid: 7, tid: b"9" };
        let frame = |column| Event::Frame { key: 1, file: 2, name: 3, line: 4, column };
        let of = |bytes, version| MojoEvents::new(bytes, version).collect::<Vec<_>>();
        assert_eq!(of(b"MOJ\x01\x02\x079\0\x03\x01\x02\x03\x04", 1), [stack, frame(0)]);
        assert_eq!(of(b"MOJ\x02\x02\x079\0\x03\x01\x02\x03\x04\x05\x06\x08", 2), [stack, frame(6)]);
        assert_eq!(of(b"MOJ\x03\x02\x07\x009\0\x03\x01\x02\x03\x04\x05\x06\x08", 3), [stack, frame(6)]);
    }

    #[test]
    fn what_is_no_event_ends_them() {
        for (rest, at) in [(&b"\x07\x08"[..], None), (b"\x07\x11", Some(5)), (b"\x07\x08\x0b\x01ab", Some(6))]
        {
            let bytes = [b"MOJ\x03", rest].concat();
            let mut events = MojoEvents::new(&bytes, 3);
            assert!(events.by_ref().count() > 0);
            assert_eq!(events.broken_at(), at);
        }
    }
}
