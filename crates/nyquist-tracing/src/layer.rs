//! The layer: converts spans and events of `tracing` to markers.

use crate::protocol::{self, Field, MarkerKind, Number, Values, record};
use crate::spans::{Span, Spans};
use crate::{local, session, sys};
use std::cell::{Cell, RefCell};
use std::fmt::{self, Write as _};
use tracing_core::field::Visit;
use tracing_core::span::{Attributes, Id, Record};
use tracing_core::subscriber::Interest;
use tracing_core::{Event, LevelFilter, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Filter};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::{Layer as _, filter::Filtered};

/// The track that shows tasks as a whole.
const TASKS: &str = "async tasks";

/// The fields that a task has beside its span's own, and their formats.
const TASK_FIELDS: [(&str, &str); 5] = [
    ("span", "terminating-flow-id"),
    ("parent", "flow-id"),
    ("busy", "duration"),
    ("idle", "duration"),
    ("runs", "integer"),
];

/// The layer, with a filter that disables it while no recorder listens.
///
/// All spans and events that the program has enabled become markers. To reduce them, filter it like any
/// layer:
///
/// ```
/// use tracing_subscriber::filter::LevelFilter;
/// use tracing_subscriber::prelude::*;
///
/// let markers = nyquist_tracing::layer().with_filter(LevelFilter::INFO);
/// tracing_subscriber::registry().with(markers).init();
/// ```
pub fn layer<S>() -> Filtered<Layer, Switch, S>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    session::start();
    Layer(Spans::new()).with_filter(Switch(()))
}

/// Writes spans and events as markers; made by [`layer`].
///
/// A span is an interval on the thread for each time that it was entered and left. Spans of asynchronous
/// functions are entered at each poll. A span that was entered more than once is also an interval on a
/// separate track, from its creation to its end, with its busy and idle time. All of its intervals have
/// the same id.
#[derive(Debug)]
pub struct Layer(Spans);

/// The filter of only this layer: off while no recorder listens. Other layers keep their spans.
#[derive(Debug)]
pub struct Switch(());

impl<S> Filter<S> for Switch {
    fn enabled(&self, _: &Metadata<'_>, _: &Context<'_, S>) -> bool {
        session::current() != 0
    }

    fn callsite_enabled(&self, _: &'static Metadata<'static>) -> Interest {
        if session::current() == 0 { Interest::never() } else { Interest::always() }
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        (session::current() == 0).then_some(LevelFilter::OFF)
    }
}

/// A span that the thread has entered.
struct Run {
    span: Id,
    start: u64,
}

thread_local! {
    /// The spans that the thread has entered, the innermost last.
    static RUNS: RefCell<Vec<Run>> = const { RefCell::new(Vec::new()) };
    /// The next id of the thread for a span.
    static NEXT_ID: Cell<u64> = const { Cell::new(0) };
    /// The memory of an event's values.
    static EVENT_VALUES: Cell<Values> = const { Cell::new(Values::new()) };
}

impl<S> tracing_subscriber::Layer<S> for Layer
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, _: Context<'_, S>) {
        let created = sys::now();
        let mut values = Values::for_fields(attributes.metadata().fields().len());
        attributes.record(&mut Encoder(&mut values));
        let (metadata, parent) = (attributes.metadata(), self.parent(attributes));
        let span = Span { metadata, values, id: next_id(), parent, created, runs: 0, busy: 0 };
        self.0.insert(id, span);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, _: Context<'_, S>) {
        // Formatting a value may itself be traced, so no lock may be held here.
        let mut recorded = Values::new();
        values.record(&mut Encoder(&mut recorded));
        self.0.with(id, |span| span.values.append(&recorded));
    }

    fn on_enter(&self, id: &Id, _: Context<'_, S>) {
        // The span's data is not accessed here, because this would cost as much as the clock.
        let run = Run { span: id.clone(), start: sys::now() };
        let _ = RUNS.try_with(|runs| runs.borrow_mut().push(run));
    }

    fn on_exit(&self, id: &Id, _: Context<'_, S>) {
        let end = sys::now();
        if let Some(start) = leave(id) {
            self.0.with(id, |span| {
                span.runs = span.runs.saturating_add(1);
                span.busy += end.saturating_sub(start);
                // The first run may be the only one. With the second, it is a task that began at its
                // creation.
                if span.runs == 2 {
                    write_task(span, record::START, (span.created, span.id));
                }
                write_run(span, (start, end));
            });
        }
    }

    fn on_close(&self, id: Id, _: Context<'_, S>) {
        let Some(span) = self.0.remove(&id) else { return };
        match span.runs {
            // Its thread's track shows all of it.
            1 => {}
            0 => write_task(&span, record::INTERVAL, (span.created, sys::now())),
            _ => write_task(&span, record::END, (sys::now(), span.id)),
        }
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let now = sys::now();
        let mut values = EVENT_VALUES.try_with(Cell::take).unwrap_or_default();
        values.clear();
        event.record(&mut Encoder(&mut values));
        write_event(event.metadata(), now, &values);
        let _ = EVENT_VALUES.try_with(|retained| retained.set(values));
    }
}

/// Ids of spans, unique in the process: each thread reserves a million of them at a time.
fn next_id() -> u64 {
    use std::sync::atomic::{AtomicU64, Ordering};
    const BLOCK: u64 = 1 << 20;
    static BLOCKS: AtomicU64 = AtomicU64::new(0);
    let next = NEXT_ID.try_with(Cell::get).unwrap_or_default();
    let id = if next % BLOCK == 0 { BLOCKS.fetch_add(1, Ordering::Relaxed) * BLOCK + 1 } else { next };
    let _ = NEXT_ID.try_with(|next| next.set(id + 1));
    id
}

impl Layer {
    /// The id of the span around a new one; 0 if there is none.
    fn parent(&self, attributes: &Attributes<'_>) -> u64 {
        if attributes.is_contextual() {
            let known = |run: &Run| self.0.with(&run.span, |span| span.id);
            let current = RUNS.try_with(|runs| runs.borrow().iter().rev().find_map(known));
            return current.ok().flatten().unwrap_or_default();
        }
        attributes.parent().and_then(|parent| self.0.with(parent, |span| span.id)).unwrap_or_default()
    }
}

/// Removes a span from those that the thread has entered, and returns the time of entering it.
fn leave(id: &Id) -> Option<u64> {
    let left = RUNS.try_with(|runs| {
        let mut runs = runs.borrow_mut();
        // The innermost span is nearly always the one that is left.
        if runs.last().is_some_and(|run| run.span == *id) {
            return runs.pop().map(|run| run.start);
        }
        let at = runs.iter().rposition(|run| run.span == *id)?;
        Some(runs.remove(at).start)
    });
    left.ok().flatten()
}

/// Writes a run of a span on the thread.
fn write_run(span: &Span, times: (u64, u64)) {
    let id = (own_fields(span), Number::Integer(span.id as i64));
    write(span, Variant::Run, (record::INTERVAL, times), &[id]);
}

/// Writes a span as a whole, or its start or end.
fn write_task(span: &Span, record: u8, times: (u64, u64)) {
    let first = own_fields(span);
    let end = if record == record::END { times.0 } else { times.1 };
    let idle = end.saturating_sub(span.created).saturating_sub(span.busy);
    let fields = [
        Number::Integer(span.id as i64),
        Number::Integer(span.parent as i64),
        Number::Any(span.busy as f64 / 1e6),
        Number::Any(idle as f64 / 1e6),
        Number::Integer(i64::from(span.runs)),
    ];
    let fields = std::array::from_fn::<_, 5, _>(|at| (first + at, fields[at]));
    // At its start, the time that the span will have used is not known.
    let known = if record == record::START { 2 } else { fields.len() };
    write(span, Variant::Task, (record, times), &fields[..known]);
}

/// The index of the first field that is not the span's own.
fn own_fields(span: &Span) -> usize {
    span.metadata.fields().len()
}

fn write(span: &Span, variant: Variant, (record, times): (u8, (u64, u64)), more: &[(usize, Number)]) {
    local::with_writer(|writer| {
        let address = address_of(span.metadata) + variant as usize;
        if let Some(kind) = writer.kind(address, || variant.kind(span.metadata)) {
            writer.push(|out| {
                protocol::put_marker(out, (record, kind), "", times, &span.values, more);
            });
        }
    });
}

fn write_event(metadata: &'static Metadata<'static>, now: u64, values: &Values) {
    local::with_writer(|writer| {
        let address = address_of(metadata);
        if let Some(kind) = writer.kind(address, || Variant::Event.kind(metadata)) {
            writer.push(|out| {
                let kind = (record::INSTANT, kind);
                protocol::put_marker(out, kind, metadata.level().as_str(), (now, now), values, &[]);
            });
        }
    });
}

/// The address that identifies a callsite: its metadata lives as long as the program.
fn address_of(metadata: &'static Metadata<'static>) -> usize {
    metadata as *const Metadata<'static> as usize
}

/// The kind of a callsite's markers.
#[derive(Clone, Copy, Debug)]
enum Variant {
    Run,
    Task,
    Event,
}

impl Variant {
    /// The kind of marker of a callsite.
    fn kind(self, metadata: &'static Metadata<'static>) -> MarkerKind<'static> {
        let place = match (metadata.file(), metadata.line()) {
            (Some(file), Some(line)) => format!(" at {file}:{line}"),
            _ => String::new(),
        };
        let described = |what: &str| format!("{what} of {}{place}", metadata.target()).into();
        let name = metadata.name();
        let own_fields =
            metadata.fields().iter().map(|field| Field { key: field.name(), ..Field::default() });
        let mut kind = MarkerKind {
            name: name.into(),
            marker_name: name,
            category: crate_of(metadata.target()),
            fields: own_fields.collect(),
            ..MarkerKind::default()
        };
        let field = |&(key, format)| Field { key, label: "", format };
        match self {
            Self::Run => {
                kind.description = described("A run of a span");
                kind.fields.push(field(&("span", "flow-id")));
            }
            Self::Task => {
                kind.name = format!("{name} (task)").into();
                kind.track = TASKS;
                kind.description = described("A span from its creation to its end,");
                kind.fields.extend(TASK_FIELDS.iter().map(field));
            }
            Self::Event => {
                kind.name = format!("event {}", metadata.target()).into();
                kind.marker_name = metadata.level().as_str();
                kind.description = described("An event");
                kind.table_label = "{marker.data.message}";
            }
        }
        kind
    }
}

/// The crate of a target, which is a module's path unless the program sets another.
fn crate_of(target: &'static str) -> &'static str {
    target.split("::").next().unwrap_or(target)
}

/// Encodes the values of fields.
struct Encoder<'a>(&'a mut Values);

impl Visit for Encoder<'_> {
    fn record_i64(&mut self, field: &tracing_core::Field, value: i64) {
        self.0.integer(field.index(), value);
    }

    fn record_u64(&mut self, field: &tracing_core::Field, value: u64) {
        match i64::try_from(value) {
            Ok(value) => self.0.integer(field.index(), value),
            Err(_) => self.0.text(field.index(), &value.to_string()),
        }
    }

    fn record_f64(&mut self, field: &tracing_core::Field, value: f64) {
        self.0.number(field.index(), value);
    }

    fn record_bool(&mut self, field: &tracing_core::Field, value: bool) {
        self.0.text(field.index(), if value { "true" } else { "false" });
    }

    fn record_str(&mut self, field: &tracing_core::Field, value: &str) {
        self.0.text(field.index(), value);
    }

    fn record_debug(&mut self, field: &tracing_core::Field, value: &dyn fmt::Debug) {
        let mut text = Limited(String::new());
        // An error means that the text is too long, or that the value cannot be formatted. Then the part that
        // was written is kept.
        let _ = write!(text, "{value:?}");
        self.0.text(field.index(), &text.0);
    }
}

/// A text whose length is limited to what is kept of a value.
struct Limited(String);

impl fmt::Write for Limited {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.push_str(text);
        if self.0.len() > protocol::MAX_TEXT { Err(fmt::Error) } else { Ok(()) }
    }
}
