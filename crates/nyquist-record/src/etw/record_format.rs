//! The form in which events wait in buffers: a header of fixed size, then the payload.

use nyquist_etw::{Event, Guid, PointerSize};

/// The size of a header.
pub(crate) const HEADER: usize = 48;
/// What stands for no process and no thread.
const NONE: u32 = u32::MAX;

/// Writes an event to the beginning of `room`, and returns its length; `None` if it does not fit.
pub(crate) fn write(event: &Event<'_>, room: &mut [u8]) -> Option<usize> {
    let len = HEADER.checked_add(event.payload.len())?;
    let (header, payload) = room.get_mut(..len)?.split_at_mut_checked(HEADER)?;
    let numbers: [&[u8]; 8] = [
        &event.provider.to_bytes(),
        &event.time.to_le_bytes(),
        &event.process.unwrap_or(NONE).to_le_bytes(),
        &event.thread.unwrap_or(NONE).to_le_bytes(),
        &u32::try_from(event.payload.len()).ok()?.to_le_bytes(),
        &event.cpu.to_le_bytes(),
        &[event.opcode, event.version],
        &(event.pointer_size.bytes() as u64).to_le_bytes(),
    ];
    let mut at = 0;
    for bytes in numbers {
        header.get_mut(at..at + bytes.len())?.copy_from_slice(bytes);
        at += bytes.len();
    }
    payload.copy_from_slice(event.payload);
    Some(len)
}

/// Reads the event at the beginning of `bytes`, and returns it with the bytes behind it.
pub(crate) fn read(bytes: &[u8]) -> Option<(Event<'_>, &[u8])> {
    let (provider, rest) = bytes.split_first_chunk()?;
    let (time, rest) = rest.split_first_chunk()?;
    let (process, rest) = rest.split_first_chunk()?;
    let (thread, rest) = rest.split_first_chunk()?;
    let (len, rest) = rest.split_first_chunk()?;
    let (cpu, rest) = rest.split_first_chunk()?;
    let ([opcode, version], rest) = rest.split_first_chunk()?;
    let (pointer, rest) = rest.split_first_chunk()?;
    let (payload, rest) = rest.split_at_checked(u32::from_le_bytes(*len) as usize)?;
    let some = |bytes: &[u8; 4]| Some(u32::from_le_bytes(*bytes)).filter(|number| *number != NONE);
    let is_short = u64::from_le_bytes(*pointer) == PointerSize::Four.bytes() as u64;
    let event = Event {
        provider: Guid::from_bytes(*provider),
        opcode: *opcode,
        version: *version,
        pointer_size: if is_short { PointerSize::Four } else { PointerSize::Eight },
        process: some(process),
        thread: some(thread),
        time: u64::from_le_bytes(*time),
        cpu: u16::from_le_bytes(*cpu),
        payload,
    };
    Some((event, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_as_they_were_written() {
        let event = |process, payload| Event {
            provider: Guid(7 << 100 | 9),
            opcode: 46,
            version: 2,
            pointer_size: PointerSize::Four,
            process,
            thread: Some(4),
            time: 1 << 40,
            cpu: 300,
            payload,
        };
        let events = [event(Some(3), &b"payload"[..]), event(None, b"")];
        let mut room = [0; 200];
        let first = write(&events[0], &mut room).unwrap();
        let second = write(&events[1], &mut room[first..]).unwrap();
        let (one, rest) = read(&room[..first + second]).unwrap();
        let (other, rest) = read(rest).unwrap();
        assert_eq!(([one, other], rest), (events, &b""[..]));
        assert_eq!(write(&events[0], &mut [0; HEADER + 6]), None);
        assert!((0..first).all(|len| read(&room[..len]).is_none()));
    }
}
