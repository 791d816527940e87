//! Makes a trace of .NET by the description of its format, for tests and for fuzzing.

/// How many ticks of the made trace are a millisecond.
const MS: u64 = 10_000;

fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect()
}

/// Appends an object whose payload is aligned if it is a block.
pub fn object(out: &mut Vec<u8>, name: &str, payload: &[u8]) {
    out.extend([5, 5, 1]);
    for number in [2, 2, name.len() as u32] {
        out.extend(number.to_le_bytes());
    }
    out.extend(name.as_bytes());
    out.push(6);
    if name != "Trace" {
        out.extend((payload.len() as u32).to_le_bytes());
        out.resize(out.len().next_multiple_of(4), 0);
    }
    out.extend(payload);
    out.push(6);
}

fn varint(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number > 0x7f {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

/// An event: its description, thread, stack, time and payload.
pub type MadeEvent = (u32, u64, u32, u64, Vec<u8>);

/// A block of events. Every header has all fields.
pub fn events(events: &[MadeEvent]) -> Vec<u8> {
    let mut body = vec![20, 0, 1, 0];
    body.resize(20, 0);
    let mut last = 0;
    for (metadata, thread, stack, time, payload) in events {
        body.push(1 | 2 | 4 | 8 | 128);
        let fields =
            [u64::from(*metadata), 1, 99, 0, *thread, u64::from(*stack), time - last, payload.len() as u64];
        body.extend(fields.into_iter().flat_map(varint));
        body.extend(payload);
        last = *time;
    }
    body
}

/// A block of events whose headers are not compressed.
fn plain_events(events: &[MadeEvent]) -> Vec<u8> {
    let mut body = vec![20, 0, 0, 0];
    body.resize(20, 0);
    for (metadata, thread, stack, time, payload) in events {
        for number in [0, *metadata | 1 << 31, 1] {
            body.extend(number.to_le_bytes());
        }
        body.extend([thread.to_le_bytes(), 99_u64.to_le_bytes()].concat());
        body.extend([0_u32.to_le_bytes(), stack.to_le_bytes()].concat());
        body.extend(time.to_le_bytes());
        body.extend([0; 32]);
        body.extend((payload.len() as u32).to_le_bytes());
        body.extend(payload);
        body.resize(body.len().next_multiple_of(4), 0);
    }
    body
}

/// The description of an event.
pub fn described(id: u32, provider: &str, event: u32) -> MadeEvent {
    let payload = [&id.to_le_bytes()[..], &utf16(provider), &event.to_le_bytes(), &utf16("")].concat();
    (0, 0, 0, 0, payload)
}

/// The code of a method, as event 2.
pub fn method(start: u64, size: u32, class: &str, name: &str) -> MadeEvent {
    let numbers = [7_u64.to_le_bytes(), 70_u64.to_le_bytes(), start.to_le_bytes()].concat();
    let more = [size.to_le_bytes(), 0_u32.to_le_bytes(), 8_u32.to_le_bytes()].concat();
    let names = [utf16(class), utf16(name), utf16("void  (int32)"), vec![9, 0]].concat();
    (2, 1, 0, 90 * MS, [numbers, more, names].concat())
}

fn module() -> MadeEvent {
    let numbers = [70_u64.to_le_bytes(), 1_u64.to_le_bytes(), 0_u64.to_le_bytes()].concat();
    (3, 1, 0, 90 * MS, [numbers, utf16("/app/My.App.dll"), utf16("")].concat())
}

/// A sample, as event 1.
pub fn sample(thread: u64, stack: u32, ms: u64, kind: u32) -> MadeEvent {
    (1, thread, stack, 1000 * MS + ms * MS, kind.to_le_bytes().to_vec())
}

/// A block of stacks, whose numbers begin with `first`.
pub fn stack_block(first: u32, stacks: &[&[u64]]) -> Vec<u8> {
    let mut body = [first.to_le_bytes(), (stacks.len() as u32).to_le_bytes()].concat();
    for stack in stacks {
        body.extend((stack.len() as u32 * 8).to_le_bytes());
        body.extend(stack.iter().flat_map(|address| address.to_le_bytes()));
    }
    body
}

/// The header, and what a file says of the whole trace.
pub fn begin() -> Vec<u8> {
    let mut out = b"Nettrace\x14\0\0\0!FastSerialization.1".to_vec();
    let date: Vec<u8> = [2024_u16, 2, 4, 29, 1, 2, 3, 4].into_iter().flat_map(u16::to_le_bytes).collect();
    let ticks = [(1000 * MS).to_le_bytes(), (1000 * MS).to_le_bytes()].concat();
    let numbers: Vec<u8> = [8_u32, 4321, 4, 0].into_iter().flat_map(u32::to_le_bytes).collect();
    object(&mut out, "Trace", &[date, ticks, numbers].concat());
    out
}

/// Two threads: one runs for 3 ms and then waits for 2, and another one allocates. After a sequence point, numbers of
/// stacks mean others.
pub fn trace() -> Vec<u8> {
    let mut out = begin();
    let runtime = "Microsoft-Windows-DotNETRuntime";
    let descriptions = [
        described(1, "Microsoft-DotNETCore-SampleProfiler", 0),
        described(2, "Microsoft-Windows-DotNETRuntimeRundown", 144),
        described(3, "Microsoft-Windows-DotNETRuntimeRundown", 154),
        described(4, runtime, 10),
        described(5, "Microsoft-DotNETCore-EventPipe", 1),
        described(6, runtime, 187),
    ];
    object(&mut out, "MetadataBlock", &events(&descriptions));
    object(&mut out, "StackBlock", &stack_block(1, &[&[0x1005, 0x2010], &[0x2010]]));
    let tick = [&100_000_u32.to_le_bytes()[..], &[0; 6], &100_000_u64.to_le_bytes()].concat();
    let first = [
        sample(7, 1, 0, 2),
        sample(7, 1, 1, 2),
        (4, 8, 2, 1001 * MS, tick),
        sample(7, 2, 3, 1),
        (6, 7, 0, 1003 * MS, vec![1]),
    ];
    object(&mut out, "EventBlock", &events(&first));
    object(&mut out, "SPBlock", &[0; 12]);
    object(&mut out, "StackBlock", &stack_block(1, &[&[0x9999]]));
    object(&mut out, "EventBlock", &plain_events(&[sample(7, 1, 5, 2)]));
    let rundown = [
        method(0x1000, 0x10, "My.App", "Work"),
        method(0x2000, 0x10, "My.App", "Main"),
        module(),
        (5, 1, 0, 90 * MS, utf16("\"/opt/my app/app\" --fast")),
    ];
    object(&mut out, "EventBlock", &events(&rundown));
    out.push(1);
    out
}
