//! Markers set by hand, for programs without `tracing`.

use crate::protocol::{self, Values, record};
use crate::{local, session, sys};
use std::borrow::Cow;

/// Marks the time from now until the returned guard is dropped. Costs next to nothing while no recorder
/// listens.
///
/// ```
/// {
///     let _loading = nyquist_tracing::marker("load").field("files", 3);
///     // What is done here is shown as an interval `load` on this thread.
/// }
/// ```
pub fn marker(name: impl Into<Cow<'static, str>>) -> Interval {
    Interval(OpenMarker::begin(name))
}

/// Marks this moment.
///
/// ```
/// nyquist_tracing::instant("cache miss").field("key", "index");
/// ```
pub fn instant(name: impl Into<Cow<'static, str>>) -> Instant {
    Instant(OpenMarker::begin(name))
}

/// An interval that ends when this is dropped.
#[derive(Debug)]
#[must_use = "the interval ends when this is dropped"]
pub struct Interval(Option<OpenMarker>);

/// An instant, which is marked when this is dropped, with its fields.
#[derive(Debug)]
pub struct Instant(Option<OpenMarker>);

#[derive(Debug)]
struct OpenMarker {
    name: Cow<'static, str>,
    start: u64,
    keys: Vec<&'static str>,
    values: Values,
}

impl Interval {
    /// Adds a field.
    pub fn field(mut self, key: &'static str, value: impl Into<Value>) -> Self {
        OpenMarker::add(&mut self.0, key, value);
        self
    }
}

impl Instant {
    /// Adds a field.
    // Dropping it marks the moment. (Older compilers know no reasons of attributes.)
    #[allow(clippy::return_self_not_must_use)]
    pub fn field(mut self, key: &'static str, value: impl Into<Value>) -> Self {
        OpenMarker::add(&mut self.0, key, value);
        self
    }
}

impl Drop for Interval {
    fn drop(&mut self) {
        if let Some(open) = &self.0 {
            open.end(record::INTERVAL, sys::now());
        }
    }
}

impl Drop for Instant {
    fn drop(&mut self) {
        if let Some(open) = &self.0 {
            open.end(record::INSTANT, open.start);
        }
    }
}

impl OpenMarker {
    fn begin(name: impl Into<Cow<'static, str>>) -> Option<Self> {
        session::start();
        (session::current() != 0).then(|| Self {
            name: name.into(),
            start: sys::now(),
            keys: Vec::new(),
            values: Values::default(),
        })
    }

    fn add(open: &mut Option<Self>, key: &'static str, value: impl Into<Value>) {
        let Some(open) = open else { return };
        let field = open.keys.len();
        match value.into() {
            Value::Integer(value) => open.values.integer(field, value),
            Value::Number(value) => open.values.number(field, value),
            Value::Text(value) => open.values.text(field, &value),
        }
        open.keys.push(key);
    }

    fn end(&self, record: u8, end: u64) {
        local::with_writer(|writer| {
            let kind =
                if self.keys.is_empty() { Some(protocol::PLAIN_KIND) } else { writer.plain_kind(&self.keys) };
            let Some(kind) = kind else { return };
            let times = (self.start, end);
            writer.push(|out| {
                protocol::put_marker(out, (record, kind), &self.name, times, &self.values, &[]);
            });
        });
    }
}

/// The value of a field.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A whole number.
    Integer(i64),
    /// Any other number.
    Number(f64),
    /// Text.
    Text(Cow<'static, str>),
}

macro_rules! value_from {
    ($($from:ty => $variant:ident($into:ty);)*) => {$(
        impl From<$from> for Value {
            fn from(value: $from) -> Self {
                Self::$variant(<$into>::from(value))
            }
        }
    )*};
}

value_from! {
    i8 => Integer(i64);
    i16 => Integer(i64);
    i32 => Integer(i64);
    i64 => Integer(i64);
    u8 => Integer(i64);
    u16 => Integer(i64);
    u32 => Integer(i64);
    f32 => Number(f64);
    f64 => Number(f64);
    &'static str => Text(Cow<'static, str>);
    String => Text(Cow<'static, str>);
}

impl From<u64> for Value {
    fn from(value: u64) -> Self {
        i64::try_from(value).map_or_else(|_| Self::Text(value.to_string().into()), Self::Integer)
    }
}

impl From<usize> for Value {
    fn from(value: usize) -> Self {
        Self::from(value as u64)
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Text(if value { "true" } else { "false" }.into())
    }
}
