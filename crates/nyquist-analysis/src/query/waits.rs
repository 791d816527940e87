//! Waits by the object that threads waited for: how many, how long, and where. Also the threads that held the
//! object, and the threads that ended the waits.

use nyquist_profile::{Marker, MarkerTiming, MarkerValue, Profile, StackId, StringId, well_known};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;

use crate::query::markers::{Durations, durations};
use crate::view::View;

/// The waits of processes with the same name for the same object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitedFor<'a> {
    /// The kind of object, such as `lock`.
    pub reason: &'a str,
    /// The object, such as a file's path or a futex's address, if known.
    pub object: Option<&'a str>,
    /// The name of the processes.
    pub process: &'a str,
    /// The durations of the waits. Their total includes `unseen_ns`.
    pub durations: Durations,
    /// The time of further waits of these threads, which were not seen and which these waits stand for, in ns.
    pub unseen_ns: u64,
    /// The threads that held the object, with the time that others waited for them, in ns, the longest first.
    pub holders: Vec<(&'a str, u64)>,
    /// The threads that ended the waits, if known, with the length of these waits, in ns, the longest first.
    /// Interrupts count as one thread.
    pub wakers: Vec<(&'a str, u64)>,
    /// The places where threads waited, with the total time of each, in ns, the longest first.
    pub stacks: Vec<(StackId, u64)>,
}

/// The key by which waits are grouped.
type WaitKey<'a> = (&'a str, Option<StringId>, Option<StringId>);

#[derive(Default)]
struct WaitGroup {
    durations: Vec<u64>,
    unseen_ns: u64,
    holders: FxHashMap<StringId, u64>,
    wakers: FxHashMap<StringId, u64>,
    stacks: FxHashMap<StackId, u64>,
}

impl<'a> View<'a> {
    /// The waits of the selected threads that ended in the selected times, of those that were recorded
    /// individually. Their totals have the time of the others that they stand for. The longest in total come
    /// first. Filters by function do not apply. O(markers × log markers).
    pub fn waits(&self) -> Vec<WaitedFor<'a>> {
        let profile = self.profile();
        let times = self.selection.times();
        let mut waits: FxHashMap<WaitKey<'a>, WaitGroup> = FxHashMap::default();
        for &thread in &self.chosen.threads {
            let thread = profile.thread(thread);
            for marker in thread.markers.iter().filter(|marker| is_wait(profile, marker)) {
                let MarkerTiming::Interval(start, end) = marker.timing else { continue };
                if times.contains(&end) {
                    let [reason, object, holder, waker] = texts(marker);
                    let key = (&*profile.process(thread.process).name, reason, object);
                    let wait = waits.entry(key).or_default();
                    let times = (end.saturating_sub(start), unseen_ns(profile, marker));
                    wait.add(times, [holder, waker], marker.stack);
                }
            }
        }
        let mut rows: Vec<_> = waits.into_iter().map(|(key, found)| row(profile, key, found)).collect();
        rows.sort_by(|a, b| {
            let by_time = b.durations.total_ns.cmp(&a.durations.total_ns);
            by_time.then_with(|| (a.reason, a.object, a.process).cmp(&(b.reason, b.object, b.process)))
        });
        rows
    }
}

impl WaitGroup {
    fn add(
        &mut self,
        (length, unseen): (u64, u64),
        [holder, waker]: [Option<StringId>; 2],
        stack: Option<StackId>,
    ) {
        // A marker without a length only stands for others.
        if length > 0 || unseen == 0 {
            self.durations.push(length);
        }
        add(&mut self.unseen_ns, unseen);
        let length = length.saturating_add(unseen);
        if let Some(holder) = holder {
            add(self.holders.entry(holder).or_default(), length);
        }
        if let Some(waker) = waker {
            add(self.wakers.entry(waker).or_default(), length);
        }
        if let Some(stack) = stack {
            add(self.stacks.entry(stack).or_default(), length);
        }
    }
}

fn add(time: &mut u64, more: u64) {
    *time = time.saturating_add(more);
}

fn row<'a>(profile: &'a Profile, key: WaitKey<'a>, found: WaitGroup) -> WaitedFor<'a> {
    let (process, reason, object) = key;
    let text = |id: StringId| profile.string(id);
    let threads = |times: FxHashMap<StringId, u64>| {
        let mut threads: Vec<_> = times.into_iter().map(|(thread, time)| (text(thread), time)).collect();
        threads.sort_unstable_by_key(|(thread, time)| (Reverse(*time), *thread));
        threads
    };
    let mut stacks: Vec<_> = found.stacks.into_iter().collect();
    stacks.sort_unstable_by_key(|(stack, time)| (Reverse(*time), *stack));
    let mut durations = durations(found.durations).unwrap_or_default();
    add(&mut durations.total_ns, found.unseen_ns);
    WaitedFor {
        reason: reason.map_or("", text),
        object: object.map(text),
        process,
        durations,
        unseen_ns: found.unseen_ns,
        holders: threads(found.holders),
        wakers: threads(found.wakers),
        stacks,
    }
}

fn is_wait(profile: &Profile, marker: &Marker) -> bool {
    marker.schema.is_some_and(|schema| profile.marker_schema(schema).name == well_known::WAIT_SCHEMA)
}

/// The time of earlier waits that a wait stands for. A file may state any time, so it is bounded.
fn unseen_ns(profile: &Profile, marker: &Marker) -> u64 {
    let Some(schema) = marker.schema else { return 0 };
    let fields = &profile.marker_schema(schema).fields;
    let at = fields.iter().position(|field| field.key == well_known::WAIT_UNSEEN);
    let ms = match at.and_then(|at| marker.values.get(at)) {
        Some(MarkerValue::Number(ms)) => *ms,
        Some(MarkerValue::Integer(ms)) => *ms as f64,
        _ => 0.0,
    };
    // A conversion of a number that is negative or none results in 0, of a large one in the largest.
    (ms * 1e6) as u64
}

/// The values of a wait's fields that are present.
fn texts(marker: &Marker) -> [Option<StringId>; 4] {
    std::array::from_fn(|at| match marker.values.get(at) {
        Some(MarkerValue::String(id)) => Some(*id),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use nyquist_profile::{CategoryId, MarkerField, MarkerFormat, MarkerSchema};

    use super::*;
    use crate::selection::Selection;
    use crate::test_profile::{TestProfile, with_view};

    /// Adds a wait to a thread, with the function in which it waits.
    fn wait(test: &mut TestProfile, thread: usize, (start, end): (u64, u64), texts: [&str; 4], place: &str) {
        let builder = &mut test.builder;
        let schema = builder.profile().marker_schemas().iter().position(|it| it.name == "Wait");
        let schema = match schema {
            Some(at) => nyquist_profile::MarkerSchemaId::from_index(at),
            None => {
                let field = |key: &str| MarkerField {
                    key: key.to_owned(),
                    label: None,
                    format: MarkerFormat::String,
                };
                let fields = ["reason", "object", "holder", "waker"].map(field).to_vec();
                builder.add_marker_schema(MarkerSchema { name: "Wait".into(), fields, ..Default::default() })
            }
        };
        let value = |builder: &mut nyquist_profile::ProfileBuilder, text: &str| match text {
            "" => MarkerValue::Missing,
            text => MarkerValue::String(builder.intern_string(text)),
        };
        let values = texts.map(|text| value(builder, text)).to_vec();
        let (name, stack) = (builder.intern_string("Wait"), builder.intern_label(None, place, None));
        let marker = Marker {
            name,
            timing: MarkerTiming::Interval(start, end),
            category: CategoryId::from_index(0),
            schema: Some(schema),
            values,
            stack: Some(stack),
        };
        builder.add_marker(nyquist_profile::ThreadIndex::from_index(thread), marker);
    }

    #[test]
    fn waits_for_one_thing_are_together() {
        let mut test = TestProfile::new();
        test.thread("1", "a");
        test.sample("user:main", 1);
        test.thread("1", "b");
        wait(&mut test, 0, (0, 10), ["lock", "0x10", "b (2)", "b (2)"], "push");
        wait(&mut test, 1, (5, 30), ["lock", "0x10", "a (1)", "c (3)"], "pop");
        wait(&mut test, 0, (20, 27), ["lock", "0x20", "", ""], "push");
        wait(&mut test, 0, (30, 90), ["sleep", "", "", "an interrupt"], "idle");
        with_view(&test.finish(), &Selection::default(), |view| {
            let rows = view.waits();
            let short = |row: &WaitedFor<'_>| {
                let where_ = row.stacks.iter().map(|(stack, time)| {
                    let frame = view.profile().stack_frames(*stack).next().unwrap();
                    format!("{} {time}", view.profile().func_name(frame.func))
                });
                let where_: Vec<_> = where_.collect();
                let Durations { count, total_ns, max_ns, .. } = row.durations;
                format!(
                    "{} {:?} {count} {total_ns} {max_ns} {:?} {:?} {where_:?}",
                    row.reason, row.object, row.holders, row.wakers
                )
            };
            let rows: Vec<_> = rows.iter().map(short).collect();
            assert_eq!(
                rows,
                [
                    r#"sleep None 1 60 60 [] [("an interrupt", 60)] ["idle 60"]"#,
                    r#"lock Some("0x10") 2 35 25 [("a (1)", 25), ("b (2)", 10)] [("c (3)", 25), ("b (2)", 10)] ["pop 25", "push 10"]"#,
                    r#"lock Some("0x20") 1 7 7 [] [] ["push 7"]"#,
                ]
            );
        });
    }

    #[test]
    fn seen_waits_stand_for_others() {
        let with_length = |length, ms| {
            let field =
                |key: &str| MarkerField { key: key.into(), label: None, format: MarkerFormat::String };
            let fields = vec![field("reason"), field(well_known::WAIT_UNSEEN)];
            let schema = MarkerSchema { name: "Wait".into(), fields, ..Default::default() };
            let mut test = TestProfile::new();
            test.thread("1", "a");
            let schema = test.builder.add_marker_schema(schema);
            let name = test.builder.intern_string("lock");
            let timing = MarkerTiming::Interval(0, length);
            let values = vec![MarkerValue::String(name), ms];
            let category = CategoryId::from_index(0);
            let marker = Marker { name, timing, category, schema: Some(schema), values, stack: None };
            test.builder.add_marker(nyquist_profile::ThreadIndex::from_index(0), marker);
            with_view(&test.finish(), &Selection::default(), |view| {
                let [wait] = &view.waits()[..] else { panic!("one wait") };
                (wait.durations.count, wait.durations.total_ns, wait.unseen_ns, wait.durations.max_ns)
            })
        };
        let value = |ms| with_length(10, ms);
        assert_eq!(value(MarkerValue::Number(0.5)), (1, 500_010, 500_000, 10));
        assert_eq!(value(MarkerValue::Integer(1)), (1, 1_000_010, 1_000_000, 10));
        for none in [MarkerValue::Missing, MarkerValue::Number(f64::NAN), MarkerValue::Number(-1.0)] {
            assert_eq!(value(none), (1, 10, 0, 10));
        }
        assert_eq!(with_length(0, MarkerValue::Integer(1)), (0, 1_000_000, 1_000_000, 0), "only unseen ones");
        assert_eq!(value(MarkerValue::Number(f64::INFINITY)).1, u64::MAX);
    }

    #[test]
    fn waits_belong_to_where_they_ended() {
        let mut test = TestProfile::new();
        test.thread("1", "a");
        wait(&mut test, 0, (0, 10), ["sleep", "", "", ""], "idle");
        wait(&mut test, 0, (12, 40), ["sleep", "", "", ""], "idle");
        let selection = Selection { range: Some(20..50), ..Selection::default() };
        with_view(&test.finish(), &selection, |view| {
            let totals: Vec<_> = view.waits().iter().map(|row| row.durations.total_ns).collect();
            assert_eq!(totals, [28]);
        });
    }
}
