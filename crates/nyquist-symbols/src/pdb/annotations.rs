//! The code of an inlined call, and its lines, are encoded as a small program in the inlined call's record
//! (Microsoft's `cvinfo.h`, `BinaryAnnotationOpcode`).

use super::lines::SourceLocation;

/// A line of an inlined function: the code from `start` up to `end` is from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InlineLine {
    /// Offsets in the function that the call was inlined into.
    pub(super) start: u32,
    pub(super) end: u32,
    pub(super) place: SourceLocation,
}

/// Reads numbers of one, two or four bytes. The highest bits of the first byte determine the size.
struct AnnotationNumbers<'a>(std::slice::Iter<'a, u8>);

impl AnnotationNumbers<'_> {
    fn unsigned(&mut self) -> Option<u32> {
        let first = u32::from(*self.0.next()?);
        let mut more = |high: u32, count: u32| {
            (0..count).try_fold(high, |value, _| Some(value << 8 | u32::from(*self.0.next()?)))
        };
        match first {
            0x00..=0x7f => Some(first),
            0x80..=0xbf => more(first & 0x3f, 1),
            0xc0..=0xdf => more(first & 0x1f, 3),
            _ => None,
        }
    }

    /// The sign is in the lowest bit.
    fn signed(&mut self) -> Option<i32> {
        self.unsigned().map(signed)
    }
}

fn signed(value: u32) -> i32 {
    let magnitude = (value >> 1) as i32;
    if value & 1 == 0 { magnitude } else { -magnitude }
}

/// The lines of the program `annotations`, beginning at the start of the inlined function. A damaged program
/// has the lines before the damage.
pub(super) fn run(annotations: &[u8], start: SourceLocation) -> Vec<InlineLine> {
    let mut machine = AnnotationMachine { offset: 0, place: start, lines: Vec::new(), is_open: false };
    let mut numbers = AnnotationNumbers(annotations.iter());
    while machine.step(&mut numbers).is_some() {}
    // The last line has no end if its length is missing.
    machine.lines.retain(|line| line.start < line.end);
    machine.lines
}

struct AnnotationMachine {
    offset: u32,
    place: SourceLocation,
    lines: Vec<InlineLine>,
    /// Whether the last line's end is not known yet.
    is_open: bool,
}

impl AnnotationMachine {
    fn step(&mut self, numbers: &mut AnnotationNumbers<'_>) -> Option<()> {
        match numbers.unsigned()? {
            1 => self.offset = numbers.unsigned()?,
            3 => {
                self.offset = self.offset.checked_add(numbers.unsigned()?)?;
                self.begin_line();
            }
            4 => {
                let len = numbers.unsigned()?;
                self.offset = self.offset.checked_add(len)?;
                self.end_line(self.offset);
            }
            5 => self.place.file = numbers.unsigned()?,
            6 => self.place.line = self.place.line.wrapping_add_signed(numbers.signed()?),
            11 => {
                let both = numbers.unsigned()?;
                self.place.line = self.place.line.wrapping_add_signed(signed(both >> 4));
                self.offset = self.offset.checked_add(both & 15)?;
                self.begin_line();
            }
            12 => {
                let (len, distance) = (numbers.unsigned()?, numbers.unsigned()?);
                self.offset = self.offset.checked_add(distance)?;
                self.begin_line();
                self.end_line(self.offset.checked_add(len)?);
            }
            9 => self.place.column = numbers.unsigned()?,
            2 | 7 | 8 | 10 | 13 => {
                numbers.unsigned()?;
            }
            _ => return None,
        }
        Some(())
    }

    fn begin_line(&mut self) {
        self.end_line(self.offset);
        self.lines.push(InlineLine { start: self.offset, end: u32::MAX, place: self.place });
        self.is_open = true;
    }

    fn end_line(&mut self, end: u32) {
        if let Some(last) = self.lines.last_mut().filter(|_| self.is_open) {
            last.end = end;
            self.is_open = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(annotations: &[u8], expected: &[(u32, u32, u32, u32)]) {
        let start = SourceLocation { file: 7, line: 100, column: 0 };
        let found: Vec<_> = run(annotations, start)
            .into_iter()
            .map(|line| (line.start, line.end, line.place.file, line.place.line))
            .collect();
        assert_eq!(found, expected, "{annotations:x?}");
    }

    #[test]
    fn lines_end_at_the_next_or_after_their_length() {
        // line + 1 at + 5; line + 2 at + 3, 4 bytes long.
        check(&[11, 0x25, 11, 0x43, 4, 4], &[(5, 8, 7, 101), (8, 12, 7, 103)]);
        // + 16, a length of its own; line - 1 after a gap; another file.
        check(&[12, 2, 16, 6, 3, 3, 8, 4, 1], &[(16, 18, 7, 100), (24, 25, 7, 99)]);
        check(&[3, 1, 5, 9, 3, 1, 4, 1], &[(1, 2, 7, 100), (2, 3, 9, 100)]);
    }

    #[test]
    fn numbers_have_one_two_or_four_bytes() {
        check(&[3, 0x81, 0x02, 4, 1], &[(0x102, 0x103, 7, 100)]);
        check(&[3, 0xc1, 0x02, 0x03, 0x04, 4, 1], &[(0x0102_0304, 0x0102_0305, 7, 100)]);
    }

    #[test]
    fn damage_ends_a_program() {
        check(&[], &[]);
        check(&[0, 0, 0], &[]);
        check(&[3], &[]);
        check(&[3, 1, 4, 1, 0xff, 3, 1], &[(1, 2, 7, 100)]);
        check(
            &[3, 0xdf, 0xff, 0xff, 0xff, 4, 1].repeat(9)[..14].repeat(5),
            &[
                (0x1fff_ffff, 0x2000_0000, 7, 100),
                (0x3fff_ffff, 0x4000_0000, 7, 100),
                (0x5fff_ffff, 0x6000_0000, 7, 100),
                (0x7fff_ffff, 0x8000_0000, 7, 100),
                (0x9fff_ffff, 0xa000_0000, 7, 100),
                (0xbfff_ffff, 0xc000_0000, 7, 100),
                (0xdfff_ffff, 0xe000_0000, 7, 100),
            ],
        );
    }
}
