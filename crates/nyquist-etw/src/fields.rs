//! Reads the fields of an event one by one.

use crate::{Event, Guid, PointerSize};
use thiserror::Error;

/// An event whose payload ends before its fields do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the payload of {event} ends after {have} bytes, in the middle of its {field}")]
pub struct PayloadError {
    /// The class and type of the event.
    pub event: &'static str,
    /// The incomplete field.
    pub field: &'static str,
    /// The number of available bytes.
    pub have: usize,
}

/// The remaining fields of an event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EventFields<'a> {
    rest: &'a [u8],
    len: usize,
    event: &'static str,
    pointer_size: PointerSize,
}

impl<'a> EventFields<'a> {
    /// The fields of an event, which errors call by the name of its class and type.
    pub(crate) fn of(event: &Event<'a>, name: &'static str) -> Self {
        Self { rest: event.payload, len: event.payload.len(), event: name, pointer_size: event.pointer_size }
    }

    pub(crate) fn skip(&mut self, bytes: usize, field: &'static str) -> Result<(), PayloadError> {
        self.bytes(bytes, field).map(|_| ())
    }

    pub(crate) fn u8(&mut self, field: &'static str) -> Result<u8, PayloadError> {
        self.array(field).map(u8::from_le_bytes)
    }

    pub(crate) fn u16(&mut self, field: &'static str) -> Result<u16, PayloadError> {
        self.array(field).map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self, field: &'static str) -> Result<u32, PayloadError> {
        self.array(field).map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self, field: &'static str) -> Result<u64, PayloadError> {
        self.array(field).map(u64::from_le_bytes)
    }

    pub(crate) fn guid(&mut self, field: &'static str) -> Result<Guid, PayloadError> {
        self.array(field).map(Guid::from_bytes)
    }

    pub(crate) fn pointer(&mut self, field: &'static str) -> Result<u64, PayloadError> {
        match self.pointer_size {
            PointerSize::Four => self.u32(field).map(u64::from),
            PointerSize::Eight => self.u64(field),
        }
    }

    pub(crate) fn skip_pointers(&mut self, count: usize, field: &'static str) -> Result<(), PayloadError> {
        self.skip(count * self.pointer_size.bytes(), field)
    }

    /// All remaining bytes as addresses. Bytes of an incomplete address are left out.
    pub(crate) fn addresses(self) -> Addresses<'a> {
        Addresses { bytes: self.rest, pointer_size: self.pointer_size }
    }

    /// A text in UTF-16 with a terminating zero, which the end of the payload may replace.
    pub(crate) fn utf16(&mut self) -> String {
        let (units, _) = self.rest.as_chunks::<2>();
        let len = units.iter().position(|unit| *unit == [0, 0]).unwrap_or(units.len());
        let units = &units[..len];
        self.rest = self.rest.get((len + 1) * 2..).unwrap_or_default();
        let units = units.iter().map(|unit| u16::from_le_bytes(*unit));
        char::decode_utf16(units).map(|char| char.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
    }

    /// A text of bytes with a terminating zero, which the end of the payload may replace.
    pub(crate) fn text(&mut self) -> String {
        let len = self.rest.iter().position(|byte| *byte == 0).unwrap_or(self.rest.len());
        let text = String::from_utf8_lossy(&self.rest[..len]).into_owned();
        self.rest = self.rest.get(len + 1..).unwrap_or_default();
        text
    }

    fn bytes(&mut self, len: usize, field: &'static str) -> Result<&'a [u8], PayloadError> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or_else(|| self.ended(field))?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], PayloadError> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or_else(|| self.ended(field))?;
        self.rest = rest;
        Ok(*taken)
    }

    fn ended(&self, field: &'static str) -> PayloadError {
        PayloadError { event: self.event, field, have: self.len }
    }
}

/// The addresses of a stack, innermost first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses<'a> {
    bytes: &'a [u8],
    pointer_size: PointerSize,
}

impl<'a> Addresses<'a> {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.bytes.len() / self.pointer_size.bytes()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// One after the other.
    pub fn iter(&self) -> impl Iterator<Item = u64> + use<'a> {
        let Self { bytes, pointer_size } = *self;
        let addresses = bytes.chunks_exact(pointer_size.bytes());
        addresses.map(|address| {
            let mut all = [0; 8];
            all[..address.len()].copy_from_slice(address);
            u64::from_le_bytes(all)
        })
    }
}
