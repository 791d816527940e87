//! The formats of tracepoints in a recording, and the fields of their raw data.
//!
//! Source: Linux's `tools/perf/util/trace-event-read.c` for the section, `Documentation/trace/events.rst`
//! for the formats.

use crate::ByteOrder;
use crate::cursor::RecordCursor;

/// The name of all fields of the section in errors, because readers only report that it is truncated.
const FIELD: &str = "tracing data";

/// The layouts of the tracepoints of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tracepoints {
    formats: Vec<TracepointFormat>,
    order: ByteOrder,
}

/// The layout of a tracepoint's raw data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracepointFormat {
    /// The id, which is the event's `config`.
    pub id: u64,
    /// The subsystem, such as `sched`.
    pub system: String,
    /// The name, such as `sched_switch`.
    pub name: String,
    /// The fields, without those that all tracepoints have (`common_pid` and so on).
    pub fields: Vec<TracepointField>,
}

/// A field of a tracepoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracepointField {
    /// Its name.
    pub name: String,
    /// Its offset in the raw data.
    pub offset: usize,
    /// Its size in bytes.
    pub size: usize,
    /// Its type.
    pub kind: FieldKind,
}

/// The type of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldKind {
    /// A number.
    Unsigned,
    /// A number that may be negative.
    Signed,
    /// A text that fills the field, or ends at a zero.
    Text,
    /// A text elsewhere in the data: the field contains its offset and length.
    DynamicText,
    /// A text elsewhere in the data, whose offset is relative to the field's end.
    RelativeText,
    /// Something else, such as a list.
    Other,
}

/// The value of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldValue {
    /// A number.
    Integer(i128),
    /// A text; bytes that are not UTF-8 are replaced.
    Text(String),
}

impl Tracepoints {
    /// Parses the section, up to where it is truncated.
    pub fn parse(section: &[u8]) -> Self {
        let mut tracepoints = Self::default();
        // A truncated section has fewer formats.
        let _ = tracepoints.read(RecordCursor::new(section, ByteOrder::Little));
        tracepoints
    }

    /// The layout of the tracepoint with that id.
    pub fn get(&self, id: u64) -> Option<&TracepointFormat> {
        self.formats.iter().find(|format| format.id == id)
    }

    /// The value of a field in raw data.
    pub fn value(&self, field: &TracepointField, raw: &[u8]) -> Option<FieldValue> {
        field.value(raw, self.order)
    }

    fn read(&mut self, mut cursor: RecordCursor<'_>) -> Option<()> {
        const MAGIC: &[u8] = b"\x17\x08\x44tracing";
        if cursor.bytes(MAGIC.len(), FIELD).ok()? != MAGIC {
            return None;
        }
        let _version = cursor.terminated(FIELD).ok()?;
        if cursor.bytes(1, FIELD).ok()? != [0] {
            cursor = RecordCursor::new(cursor.rest(), ByteOrder::Big);
        }
        self.order = cursor.order();
        let _long_and_page_size = cursor.bytes(5, FIELD).ok()?;
        for _ in ["header_page", "header_event"] {
            cursor.terminated(FIELD).ok()?;
            sized(&mut cursor)?;
        }
        let ftrace = cursor.u32(FIELD).ok()?;
        for _ in 0..ftrace {
            sized(&mut cursor)?;
        }
        let systems = cursor.u32(FIELD).ok()?;
        for _ in 0..systems {
            let system = String::from_utf8_lossy(cursor.terminated(FIELD).ok()?).into_owned();
            let events = cursor.u32(FIELD).ok()?;
            for _ in 0..events {
                let format = String::from_utf8_lossy(sized(&mut cursor)?);
                self.formats.extend(TracepointFormat::parse(&system, &format));
            }
        }
        Some(())
    }
}

/// Bytes after their length.
fn sized<'a>(cursor: &mut RecordCursor<'a>) -> Option<&'a [u8]> {
    let len = cursor.u64(FIELD).ok()?;
    cursor.counted(len, 1, FIELD).ok()
}

impl TracepointFormat {
    /// Parses a `format` file of tracefs.
    pub fn parse(system: &str, text: &str) -> Option<Self> {
        let (mut name, mut id, mut fields) = (None, None, Vec::new());
        for line in text.lines() {
            let line = line.trim();
            if let Some(rest) = line.strip_prefix("name:") {
                name = Some(rest.trim().to_owned());
            } else if let Some(rest) = line.strip_prefix("ID:") {
                id = rest.trim().parse().ok();
            } else if line.starts_with("field:") {
                fields
                    .extend(TracepointField::parse(line).filter(|field| !field.name.starts_with("common_")));
            } else if line.starts_with("print fmt:") {
                break;
            }
        }
        Some(Self { id: id?, system: system.to_owned(), name: name?, fields })
    }

    /// The field of that name.
    pub fn field(&self, name: &str) -> Option<&TracepointField> {
        self.fields.iter().find(|field| field.name == name)
    }
}

impl TracepointField {
    /// Parses a line such as `field:char prev_comm[16]; offset:8; size:16; signed:0;`.
    fn parse(line: &str) -> Option<Self> {
        let mut parts = line.split(';').map(str::trim);
        let declaration = parts.next()?.strip_prefix("field:")?;
        let (mut offset, mut size, mut signed) = (None, None, false);
        for part in parts {
            match part.split_once(':') {
                Some(("offset", number)) => offset = number.parse().ok(),
                Some(("size", number)) => size = number.parse().ok(),
                Some(("signed", number)) => signed = number == "1",
                _ => {}
            }
        }
        let (before_array, array) = match declaration.split_once('[') {
            // `__data_loc char[] name` has its brackets before the name.
            Some((kind, rest)) if rest.starts_with("] ") => (rest.get(2..)?, Some(kind)),
            Some((before, _)) => (before, Some(before)),
            None => (declaration, None),
        };
        let name = before_array.rsplit([' ', '*']).next()?.to_owned();
        let size = size?;
        let kind = match array {
            _ if declaration.starts_with("__data_loc char") => FieldKind::DynamicText,
            _ if declaration.starts_with("__rel_loc char") => FieldKind::RelativeText,
            Some(kind) if kind.starts_with("char ") => FieldKind::Text,
            Some(_) => FieldKind::Other,
            None if ![1, 2, 4, 8].contains(&size) => FieldKind::Other,
            None if signed => FieldKind::Signed,
            None => FieldKind::Unsigned,
        };
        Some(Self { name, offset: offset?, size, kind })
    }

    /// The field's value in raw data; `None` if the data is too short, or the type is not supported.
    pub fn value(&self, raw: &[u8], order: ByteOrder) -> Option<FieldValue> {
        let bytes = raw.get(self.offset..self.offset.checked_add(self.size)?)?;
        match self.kind {
            FieldKind::Unsigned => Some(FieldValue::Integer(unsigned(bytes, order)?.into())),
            FieldKind::Signed => {
                let unused = 64 - 8 * u32::try_from(bytes.len()).ok()?;
                let value = (unsigned(bytes, order)? << unused).cast_signed() >> unused;
                Some(FieldValue::Integer(value.into()))
            }
            FieldKind::Text => Some(text(bytes)),
            FieldKind::DynamicText | FieldKind::RelativeText => {
                let location = order.u32(*bytes.first_chunk()?);
                let base = if self.kind == FieldKind::RelativeText { self.offset + self.size } else { 0 };
                let start = base.checked_add((location & 0xffff) as usize)?;
                Some(text(raw.get(start..start.checked_add((location >> 16) as usize)?)?))
            }
            FieldKind::Other => None,
        }
    }
}

fn unsigned(bytes: &[u8], order: ByteOrder) -> Option<u64> {
    Some(match bytes.len() {
        1 => (*bytes.first()?).into(),
        2 => order.u16(*bytes.first_chunk()?).into(),
        4 => order.u32(*bytes.first_chunk()?).into(),
        8 => order.u64(*bytes.first_chunk()?),
        _ => return None,
    })
}

fn text(bytes: &[u8]) -> FieldValue {
    let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    FieldValue::Text(String::from_utf8_lossy(text).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SWITCH: &str = "name: sched_switch\nID: 372\nformat:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\n\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;
\tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;
\tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;
\tfield:__data_loc char[] cgroup;\toffset:40;\tsize:4;\tsigned:0;
\tfield:u8 mac[6];\toffset:44;\tsize:6;\tsigned:0;
\tfield:const char * ptr;\toffset:56;\tsize:8;\tsigned:0;

print fmt: \"field:x\", REC->prev_comm
";

    fn section() -> Vec<u8> {
        let mut bytes = b"\x17\x08\x44tracing0.6\0\0\x08\0\x10\0\0".to_vec();
        for name in ["header_page", "header_event"] {
            bytes.extend(name.bytes().chain([0]).chain(3_u64.to_le_bytes()).chain(*b"abc"));
        }
        bytes.extend(1_u32.to_le_bytes().into_iter().chain(2_u64.to_le_bytes()).chain(*b"xy"));
        bytes.extend(1_u32.to_le_bytes().into_iter().chain(*b"sched\0").chain(1_u32.to_le_bytes()));
        bytes.extend((SWITCH.len() as u64).to_le_bytes().into_iter().chain(SWITCH.bytes()));
        bytes
    }

    #[test]
    fn fields_are_read_from_raw_data() {
        let tracepoints = Tracepoints::parse(&section());
        let format = tracepoints.get(372).unwrap();
        assert_eq!((format.system.as_str(), format.name.as_str()), ("sched", "sched_switch"));
        let mut raw = vec![0; 64];
        raw[8..12].copy_from_slice(b"sh\0x");
        raw[24..28].copy_from_slice(&(-7_i32).to_le_bytes());
        raw[40..44].copy_from_slice(&(64_u32 | 4 << 16).to_le_bytes());
        raw.extend(b"/a\0b");
        let value = |name: &str| tracepoints.value(format.field(name)?, &raw);
        assert_eq!(value("prev_comm"), Some(FieldValue::Text("sh".to_owned())));
        assert_eq!(value("prev_pid"), Some(FieldValue::Integer(-7)));
        assert_eq!(value("cgroup"), Some(FieldValue::Text("/a".to_owned())));
        assert_eq!(value("ptr"), Some(FieldValue::Integer(0)));
        assert_eq!((value("mac"), value("common_type")), (None, None));
    }

    #[test]
    fn a_section_cut_anywhere_does_no_harm() {
        let section = section();
        for len in 0..section.len() {
            assert!(Tracepoints::parse(&section[..len]).formats.is_empty(), "{len}");
        }
    }

    #[test]
    fn data_that_is_too_short_has_no_values() {
        let tracepoints = Tracepoints::parse(&section());
        for field in &tracepoints.get(372).unwrap().fields {
            assert_eq!(tracepoints.value(field, &[0; 9]), None, "{field:?}");
        }
    }
}
