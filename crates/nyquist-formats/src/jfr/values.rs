//! Values in a chunk of a JFR recording: those of events, and those of the constants that events refer to.

use std::borrow::Cow;

use super::cursor::{ChunkCursor, TextOrConstant};
use super::metadata::{Class, Field, Kind, Metadata};

/// The maximum nesting of structures, which no recording exceeds.
const MAX_DEPTH: usize = 8;

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum JfrValue<'a> {
    /// A null or missing value.
    Missing,
    Integer(i64),
    Number(f64),
    Text(Cow<'a, str>),
    /// The constant with this class and number.
    Constant(u64, u64),
    /// The fields of a class.
    Struct(u64, Vec<JfrValue<'a>>),
    Array(Vec<JfrValue<'a>>),
}

impl JfrValue<'_> {
    /// A non-negative integer.
    pub(super) fn unsigned(&self) -> Option<u64> {
        match *self {
            Self::Integer(number) => u64::try_from(number).ok(),
            _ => None,
        }
    }
}

/// Reads a bounded number of values, because classes may refer to each other repeatedly without using a byte.
pub(super) struct ValueDecoder<'m, 'a> {
    metadata: &'m Metadata<'a>,
    steps_left: usize,
}

impl<'m, 'a> ValueDecoder<'m, 'a> {
    /// A decoder for a chunk of `length` bytes.
    pub(super) fn new(metadata: &'m Metadata<'a>, length: usize) -> Self {
        Self { metadata, steps_left: length.saturating_mul(8) }
    }

    /// The fields of a class. `None` if the bytes are damaged.
    pub(super) fn fields(&mut self, cursor: &mut ChunkCursor<'a>, class: u64) -> Option<Vec<JfrValue<'a>>> {
        self.fields_of(cursor, self.metadata.class(class)?, 0)
    }

    /// A constant of a class: a text, or its fields.
    pub(super) fn constant(&mut self, cursor: &mut ChunkCursor<'a>, class: u64) -> Option<JfrValue<'a>> {
        self.one(cursor, class, 0)
    }

    fn fields_of(
        &mut self,
        cursor: &mut ChunkCursor<'a>,
        class: &Class,
        depth: usize,
    ) -> Option<Vec<JfrValue<'a>>> {
        class.fields.iter().map(|field| self.field(cursor, field, depth)).collect()
    }

    fn field(&mut self, cursor: &mut ChunkCursor<'a>, field: &Field, depth: usize) -> Option<JfrValue<'a>> {
        if !field.is_array {
            return self.element(cursor, field, depth);
        }
        let count = cursor.count()?;
        let elements: Option<Vec<_>> = (0..count).map(|_| self.element(cursor, field, depth)).collect();
        elements.map(JfrValue::Array)
    }

    fn element(&mut self, cursor: &mut ChunkCursor<'a>, field: &Field, depth: usize) -> Option<JfrValue<'a>> {
        if field.is_constant {
            return cursor.long().map(|key| JfrValue::Constant(field.class, key));
        }
        self.one(cursor, field.class, depth)
    }

    fn one(&mut self, cursor: &mut ChunkCursor<'a>, id: u64, depth: usize) -> Option<JfrValue<'a>> {
        self.steps_left = self.steps_left.checked_sub(1)?;
        let class = self.metadata.class(id)?;
        Some(match class.kind {
            Kind::Byte => JfrValue::Integer(cursor.byte()?.into()),
            Kind::Short => JfrValue::Integer(i64::from(cursor.short()? as i16)),
            Kind::Int => JfrValue::Integer(i64::from(cursor.int()? as i32)),
            Kind::Long => JfrValue::Integer(cursor.long()?.cast_signed()),
            Kind::Float => JfrValue::Number(cursor.float()?),
            Kind::Double => JfrValue::Number(cursor.double()?),
            Kind::Text => match cursor.text()? {
                TextOrConstant::Null => JfrValue::Missing,
                TextOrConstant::Here(text) => JfrValue::Text(text),
                TextOrConstant::Constant(key) => JfrValue::Constant(id, key),
            },
            Kind::Struct if depth == MAX_DEPTH => return None,
            Kind::Struct => JfrValue::Struct(id, self.fields_of(cursor, class, depth + 1)?),
        })
    }
}
