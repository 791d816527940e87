//! Arbitrary events into the converter, with snapshots and evictions between them; what comes out must be a
//! profile by every rule of the format.

use crate::sample_profile::check_rewritten;
use arbitrary::{Result, Unstructured};
use bytes::Bytes;
use nyquist_convert::event::{
    Counter, CounterKind, CounterValue, Event, EventKind, FieldValue, LiveStack, MappedFile, Mapping, Marker,
    MarkerCategory, MarkerTiming, Occurrence, OccurrenceCounter, OccurrenceKind, Pid, Registers, Sample, Tid,
    Timestamp, Track, UserStack, WaitReason, Waiting, Wakeup,
};
use nyquist_convert::{Converter, Options, Shape};
use nyquist_object::{Avma, BuildId, FileOffset};
use nyquist_profile::{
    CategoryColor, CounterGraph, GraphColor, MarkerDisplay, MarkerField, MarkerFormat, MarkerSchema, Meta,
};

/// What mappings show. A file that is there is this program's loader, which every machine has.
const PATHS: [&str; 7] = [
    "[vdso]",
    "//anon",
    "/lib64/ld-linux-x86-64.so.2",
    "/nowhere/lib.so (deleted)",
    "[heap]",
    "/dev/zero",
    "",
];

/// Takes one input.
pub fn run(bytes: &[u8]) {
    let input = &mut Unstructured::new(bytes);
    let interval = [1_000_000, 1, 0, u64::MAX][usize::from(bytes.first().copied().unwrap_or(0) % 4)];
    let meta = Meta { interval, ..Meta::default() };
    let kernel_permitted = input.arbitrary().unwrap_or(true);
    let shape = Shape { waits: input.arbitrary().unwrap_or(true), ..Shape::default() };
    let options = Options { kernel_permitted, shape, ..Options::new(Timestamp(1000), meta) };
    let mut converter = Converter::new(options);
    while !input.is_empty() {
        if step(&mut converter, input).is_err() {
            break;
        }
    }
    check_rewritten(&converter.finish().profile);
}

fn step(converter: &mut Converter, input: &mut Unstructured<'_>) -> Result<()> {
    match input.int_in_range(0..=15)? {
        0 => converter.advance(time(input)?),
        1 => check_rewritten(&converter.snapshot()),
        2 => converter.evict(time(input)?),
        _ => converter.push(Event { time: time(input)?, cpu: cpu(input)?, kind: kind(input)? }),
    }
    Ok(())
}

fn time(input: &mut Unstructured<'_>) -> Result<Timestamp> {
    Ok(Timestamp(if input.ratio(1, 16)? { input.arbitrary()? } else { input.arbitrary::<u16>()?.into() }))
}

fn cpu(input: &mut Unstructured<'_>) -> Result<Option<u32>> {
    Ok(input.arbitrary::<u8>()?.checked_sub(250).map(u32::from))
}

/// Few numbers, so that they meet; none of them is the number of a process that is likely to be there.
fn pid(input: &mut Unstructured<'_>) -> Result<Pid> {
    Ok(Pid(*input.choose(&[0, 4_000_001, 4_000_002, u32::MAX])?))
}

fn tid(input: &mut Unstructured<'_>) -> Result<Tid> {
    Ok(Tid(pid(input)?.0))
}

fn address(input: &mut Unstructured<'_>) -> Result<Avma> {
    Ok(Avma(match input.int_in_range(0..=3)? {
        0 => input.arbitrary()?,
        1 => 0xffff_ffff_8100_0000 + u64::from(input.arbitrary::<u16>()?),
        _ => 0x7f00_0000_0000 + u64::from(input.arbitrary::<u16>()?),
    }))
}

fn len(input: &mut Unstructured<'_>) -> Result<u64> {
    Ok(if input.ratio(1, 8)? { input.arbitrary()? } else { input.arbitrary::<u16>()?.into() })
}

fn kind(input: &mut Unstructured<'_>) -> Result<EventKind> {
    Ok(match input.int_in_range(0..=20)? {
        0 => EventKind::Map(mapping(input)?),
        1 => EventKind::Unmap { pid: pid(input)?, start: address(input)?, len: len(input)? },
        2 => {
            let (parent_pid, parent_tid) = (pid(input)?, tid(input)?);
            EventKind::Fork { pid: pid(input)?, tid: tid(input)?, parent_pid, parent_tid }
        }
        3 => {
            let name = input.arbitrary::<&str>()?.to_owned();
            EventKind::Name { pid: pid(input)?, tid: tid(input)?, name, exec: input.arbitrary()? }
        }
        4 => EventKind::Exit { pid: pid(input)?, tid: tid(input)? },
        5 => EventKind::Total { pid: pid(input)?, tid: tid(input)?, cpu_time_ns: len(input)? },
        6 => EventKind::Lost { records: len(input)? },
        7 => EventKind::Throttled,
        8 => EventKind::Marker(Box::new(marker(input)?)),
        9 => EventKind::Counter(counter(input)?),
        10 => EventKind::LiveStack(live_stack(input)?.into()),
        11 => EventKind::SwitchIn { tid: tid(input)? },
        12 => EventKind::Descheduled { pid: pid(input)?, tid: tid(input)?, preempted: input.arbitrary()? },
        13 => EventKind::Waiting(Box::new(waiting(input)?)),
        14 => EventKind::SwitchOut(sample(input)?),
        15 => EventKind::Occurrence(Box::new(occurrence(input)?)),
        16 => EventKind::OccurrencesLost { records: len(input)? },
        17 => EventKind::SwitchStack(sample(input)?),
        18 => EventKind::Wakeup(Box::new(wakeup(input)?)),
        _ => EventKind::Sample(sample(input)?),
    })
}

fn waiting(input: &mut Unstructured<'_>) -> Result<Waiting> {
    let reason = Some(*input.choose(&WaitReason::ALL)?);
    let object = if input.arbitrary()? { Some(text(input)?.into()) } else { None };
    let holder = if input.arbitrary()? { Some(tid(input)?) } else { None };
    let (sample, checked_before_ns) = (sample(input)?, len(input)?);
    let reason = reason.filter(|_| !input.is_empty());
    Ok(Waiting { sample, reason, object, holder, checked_before_ns })
}

fn wakeup(input: &mut Unstructured<'_>) -> Result<Wakeup> {
    Ok(Wakeup { sample: sample(input)?, woken: tid(input)?, in_interrupt: input.arbitrary()? })
}

fn occurrence(input: &mut Unstructured<'_>) -> Result<Occurrence> {
    let fields = (0..input.int_in_range(0..=2)?)
        .map(|_| Ok((text(input)?.to_owned(), *input.choose(MarkerFormat::ALL)?)))
        .collect::<Result<Vec<_>>>()?;
    let kind = OccurrenceKind::new(text(input)?, &fields, input.int_in_range(0..=3)?).into();
    let values = (0..input.int_in_range(0..=3)?).map(|_| value(input)).collect::<Result<_>>()?;
    let counter = match input.int_in_range(0..=2)? {
        0 => None,
        1 => Some(OccurrenceCounter { id: 1, tid: None, value: CounterValue::Total(len(input)?) }),
        _ => Some(OccurrenceCounter { id: 2, tid: Some(tid(input)?), value: CounterValue::UntilNext(len(input)?) }),
    };
    Ok(Occurrence { kind, sample: sample(input)?, count: len(input)?, counter, values })
}

fn live_stack(input: &mut Unstructured<'_>) -> Result<LiveStack> {
    let page = Bytes::from(vec![input.arbitrary()?; if input.ratio(1, 8)? { 7 } else { LiveStack::PAGE }]);
    let pages = vec![page; input.int_in_range(0..=3)?];
    let stack_pointer = if input.arbitrary()? { Some(address(input)?) } else { None };
    let (pid, tid, read_at, start) = (pid(input)?, tid(input)?, time(input)?, address(input)?);
    Ok(LiveStack { pid, tid, read_at, start, pages, stack_pointer })
}

/// Few texts, so that they meet, and some that have meanings of their own.
fn text(input: &mut Unstructured<'_>) -> Result<&'static str> {
    Ok(*input.choose(&["", "type", "cause", "type.0", "IPC", "IPC_", "a", "a.1", "b", "7", "1e999"])?)
}

fn marker(input: &mut Unstructured<'_>) -> Result<Marker> {
    let track =
        if input.arbitrary()? { Track::Thread(tid(input)?) } else { Track::Named(text(input)?.into()) };
    let timing = match input.int_in_range(0..=3)? {
        0 => MarkerTiming::Instant,
        1 => MarkerTiming::IntervalStart,
        2 => MarkerTiming::IntervalEnd,
        _ => MarkerTiming::Interval { start: time(input)? },
    };
    let values = (0..input.int_in_range(0..=4)?).map(|_| value(input)).collect::<Result<_>>()?;
    let schema = if input.arbitrary()? { Some(schema(input)?.into()) } else { None };
    let name = text(input)?.into();
    let category = if input.arbitrary()? {
        Some(MarkerCategory { name: text(input)?.into(), color: *input.choose(CategoryColor::ALL)? })
    } else {
        None
    };
    Ok(Marker { pid: pid(input)?, track, name, timing, schema, values, category })
}

fn schema(input: &mut Unstructured<'_>) -> Result<MarkerSchema> {
    let field = |input: &mut Unstructured<'_>| {
        Ok(MarkerField {
            key: text(input)?.to_owned(),
            label: None,
            format: *input.choose(MarkerFormat::ALL)?,
        })
    };
    Ok(MarkerSchema {
        name: text(input)?.to_owned(),
        display: vec![MarkerDisplay::Table],
        fields: (0..input.int_in_range(0..=4)?).map(|_| field(input)).collect::<Result<_>>()?,
        ..MarkerSchema::default()
    })
}

fn value(input: &mut Unstructured<'_>) -> Result<FieldValue> {
    Ok(match input.int_in_range(0..=3)? {
        0 => FieldValue::Missing,
        1 => FieldValue::String(text(input)?.into()),
        2 => FieldValue::Integer(input.arbitrary()?),
        _ => FieldValue::Number(input.arbitrary()?),
    })
}

fn counter(input: &mut Unstructured<'_>) -> Result<Counter> {
    let kind = CounterKind {
        name: text(input)?.to_owned(),
        unit: (*input.choose(&["bytes", "", "%"])?).to_owned(),
        category: text(input)?.to_owned(),
        description: String::new(),
        graph: *input.choose(CounterGraph::ALL)?,
        color: GraphColor::Blue,
        order: input.arbitrary()?,
        accompanies: input.arbitrary()?,
    };
    Ok(Counter { pid: pid(input)?, kind: kind.into(), value: input.arbitrary()? })
}

fn mapping(input: &mut Unstructured<'_>) -> Result<Mapping> {
    let identity = match input.int_in_range(0..=2)? {
        0 => MappedFile::Unknown,
        1 => BuildId::new(&input.arbitrary::<[u8; 4]>()?).map_or(MappedFile::Unknown, MappedFile::BuildId),
        _ => MappedFile::Inode { major: 8, minor: 1, inode: input.arbitrary::<u8>()?.into(), generation: 0 },
    };
    Ok(Mapping {
        pid: if input.arbitrary()? { Some(pid(input)?) } else { None },
        start: address(input)?,
        len: len(input)?,
        offset: FileOffset(len(input)?),
        path: (*input.choose(&PATHS)?).to_owned(),
        identity,
    })
}

fn sample(input: &mut Unstructured<'_>) -> Result<Sample> {
    let addresses = |input: &mut Unstructured<'_>| -> Result<Vec<Avma>> {
        (0..input.int_in_range(0..=6)?).map(|_| address(input)).collect()
    };
    Ok(Sample {
        pid: pid(input)?,
        tid: tid(input)?,
        in_kernel: input.arbitrary()?,
        state: nyquist_convert::event::SampleState::default(),
        period_ns: len(input)?,
        cpu_time_ns: if input.arbitrary()? { Some(len(input)?) } else { None },
        counts_anew: false,
        kernel_stack: addresses(input)?,
        user: match input.int_in_range(0..=3)? {
            0 => UserStack::None,
            1 => UserStack::Walked(addresses(input)?),
            2 => UserStack::FramePointers(addresses(input)?),
            _ => copied(input)?,
        },
    })
}

fn copied(input: &mut Unstructured<'_>) -> Result<UserStack> {
    let registers = match input.int_in_range(0..=7)? {
        0 => Registers::Bits32 { ip: input.arbitrary()? },
        1 => Registers::Aarch64(Box::new([input.arbitrary()?; 33])),
        2 => {
            Registers::Aarch64Partial { values: Box::new([address(input)?.0; 33]), known: input.arbitrary()? }
        }
        _ => {
            let mut values = [0; 17];
            for place in [6, 7, 16] {
                values[place] = address(input)?.0;
            }
            Registers::X86_64(values)
        }
    };
    let words: Vec<u64> =
        (0..input.int_in_range(0..=16)?).map(|_| Ok(address(input)?.0)).collect::<Result<_>>()?;
    let stack = words.iter().flat_map(|word| word.to_le_bytes()).collect::<Bytes>();
    Ok(UserStack::Copied { registers: Box::new(registers), stack, limited: input.arbitrary()? })
}
