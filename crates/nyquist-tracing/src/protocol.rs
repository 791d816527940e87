//! The layout of marker files, shared by the program that writes them and the recorder that reads them.
//!
//! `docs/markers.md` explains it for writers in any language. All numbers are little-endian. A file is a
//! header and a ring of records. The program appends records and advances [`header::WRITTEN`]. The
//! recorder reads them and advances [`header::READ`]. Both count bytes since the file was created, and
//! never wrap.

use std::borrow::Cow;

/// The variable with the folder of marker files, for a program that runs under a recorder.
pub const DIR_VARIABLE: &str = "NYQUIST_MARKER_DIR";

/// The first bytes of a marker file; the last of them is the version.
pub const MAGIC: [u8; 8] = *b"nyqmark\x01";

/// The suffix of marker files.
pub const EXTENSION: &str = "nyqmark";

/// The capacity of the rings that this crate makes, in bytes.
pub const CAPACITY: usize = 1 << 20;

/// The largest capacity that a reader accepts.
pub const MAX_CAPACITY: u64 = 1 << 26;

/// The maximum length of a record, in bytes; a writer leaves out the excess.
pub const MAX_RECORD: usize = 1 << 14;

/// The maximum length of all values of a record, which leaves space for its name and a few numbers.
const MAX_VALUES: usize = MAX_RECORD - 2 * MAX_TEXT;

/// The maximum length of a text value, in bytes; longer texts are cut.
pub const MAX_TEXT: usize = 1024;

/// The offsets of the header's fields.
pub mod header {
    /// [`MAGIC`](super::MAGIC).
    pub const MAGIC: usize = 0;
    /// u64: the number of bytes in the ring, a multiple of 8.
    pub const CAPACITY: usize = 8;
    /// u32: the process, by its own pid.
    pub const PID: usize = 16;
    /// u64: the inode of its `/proc/self/ns/pid`, or 0.
    pub const PID_NAMESPACE: usize = 24;
    /// u64: the total number of written bytes; stored with release order after the bytes.
    pub const WRITTEN: usize = 64;
    /// u64: the number of records that did not fit.
    pub const LOST: usize = 72;
    /// u64: the number of bytes that the recorder has read.
    pub const READ: usize = 128;
    /// The length of the header, which the ring follows.
    pub const LEN: usize = 192;
}

/// The kinds of records: byte 4 of a record, after its total length (u32, a multiple of 8). Byte 5 is 0.
/// Then comes a u16, the number of values or fields.
pub mod record {
    /// The length of the common start of all records.
    pub const HEADER: usize = 8;
    /// Padding up to the end of the ring.
    pub const PAD: u8 = 0;
    /// The following records belong to another thread: its id (u32) in the program's view.
    pub const THREAD: u8 = 1;
    /// Defines a kind of marker: its number (u32), texts, and fields of three texts each.
    pub const KIND: u8 = 2;
    /// An interval: kind (u32), length of the name (u32), start and end (u64), name, values.
    pub const INTERVAL: u8 = 3;
    /// An instant: like an interval, whose end is ignored.
    pub const INSTANT: u8 = 4;
    /// The start of an interval that may end on another thread: like an interval, with the id (u64)
    /// instead of the end.
    pub const START: u8 = 5;
    /// The end of such an interval: like its start, with the end instead of the start. Its values override
    /// the start's.
    pub const END: u8 = 6;
}

/// The kinds of values. A value is its field's index (u8), its kind (u8), and the data of the kind.
pub mod value {
    /// A whole number: i64.
    pub const INTEGER: u8 = 1;
    /// Any number: f64.
    pub const NUMBER: u8 = 2;
    /// Text: its length (u16) and its bytes in UTF-8.
    pub const TEXT: u8 = 3;
}

/// The number of the kind that needs no definition: markers with only a name.
pub const PLAIN_KIND: u32 = 0;

/// The memory file (memfd_create(2)) of a program that a recorder may attach to. The recorder finds it
/// among the program's descriptors, enables markers in its first page, and reads the rings that follow it.
/// Each ring has the layout of a marker file.
pub mod control {
    /// The memory file's name.
    pub const NAME: &str = "nyquist-markers";
    /// The length of the page at its start.
    pub const LEN: usize = 4096;
    /// The first bytes; the last of them is the version.
    pub const MAGIC: [u8; 8] = *b"nyqctrl\x02";
    /// u32, a futex, set by the recorder: [`OFF`], [`STOPPING`], or the number of a recording, which
    /// differs each time.
    pub const STATE: usize = 8;
    /// The state without a recorder. The contents of rings are not needed then, and their memory can be
    /// freed.
    pub const OFF: u32 = 0;
    /// The state after the end of a recording: the program stops writing, and the recorder reads the rest.
    pub const STOPPING: u32 = 1;
    /// u32, set by the recorder: the number of the last recording.
    pub const LAST: usize = 12;
    /// u32, set by the program: the number of rings whose creation it has begun. It is incremented before
    /// the creation.
    pub const RINGS: usize = 16;
    /// The maximum length of a ring with its header.
    pub const RING_LEN: usize = super::header::LEN + super::CAPACITY;
    /// The maximum number of rings of one recording that are read.
    pub const MAX_RINGS: u32 = 1 << 14;
    /// The offset of the first ring, and the gap between two rings. It is a multiple of any page
    /// size.
    const GAP: u64 = 1 << 16;
    /// The distance from one ring to the next.
    pub const STRIDE: u64 = super::CAPACITY as u64 + GAP;

    /// The offset of a ring. Numbers are not reused during the life of the program.
    pub const fn ring_at(number: u32) -> u64 {
        GAP + number as u64 * STRIDE
    }
}

/// The contents of a [`record::KIND`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MarkerKind<'a> {
    /// The kind's name in the profile.
    pub name: Cow<'a, str>,
    /// The name of its markers, if they have no names of their own.
    pub marker_name: &'a str,
    /// The track that shows its markers, if it is not the thread's.
    pub track: &'a str,
    /// The category, if it has one.
    pub category: &'a str,
    /// A description.
    pub description: Cow<'a, str>,
    /// The text in the marker table, such as `{marker.data.KEY}`; empty for the front end's default.
    pub table_label: &'a str,
    /// The fields.
    pub fields: Vec<Field<'a>>,
}

/// A field of a kind of marker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Field<'a> {
    /// Its key.
    pub key: &'a str,
    /// The label for the key; empty for the key itself.
    pub label: &'a str,
    /// The Firefox Profiler's name of a format, such as `bytes`; empty for a format that fits the first
    /// value.
    pub format: &'a str,
}

/// Appends the definition of a kind.
pub fn put_kind(out: &mut Vec<u8>, number: u32, kind: &MarkerKind<'_>) {
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

/// Appends the record with the thread of the following records.
pub fn put_thread(out: &mut Vec<u8>, tid: u32) {
    let at = begin(out, record::THREAD, 0);
    out.extend_from_slice(&tid.to_le_bytes());
    finish(out, at);
}

/// Encoded values.
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

    /// No values, with memory for those of that many fields if they are short.
    pub fn for_fields(fields: usize) -> Self {
        Self { bytes: Vec::with_capacity(fields * 16), count: 0 }
    }

    /// Adds other values, which override these.
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

    /// Sets a field to a text, which is cut if it is longer than [`MAX_TEXT`].
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

    /// Clears the values, and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.count = 0;
    }
}

/// Appends a marker. `times` are its start and its end, or what the kind of record has instead. An empty name
/// means the kind's name. `more` are values beside those of `values`, at most 16.
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
    // Written in one piece, because this is the cost of each span.
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

/// Pads the record to a multiple of 8 bytes and stores its length.
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

/// The longest prefix of a text with at most `len` bytes.
fn cut(text: &str, len: usize) -> &str {
    let mut end = len.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
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
