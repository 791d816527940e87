//! The marker files' layout, shared by the program that writes them and the recorder that reads them.
//!
//! `docs/markers.md` explains it for writers in any language. All numbers are little-endian. A file is a header
//! and a ring of records. The program appends and moves [`header::WRITTEN`], and the recorder takes out and
//! moves [`header::READ`]. Both count bytes since the file was made, and never wrap.

use std::borrow::Cow;

/// The variable that names the folder of marker files to a program that runs under a recorder.
pub const DIR_VARIABLE: &str = "NYQUIST_MARKER_DIR";

/// The first bytes of a marker file; the last of them is the version.
pub const MAGIC: [u8; 8] = *b"nyqmark\x01";

/// How the names of marker files end.
pub const EXTENSION: &str = "nyqmark";

/// The capacity of the rings that this crate makes, in bytes.
pub const CAPACITY: usize = 1 << 20;

/// The largest capacity that a reader takes.
pub const MAX_CAPACITY: u64 = 1 << 26;

/// The longest record, in bytes; what a writer has beyond that is left out.
pub const MAX_RECORD: usize = 1 << 14;

/// The longest values of a record together: beside them there is room for its name and a few numbers.
const MAX_VALUES: usize = MAX_RECORD - 2 * MAX_TEXT;

/// The longest text of a value, in bytes; what is longer is cut.
pub const MAX_TEXT: usize = 1024;

/// Where the parts of the header are.
pub mod header {
    /// [`MAGIC`](super::MAGIC).
    pub const MAGIC: usize = 0;
    /// u64: the number of bytes in the ring, a multiple of 8.
    pub const CAPACITY: usize = 8;
    /// u32: the process, as it counts itself.
    pub const PID: usize = 16;
    /// u64: the inode of its `/proc/self/ns/pid`, or 0.
    pub const PID_NAMESPACE: usize = 24;
    /// u64: the number of bytes that were ever written; stored with release order after the bytes.
    pub const WRITTEN: usize = 64;
    /// u64: the number of records that did not fit.
    pub const LOST: usize = 72;
    /// u64: the number of bytes that the recorder has taken.
    pub const READ: usize = 128;
    /// The length of the header: here the ring begins.
    pub const LEN: usize = 192;
}

/// The kinds of records: byte 4 of a record, after its whole length (u32, a multiple of 8). Byte 5 is 0, and then comes
/// a u16, the number of values or fields.
pub mod record {
    /// The length of what all records begin with.
    pub const HEADER: usize = 8;
    /// Nothing: up to the end of the ring.
    pub const PAD: u8 = 0;
    /// What follows is of another thread: its number (u32) as the program counts it.
    pub const THREAD: u8 = 1;
    /// Defines a kind of marker: its number (u32), texts, and fields of three texts each.
    pub const KIND: u8 = 2;
    /// An interval: kind (u32), length of the name (u32), start and end (u64), name, values.
    pub const INTERVAL: u8 = 3;
    /// A moment: like an interval, whose end is not looked at.
    pub const INSTANT: u8 = 4;
    /// The begin of an interval that may end on another thread: like an interval, with the id (u64) in the end's place.
    pub const START: u8 = 5;
    /// The end of such an interval: like its begin, with the end in the start's place. Its values count over the begin's.
    pub const END: u8 = 6;
}

/// The kinds of values: a value is its field's index (u8), its kind (u8), and what the kind says.
pub mod value {
    /// A whole number: i64.
    pub const INTEGER: u8 = 1;
    /// Any number: f64.
    pub const NUMBER: u8 = 2;
    /// Text: its length (u16) and its bytes in UTF-8.
    pub const TEXT: u8 = 3;
}

/// The number of the kind that needs no definition: markers of a name alone.
pub const PLAIN_KIND: u32 = 0;

/// The memory file (memfd_create(2)) of a program that a recorder may attach to. The recorder finds it among the program's
/// descriptors, switches markers on in its first page, and reads the rings that follow it. Each ring has the layout of a
/// marker file.
pub mod control {
    /// The memory file's name.
    pub const NAME: &str = "nyquist-markers";
    /// The length of the page that it begins with.
    pub const LEN: usize = 4096;
    /// The first bytes; the last is the version.
    pub const MAGIC: [u8; 8] = *b"nyqctrl\x02";
    /// u32, a futex, set by the recorder: [`OFF`], [`STOPPING`], or the number of a recording, which is another one each time.
    pub const STATE: usize = 8;
    /// The state while there is no recorder. The contents of rings are not needed then, and their memory can be
    /// freed.
    pub const OFF: u32 = 0;
    /// The state when a recording has ended: the program writes no more, and the recorder reads what is left.
    pub const STOPPING: u32 = 1;
    /// u32, set by the recorder: the number of the last recording.
    pub const LAST: usize = 12;
    /// u32, set by the program: how many rings it has ever begun to make. It adds one before it makes one.
    pub const RINGS: usize = 16;
    /// The longest ring with its header.
    pub const RING_LEN: usize = super::header::LEN + super::CAPACITY;
    /// How many rings of one recording are read.
    pub const MAX_RINGS: u32 = 1 << 14;
    /// Where the first ring is, and what is between two rings beside their bytes: any size of a page divides
    /// it.
    const GAP: u64 = 1 << 16;
    /// How far a ring is from the next one.
    pub const STRIDE: u64 = super::CAPACITY as u64 + GAP;

    /// Where a ring is. No number is used again as long as the program lives.
    pub const fn ring_at(number: u32) -> u64 {
        GAP + number as u64 * STRIDE
    }
}

/// What a [`record::KIND`] says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kind<'a> {
    /// The kind's name in the profile.
    pub name: Cow<'a, str>,
    /// The name of its markers, where they have none of their own.
    pub marker_name: &'a str,
    /// The line on which its markers are shown, if it is not the thread's.
    pub track: &'a str,
    /// The category, if it has one.
    pub category: &'a str,
    /// What it is.
    pub description: Cow<'a, str>,
    /// What the marker table shows, as `{marker.data.KEY}`; empty for the front end's own choice.
    pub table_label: &'a str,
    /// The fields.
    pub fields: Vec<Field<'a>>,
}

/// A field of a kind of marker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Field<'a> {
    /// Its key.
    pub key: &'a str,
    /// What is shown for the key; empty for the key itself.
    pub label: &'a str,
    /// The Firefox Profiler's name of a format, as `bytes`; empty for what fits the first value.
    pub format: &'a str,
}

/// Appends the definition of a kind.
pub fn put_kind(out: &mut Vec<u8>, number: u32, kind: &Kind<'_>) {
    let at = begin(out, record::KIND, kind.fields.len());
    out.extend_from_slice(&number.to_le_bytes());
    let texts =
        [&kind.name, kind.marker_name, kind.track, kind.category, &kind.description, kind.table_label];
    for text in texts {
        put_text(out, text);
    }
    for field in &kind.fields {
        for text in [field.key, field.label, field.format] {
            put_text(out, text);
        }
    }
    finish(out, at);
}

/// Appends the record that names the thread of what follows.
pub fn put_thread(out: &mut Vec<u8>, tid: u32) {
    let at = begin(out, record::THREAD, 0);
    out.extend_from_slice(&tid.to_le_bytes());
    finish(out, at);
}

/// Values, encoded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Values {
    bytes: Vec<u8>,
    count: usize,
}

/// A value that is a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// A whole number.
    Integer(i64),
    /// Any number.
    Any(f64),
}

impl Values {
    /// No values.
    pub const fn new() -> Self {
        Self { bytes: Vec::new(), count: 0 }
    }

    /// No values, with memory for those of so many fields if they are short.
    pub fn for_fields(fields: usize) -> Self {
        Self { bytes: Vec::with_capacity(fields * 16), count: 0 }
    }

    /// Adds the values of others, which count over these.
    pub fn append(&mut self, others: &Self) {
        if self.bytes.len() + others.bytes.len() <= MAX_VALUES {
            self.bytes.extend_from_slice(&others.bytes);
            self.count += others.count;
        }
    }

    /// Sets a field to a whole number.
    pub fn integer(&mut self, field: usize, value: i64) {
        self.put(field, value::INTEGER, &value.to_le_bytes());
    }

    /// Sets a field to a number.
    pub fn number(&mut self, field: usize, value: f64) {
        self.put(field, value::NUMBER, &value.to_le_bytes());
    }

    /// Sets a field to a text, which is cut where it is longer than [`MAX_TEXT`].
    pub fn text(&mut self, field: usize, value: &str) {
        let text = cut(value, MAX_TEXT);
        if self.put(field, value::TEXT, &(text.len() as u16).to_le_bytes()) {
            self.bytes.extend_from_slice(text.as_bytes());
        }
    }

    fn put(&mut self, field: usize, tag: u8, payload: &[u8]) -> bool {
        let Ok(field) = u8::try_from(field) else { return false };
        let fits = self.bytes.len() + MAX_TEXT + 16 <= MAX_VALUES;
        if fits {
            self.bytes.extend_from_slice(&[field, tag]);
            self.bytes.extend_from_slice(payload);
            self.count += 1;
        }
        fits
    }

    /// Forgets all of them, and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.count = 0;
    }
}

/// Appends a marker: `times` are its start and its end, or what the kind of record has in their places. An empty name
/// stands for the kind's. `more` are values beside those of `values`, at most 16.
pub fn put_marker(
    out: &mut Vec<u8>,
    (record, kind): (u8, u32),
    name: &str,
    times: (u64, u64),
    values: &Values,
    more: &[(usize, Number)],
) {
    let name = cut(name, MAX_TEXT);
    let at = begin(out, record, values.count + more.len());
    // In one piece: this is what each span costs.
    let mut fixed = [0; 24];
    fixed[..4].copy_from_slice(&kind.to_le_bytes());
    fixed[4..8].copy_from_slice(&(name.len() as u32).to_le_bytes());
    fixed[8..16].copy_from_slice(&times.0.to_le_bytes());
    fixed[16..].copy_from_slice(&times.1.to_le_bytes());
    out.extend_from_slice(&fixed);
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(&values.bytes);
    for &(field, number) in more {
        let (tag, payload) = match number {
            Number::Integer(number) => (value::INTEGER, number.to_le_bytes()),
            Number::Any(number) => (value::NUMBER, number.to_le_bytes()),
        };
        let mut value = [u8::try_from(field).unwrap_or(u8::MAX), tag, 0, 0, 0, 0, 0, 0, 0, 0];
        value[2..].copy_from_slice(&payload);
        out.extend_from_slice(&value);
    }
    finish(out, at);
}

fn begin(out: &mut Vec<u8>, record: u8, count: usize) -> usize {
    let at = out.len();
    let [low, high] = (count as u16).to_le_bytes();
    out.extend_from_slice(&[0, 0, 0, 0, record, 0, low, high]);
    at
}

/// Fills up the record to a multiple of 8 bytes and stores its length.
fn finish(out: &mut Vec<u8>, at: usize) {
    let filled = out.len() - at;
    let len = filled.next_multiple_of(8);
    out.extend_from_slice(&[0; 8][..len - filled]);
    out[at..at + 4].copy_from_slice(&(len as u32).to_le_bytes());
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    let text = cut(text, MAX_TEXT);
    out.extend_from_slice(&(text.len() as u16).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
}

/// The longest part of a text, from its start, that has at most `len` bytes.
fn cut(text: &str, len: usize) -> &str {
    if text.len() <= len { text } else { &text[..text.floor_char_boundary(len)] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_as_the_documentation_says() {
        let mut out = Vec::new();
        put_thread(&mut out, 7);
        assert_eq!(out, [16, 0, 0, 0, 1, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0]);

        out.clear();
        let mut values = Values::default();
        values.text(1, "ab");
        put_marker(&mut out, (record::INTERVAL, 3), "n", (5, 9), &values, &[]);
        let expected: &[u8] = &[
            40, 0, 0, 0, 3, 0, 1, 0, // the length, the kind of record, one value
            3, 0, 0, 0, 1, 0, 0, 0, // the kind of marker, the length of the name
            5, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, // start, end
            b'n', 1, 3, 2, 0, b'a', b'b', 0, // name, value, filling
        ];
        assert_eq!(out, expected);
    }

    #[test]
    fn texts_are_cut_at_whole_characters() {
        for (text, len, expected) in [("abc", 3, "abc"), ("abc", 2, "ab"), ("aé", 2, "a"), ("é", 1, "")] {
            assert_eq!(cut(text, len), expected);
        }
    }

    #[test]
    fn a_record_is_never_too_long() {
        let mut values = Values::default();
        for field in 0..1000 {
            values.text(field, &"x".repeat(5000));
        }
        let mut out = Vec::new();
        let name = "n".repeat(5000);
        put_marker(&mut out, (record::INSTANT, 1), &name, (1, 1), &values, &[]);
        assert!(out.len() <= MAX_RECORD, "{}", out.len());
        assert!(values.count >= 10, "{}", values.count);
    }
}
