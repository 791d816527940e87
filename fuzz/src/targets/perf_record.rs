//! Parsing one perf record of an arbitrary format, and what it means as an event.

use arbitrary::{Result, Unstructured};
use bytes::Bytes;
use nyquist_convert::perf::{
    AdditionalEventKind, AdditionalEvent, CounterMeaning, Details, EventCpus, AdditionalEvents, OccurrenceEvent, PerfDecoder,
    Period, SampleFields,
};
use nyquist_object::elf::Architecture;
use nyquist_perf::file::TracepointFormat;
use nyquist_perf::{RecordBody, ByteOrder, ReadFormat, RecordFormat, Sample, SampleType, parse_record};

/// Events 3 to 7 are not clocks.
fn additional_events() -> AdditionalEvents {
    const FORMAT: &str = "name: b\nID: 7\n\tfield:int pid;\toffset:8;\tsize:4;\tsigned:1;
\tfield:char b[4];\toffset:12;\tsize:4;\tsigned:0;\n\tfield:__data_loc char[] c;\toffset:16;\tsize:4;\tsigned:0;\n";
    let format = TracepointFormat::parse("a", FORMAT);
    let occurrences =
        |details, period| AdditionalEventKind::Occurrences(OccurrenceEvent::new("a:b", details, period, 10));
    let fields = format.clone().map_or(Details::None, Details::Fields);
    let wakeups = format.map_or(AdditionalEventKind::SwitchStacks, AdditionalEventKind::Wakeups);
    let events = [
        (3, occurrences(Details::Address, Some(1)), SampleFields::Common),
        (4, occurrences(fields, None), SampleFields::NoPeriod),
        (5, AdditionalEventKind::SwitchStacks, SampleFields::NoPeriod),
        (6, wakeups, SampleFields::NoPeriod),
        (7, occurrences(Details::None, None), SampleFields::Count),
    ];
    let event = |(id, kind, fields)| (id, AdditionalEvent { kind, fields }.into());
    events.map(event).into_iter().collect()
}

/// Takes one input.
pub fn run(bytes: &[u8]) {
    let _ = parse(&mut Unstructured::new(bytes));
}

fn parse(input: &mut Unstructured<'_>) -> Result<()> {
    let format = RecordFormat {
        sample_type: SampleType(input.arbitrary::<u32>()?.into()),
        read_format: ReadFormat(input.arbitrary::<u8>()?.into()),
        user_registers: input.arbitrary::<u32>()?.into(),
        interrupt_registers: input.arbitrary::<u32>()?.into(),
        branch_sample_type: input.arbitrary::<u32>()?.into(),
        sample_id_all: input.arbitrary()?,
        byte_order: if input.arbitrary()? { ByteOrder::Big } else { ByteOrder::Little },
    };
    let architecture = *input.choose(&[Architecture::X86_64, Architecture::X86, Architecture::Aarch64])?;
    let events = PerfDecoder {
        format,
        architecture,
        kernel: input.arbitrary()?,
        period: if input.arbitrary()? { Period::Provided } else { Period::Each(1) },
        cpus: EventCpus::from_iter([(1, 0), (2, 1)]),
        counters: CounterMeaning::CpuTime,
        successors: [2].into_iter().collect(),
        additional_events: additional_events(),
    };
    let record = Bytes::copy_from_slice(input.bytes(input.len())?);
    let _ = events.event(&record, &record);
    match parse_record(&record, &format).map(|record| record.body) {
        Ok(RecordBody::Sample(sample)) => read_lists(&sample),
        Ok(RecordBody::Read(read)) => drop(read.counters.iter().count()),
        Ok(RecordBody::Namespaces(namespaces)) => drop(namespaces.links().count()),
        _ => {}
    }
    Ok(())
}

fn read_lists(sample: &Sample<'_>) {
    let _ = sample.callchain.map(|chain| (chain.iter().count(), chain.get(usize::MAX)));
    let _ = sample.branches.as_ref().map(|branches| branches.iter().count());
    let _ = sample.counters.as_ref().map(|counters| (counters.iter().count(), counters.first()));
    for registers in [&sample.user_registers, &sample.interrupt_registers].into_iter().flatten() {
        let _ = (0..=64).filter_map(|number| registers.get(number)).count();
    }
}
