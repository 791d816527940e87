//! Recordings are written, damaged, and read back.

use super::*;
use crate::batch::Batch;
use crate::blocks::SegmentWriter;
use crate::header::Header;
use crate::lasting_wait::LastingWait;
use crate::read_blocks::read_segment;
use crate::table_marks::TableMarks;
use nyquist_profile::{
    CategoryColor, CategoryPair, Counter, CounterDisplay, CounterGraph, CounterSample, Frame, Func,
    GraphColor, Lib, Marker, MarkerField, MarkerFormat, MarkerSchema, MarkerTiming, MarkerValue, Process,
    ProcessIndex, Profile, Sample, Thread, ThreadIndex,
};

/// A recording that grows by a second at each call.
struct Grown {
    builder: ProfileBuilder,
    seconds: u64,
}

impl Grown {
    fn new() -> Self {
        let meta = Meta { product: "program".into(), interval: 1_000_000, ..Meta::default() };
        let mut builder = ProfileBuilder::new(meta);
        for number in 0..2 {
            let lib =
                Lib { name: format!("lib{number}"), debug_name: format!("lib{number}"), ..Lib::default() };
            builder.add_lib(lib);
        }
        Self { builder, seconds: 0 }
    }

    fn grow(&mut self) {
        let second = self.seconds;
        self.seconds += 1;
        let builder = &mut self.builder;
        let row = Process { pid: second.to_string(), name: "p".into(), ..Process::default() };
        let process = builder.add_process(row);
        let thread = builder.add_thread(Thread::new(process, second.to_string(), format!("thread {second}")));
        let category = builder.add_category("User", CategoryColor::Yellow);
        let subcategory = builder.add_subcategory(category, &format!("part {second}"));
        let name = builder.intern_string("");
        let func = builder.intern_func(Func::new(name, Some(LibId::from_index(second as usize % 2))));
        let mut stack = None;
        for depth in 0..20 {
            let category = Some(CategoryPair { category, subcategory });
            let address = Some(depth * 16 + second as u32);
            let frame = builder.intern_frame(Frame { address, category, ..Frame::label(func) });
            stack = Some(builder.intern_stack(stack, frame));
            for thread in [thread, ThreadIndex::from_index(0)] {
                let time = second * 1_000_000_000 + u64::from(depth) * 1_000_000;
                let weight = if depth == 7 { 3 } else { 1 };
                let sample = Sample::new(time, stack.filter(|_| depth != 3), 999_000 + u64::from(depth));
                builder.add_sample(thread, Sample { weight, off_cpu: depth == 7, ..sample });
            }
        }
        self.add_marker(thread, category);
        self.count(process);
    }

    fn add_marker(&mut self, thread: ThreadIndex, category: CategoryId) {
        let field = MarkerField { key: "k".into(), label: None, format: MarkerFormat::Integer };
        let schema = MarkerSchema {
            name: format!("kind {}", self.seconds),
            fields: vec![field; 4],
            ..MarkerSchema::default()
        };
        let schema = Some(self.builder.add_marker_schema(schema));
        let name = self.builder.intern_string("marker");
        let values = vec![
            MarkerValue::Missing,
            MarkerValue::String(name),
            MarkerValue::Integer(-7),
            MarkerValue::Number(0.5),
        ];
        let timing = MarkerTiming::Interval(1, self.seconds);
        let stack = Some(StackId::from_index(0));
        self.builder.add_marker(thread, Marker { name, timing, category, schema, values, stack });
    }

    fn count(&mut self, process: ProcessIndex) {
        let display = CounterDisplay {
            graph: CounterGraph::Rate,
            unit: "bytes".into(),
            color: GraphColor::Blue,
            marker_schema_location: None,
            sort_weight: -3,
            label: "label".into(),
        };
        let sample = CounterSample { time: self.seconds, delta: 1.5, operations: Some(2) };
        let counter = Counter {
            name: "c".into(),
            category: "d".into(),
            description: String::new(),
            process,
            display,
            samples: vec![sample],
        };
        self.builder.add_counter(counter);
    }

    fn profile(&self) -> Profile {
        self.builder.clone().finish()
    }

    fn state(&self) -> State {
        let wait = LastingWait {
            thread: 0,
            since: 5,
            stack: Some(1),
            reason: "lock".into(),
            ..LastingWait::default()
        };
        State { end: self.seconds, samples: 20 * self.seconds, waits: vec![wait], ..State::default() }
    }

    fn batch(&self, marks: &mut TableMarks) -> Batch {
        let mut batch = Batch::default();
        let profile = self.builder.profile();
        marks.add_new((profile, profile, true), |counter| counter.index() == 1, &mut batch);
        self.state().add_to(&mut batch);
        batch
    }
}

fn read(file: &[u8]) -> RecoveredTables {
    let mut tables = RecoveredTables::default();
    let _ = read_segment(file, |record, skipped| tables.take(record, skipped)).unwrap();
    tables
}

/// The file of a recording, and the profile at the end of each batch.
fn recording(seconds: u64) -> (Vec<u8>, Vec<(usize, Profile)>) {
    let (mut grown, mut marks, mut file) = (Grown::new(), TableMarks::default(), Vec::new());
    let mut writer = SegmentWriter::begin(&mut file, Header::default()).unwrap();
    let mut ends = Vec::new();
    for _ in 0..seconds {
        grown.grow();
        writer.append(grown.batch(&mut marks).records()).unwrap();
        ends.push((writer.size() as usize, grown.profile()));
    }
    (file, ends)
}

#[test]
fn a_recording_is_read_as_it_was_written() {
    let (file, ends) = recording(5);
    let recovered = read(&file).finish().unwrap();
    assert_eq!(recovered.state.samples, 100);
    assert_eq!(recovered.state.waits[0].reason, "lock");
    assert_eq!((recovered.accompanying, recovered.refused), (vec![CounterId::from_index(1)], 0));
    assert!(recovered.builder.finish() == ends[4].1);
}

#[test]
fn every_cut_keeps_what_was_written_before_it() {
    let (file, ends) = recording(3);
    for cut in 44..=file.len() {
        let whole = ends.iter().rfind(|(end, _)| *end <= cut);
        let tables = read(&file[..cut]);
        assert_eq!(
            tables.state().map(|state| state.end),
            whole.map(|_| ends.iter().filter(|(end, _)| *end <= cut).count() as u64),
            "cut at {cut}"
        );
        if ends.iter().any(|(end, _)| *end == cut) {
            assert!(tables.finish().unwrap().builder.finish() == whole.unwrap().1);
        }
    }
}

#[test]
fn records_that_come_twice_count_once() {
    let (mut grown, mut marks, mut tables) =
        (Grown::new(), TableMarks::default(), RecoveredTables::default());
    for _ in 0..3 {
        grown.grow();
        let batch = grown.batch(&mut marks);
        for record in batch.records().chain(batch.records()) {
            tables.take(record, 0);
        }
    }
    assert!(tables.finish().unwrap().builder.finish() == grown.profile());
}

#[test]
fn what_is_behind_lost_records_keeps_its_place() {
    let (mut grown, mut marks) = (Grown::new(), TableMarks::default());
    let mut records = Vec::new();
    for _ in 0..3 {
        grown.grow();
        records.extend(grown.batch(&mut marks).records().map(<[u8]>::to_vec));
    }
    let whole = grown.profile();
    for lost in 0..records.len() {
        let mut tables = RecoveredTables::default();
        for (at, record) in records.iter().enumerate() {
            if at != lost {
                tables.take(record, if at > lost { records[lost].len() as u64 } else { 0 });
            }
        }
        let recovered = tables.finish().unwrap();
        let profile = recovered.builder.finish();
        // Only what the record had is missing.
        assert!(profile.threads().len() + 1 >= whole.threads().len(), "{lost}");
        for thread in profile.threads() {
            let Some(known) = whole.threads().iter().find(|known| known.tid == thread.tid) else { continue };
            for sample in &thread.samples {
                let same = known.samples.iter().find(|other| other.time == sample.time);
                assert_eq!(
                    same.map(|same| (same.weight, same.cpu_delta)),
                    Some((sample.weight, sample.cpu_delta))
                );
            }
        }
    }
}

#[test]
fn nothing_is_made_of_a_stated_number() {
    let mut tables = RecoveredTables::default();
    for kind in 1..=17 {
        for start in [1, 1 << 30, u64::MAX] {
            let mut record = vec![kind];
            crate::fields::put_number(&mut record, start);
            record.extend([0; 40]);
            tables.take(&record, 100);
        }
    }
    let profile = tables.builder.profile();
    assert!(profile.strings().len() < 200 && profile.stacks().len() < 200 && profile.threads().len() < 200);
}
