//! Detects the format of a protobuf message by its fields, because these formats have no magic number.

/// Wire types of protobuf.
const VARINT: u8 = 0;
const FIXED_64: u8 = 1;
const BYTES: u8 = 2;
const FIXED_32: u8 = 5;

/// A field of a message, which may be truncated at the end of the bytes.
struct ProtobufField<'a> {
    number: u64,
    wire_type: u8,
    /// The contents of a field of bytes.
    bytes: &'a [u8],
}

/// The fields of a message, as far as the bytes are valid. The last one may be truncated.
struct ProtobufFields<'a> {
    rest: &'a [u8],
    /// Whether it ended at an invalid field.
    is_broken: bool,
}

impl<'a> Iterator for ProtobufFields<'a> {
    type Item = ProtobufField<'a>;

    fn next(&mut self) -> Option<ProtobufField<'a>> {
        if self.rest.is_empty() || self.is_broken {
            return None;
        }
        let (tag, after) = varint(self.rest)?;
        let (number, wire_type) = (tag >> 3, (tag & 0b111) as u8);
        let (length, after) = match wire_type {
            VARINT => (0, varint(after)?.1),
            FIXED_64 => (8, after),
            FIXED_32 => (4, after),
            BYTES => {
                let (length, after) = varint(after)?;
                (usize::try_from(length).unwrap_or(usize::MAX), after)
            }
            _ => {
                self.is_broken = true;
                return None;
            }
        };
        let bytes = if wire_type == BYTES { &after[..length.min(after.len())] } else { &[] };
        self.rest = after.get(length..).unwrap_or_default();
        Some(ProtobufField { number, wire_type, bytes })
    }
}

fn fields(bytes: &[u8]) -> ProtobufFields<'_> {
    ProtobufFields { rest: bytes, is_broken: false }
}

/// Whether all fields are accepted, and there is at least one.
fn are_all(bytes: &[u8], mut accept: impl FnMut(&ProtobufField<'_>) -> bool) -> bool {
    let mut fields = fields(bytes);
    let mut count = 0;
    let fits = fields.by_ref().all(|field| {
        count += 1;
        accept(&field)
    });
    fits && count > 0 && !fields.is_broken
}

/// Whether these are fields of pprof's `Profile`, in any order. All fields must be known and have the right
/// type, and there must be a sample type.
pub(super) fn is_pprof(start: &[u8]) -> bool {
    let mut has_sample_type = false;
    let fits = are_all(start, |field| {
        has_sample_type |= field.number == 1;
        let (is_varint, is_bytes) = (field.wire_type == VARINT, field.wire_type == BYTES);
        match field.number {
            1..=6 | 11 => is_bytes,
            7..=10 | 12 | 14 | 15 => is_varint,
            13 => is_bytes || is_varint,
            _ => false,
        }
    });
    fits && has_sample_type
}

/// Whether these are fields of OpenTelemetry's `ProfilesData`: resources, each of which has messages with
/// messages in them, and a dictionary. In pprof the first field has numbers.
pub(super) fn is_otlp(start: &[u8]) -> bool {
    let is_one_of =
        |field: &ProtobufField<'_>, last: u64| field.wire_type == BYTES && (1..=last).contains(&field.number);
    let first = fields(start).next().filter(|field| field.number == 1 && field.wire_type == BYTES);
    let is_scope = |bytes: &[u8]| are_all(bytes, |field| is_one_of(field, 3));
    let is_resource = |bytes: &[u8]| {
        let has_scope = fields(bytes).any(|field| field.number == 2);
        has_scope
            && are_all(bytes, |field| is_one_of(field, 3) && (field.number != 2 || is_scope(field.bytes)))
    };
    first.is_some_and(|first| is_resource(first.bytes)) && are_all(start, |field| is_one_of(field, 2))
}

/// Whether these are fields of Perfetto's `Trace`: packets, of which one of the first has a time, a sequence,
/// or is a synchronization marker.
pub(super) fn is_perfetto(start: &[u8]) -> bool {
    let is_packet = |field: &ProtobufField<'_>| field.number == 1 && field.wire_type == BYTES;
    let says = |field: ProtobufField<'_>| match field.number {
        8 | 10 => field.wire_type == VARINT,
        36 => field.wire_type == BYTES && field.bytes.len() == 16,
        _ => false,
    };
    let mut first = fields(start).take(10);
    first.any(|packet| is_packet(&packet) && fields(packet.bytes).any(says)) && are_all(start, is_packet)
}

/// A protobuf varint and what follows it.
fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let length = bytes.iter().take(10).position(|byte| byte & 0x80 == 0)? + 1;
    let (varint, rest) = bytes.split_at(length);
    let value = varint.iter().rev().fold(0_u64, |value, byte| value << 7 | u64::from(byte & 0x7f));
    Some((value, rest))
}
