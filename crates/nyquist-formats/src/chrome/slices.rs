//! Durations (`B` and `E`, `X`) of a thread: matches ends to begins, and makes samples.

use std::cmp::Reverse;
use std::rc::Rc;

use nyquist_profile::ThreadIndex;
use rustc_hash::FxHashMap;
use serde_json::Value;

use super::OFF_CPU;
use super::unparsed_value::UnparsedValue;
use crate::import::{CodePosition, Importer};
use crate::spans::Spans;

/// A begin, an end or a complete duration.
pub(crate) struct Slice<'a> {
    pub time: u64,
    pub kind: SliceKind,
    pub name: Rc<str>,
    pub category: Rc<str>,
    pub args: Args<'a>,
}

impl Slice<'_> {
    /// When it ends, if that is known from its beginning.
    fn complete_until(&self) -> Option<u64> {
        if let SliceKind::Complete(end) = self.kind { Some(end) } else { None }
    }
}

/// The arguments of an event.
pub(crate) enum Args<'a> {
    /// Unparsed arguments in the document.
    Document(UnparsedValue<'a>),
    /// Arguments that a reader has made.
    Made(Box<Value>),
}

impl Args<'_> {
    /// Arguments that a reader has made.
    pub(crate) fn made(value: Value) -> Self {
        if value.is_null() { Self::Document(UnparsedValue::default()) } else { Self::Made(Box::new(value)) }
    }

    /// The source file and the line, if they are stated.
    fn position(&self) -> (Option<String>, Option<u32>) {
        let read = |args: &Value| {
            let line = args["line"].as_u64().and_then(|line| u32::try_from(line).ok());
            (args["file"].as_str().map(str::to_owned), line)
        };
        match self {
            // Most arguments have other members, and are not parsed.
            Args::Document(raw) if ["\"file\"", "\"line\""].iter().any(|key| raw.json().contains(key)) => {
                read(&raw.value())
            }
            Args::Document(_) => (None, None),
            Args::Made(value) => read(value),
        }
    }

    /// The JSON text without spaces. `None` without arguments.
    pub(super) fn text(&self) -> Option<String> {
        let value = match self {
            Args::Document(raw) => &raw.value(),
            Args::Made(value) => &**value,
        };
        let is_empty = value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty);
        (!is_empty).then(|| value.to_string())
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum SliceKind {
    Begin,
    End,
    /// Until then.
    Complete(u64),
}

/// The durations that have begun and not ended, the innermost last.
///
/// An end belongs to the innermost begin with its name, or, without a name, to the innermost begin. It never
/// ends a complete duration, or a begin with another name. Then it is a stray end, whose begin is not in the
/// trace.
struct OpenSlices<T> {
    slices: Vec<OpenSlice<T>>,
    /// The number of open begins with each name, so that a stray end is detected without a search.
    begins: FxHashMap<String, usize>,
    /// The number of all open begins.
    begin_count: usize,
}

struct OpenSlice<T> {
    /// The name of a begin.
    begin: Option<String>,
    /// When a complete duration ends.
    end: Option<u64>,
    what: T,
}

impl<T> OpenSlices<T> {
    fn new() -> Self {
        Self { slices: Vec::new(), begins: FxHashMap::default(), begin_count: 0 }
    }

    fn begin(&mut self, name: &str, what: T) {
        *self.begins.entry(name.to_owned()).or_default() += 1;
        self.begin_count += 1;
        self.slices.push(OpenSlice { begin: Some(name.to_owned()), end: None, what });
    }

    /// Opens a complete duration. The durations around it cannot end before it.
    fn complete(&mut self, end: u64, what: T) {
        let outer = self.slices.last().and_then(|slice| slice.end).unwrap_or(u64::MAX);
        self.slices.push(OpenSlice { begin: None, end: Some(end.min(outer)), what });
    }

    /// Closes the innermost duration if it is over at `time`, and returns when it ended.
    fn over(&mut self, time: u64) -> Option<u64> {
        let end = self.slices.last()?.end.filter(|&end| end <= time)?;
        self.pop();
        Some(end)
    }

    /// Closes the begin that an end with this name belongs to, and all durations in it. Calls `close` for
    /// each, the innermost first. Returns whether such a begin exists. O(closed).
    fn end(&mut self, name: &str, mut close: impl FnMut(T, bool)) -> bool {
        let is_open = if name.is_empty() { self.begin_count > 0 } else { self.begins.contains_key(name) };
        if !is_open {
            return false;
        }
        while let Some(slice) = self.pop() {
            let is_it = slice.begin.is_some_and(|begin| name.is_empty() || begin == name);
            close(slice.what, is_it);
            if is_it {
                return true;
            }
        }
        false
    }

    fn pop(&mut self) -> Option<OpenSlice<T>> {
        let slice = self.slices.pop()?;
        if let Some(begin) = &slice.begin {
            self.begin_count -= 1;
            match self.begins.get_mut(begin) {
                Some(count) if *count > 1 => *count -= 1,
                _ => drop(self.begins.remove(begin)),
            }
        }
        Some(slice)
    }
}

/// Sorts by time. Begins and ends of the same time keep the order of the file, in which a child without length has
/// its end before the next one's begin. Complete durations may be written when they end, so of those that follow
/// each other and begin at the same time, the longest one comes first.
fn sort(slices: &mut [Slice<'_>]) {
    slices.sort_by_key(|slice| slice.time);
    let are_complete = |one: &Slice<'_>, next: &Slice<'_>| {
        one.time == next.time && one.complete_until().is_some() && next.complete_until().is_some()
    };
    for complete in slices.chunk_by_mut(are_complete) {
        complete.sort_by_key(|slice| Reverse(slice.complete_until()));
    }
}

/// Adds durations as samples, and returns the number of ends without a begin. Events of one thread may be in
/// any order, except for begins and ends of the same time.
pub(crate) fn add_samples(importer: &mut Importer, thread: ThreadIndex, mut slices: Vec<Slice<'_>>) -> u64 {
    sort(&mut slices);
    let last = slices.iter().map(|slice| slice.time).max().unwrap_or(0);
    let mut spans = Spans::new(thread);
    let mut open = OpenSlices::new();
    let mut left_out = 0;
    for slice in slices {
        while let Some(end) = open.over(slice.time) {
            spans.close(importer, end);
        }
        match slice.kind {
            SliceKind::End => {
                let is_known = open.end(&slice.name, |(), _| spans.close(importer, slice.time));
                left_out += u64::from(!is_known);
                continue;
            }
            SliceKind::Begin => open.begin(&slice.name, ()),
            SliceKind::Complete(end) => open.complete(end, ()),
        }
        let (file, line) = slice.args.position();
        let code = CodePosition { name: &slice.name, file: file.as_deref(), line, ..CodePosition::default() };
        let frame = importer.frame(&code);
        spans.open(importer, slice.time, frame, &*slice.category == OFF_CPU);
    }
    while let Some(end) = open.over(u64::MAX) {
        spans.close(importer, end);
    }
    spans.end(importer, last);
    left_out
}

/// The durations with their ends, in the order of the ends, and the number of begins without an end and ends
/// without a begin.
pub(crate) fn durations(slices: Vec<Slice<'_>>) -> (Vec<(Slice<'_>, u64)>, u64) {
    let mut open: OpenSlices<Slice<'_>> = OpenSlices::new();
    let (mut durations, mut left_out) = (Vec::new(), 0);
    for slice in slices {
        match slice.kind {
            SliceKind::Begin => {
                let name = Rc::clone(&slice.name);
                open.begin(&name, slice);
            }
            SliceKind::Complete(end) => durations.push((slice, end)),
            SliceKind::End => {
                let is_known = open.end(&slice.name, |begin, is_it| {
                    if is_it {
                        durations.push((begin, slice.time));
                    } else {
                        left_out += 1;
                    }
                });
                left_out += u64::from(!is_known);
            }
        }
    }
    (durations, left_out + open.begin_count as u64)
}
