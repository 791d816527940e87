//! Files of programs whose allocations are recorded: their records become events.
//!
//! `nyquist_alloc::protocol` describes the layout. The program writes these files, so nothing in them is trusted.

use crate::decode::marker_file::Period;
use crate::event::{
    Allocation, Event, EventKind, Free, HeapId, Pid, Registers, Sample, SampleState, Tid, UserStack,
};
use bytes::Bytes;
use nyquist_alloc::protocol::{self, flag, header, record};
use nyquist_object::Cursor;

/// The header of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllocationHeader {
    /// The process's number in its own pid namespace.
    pub pid: u32,
    /// The inode of that namespace. 0 if it is not known.
    pub pid_namespace: u64,
    /// The mean distance of samples in bytes.
    pub distance: u64,
    /// The bytes of the ring.
    pub capacity: u64,
    /// How many bytes were ever written to the ring.
    pub written: u64,
    /// How many sampled allocations were lost.
    pub lost_allocations: u64,
    /// How many records of frees were lost.
    pub lost_frees: u64,
    /// Whether C++'s operators do not call `malloc`, and are not seen.
    pub operators_not_seen: bool,
}

impl AllocationHeader {
    /// The bytes of a header that are read.
    pub const LEN: usize = header::READ;

    /// Reads the first [`LEN`](Self::LEN) bytes of a file. `None` if it is no such file, or is not ready yet.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let word = |at| Cursor::new(bytes, at, true).u64();
        let parsed = Self {
            pid: Cursor::new(bytes, header::PID, true).u32()?,
            pid_namespace: word(header::PID_NAMESPACE)?,
            distance: word(header::RATE)?.max(1),
            capacity: word(header::CAPACITY)?,
            written: word(header::WRITTEN)?,
            lost_allocations: word(header::LOST_ALLOCATIONS)?,
            lost_frees: word(header::LOST_FREES)?,
            operators_not_seen: word(header::FLAGS)? & flag::OPERATORS_NOT_SEEN != 0,
        };
        let is_sound = bytes.starts_with(&protocol::MAGIC)
            && (8..=protocol::MAX_RING).contains(&parsed.capacity)
            && parsed.capacity.is_multiple_of(8);
        is_sound.then_some(parsed)
    }
}

/// Turns the records of one file into events.
#[derive(Clone, Copy, Debug)]
pub struct AllocationDecoder {
    pid: Pid,
    heap: HeapId,
    distance: u64,
    unreadable: u64,
}

impl AllocationDecoder {
    /// A decoder for the file of a process, given its number in the recorder's namespace.
    pub fn new(pid: Pid, heap: HeapId, distance: u64) -> Self {
        Self { pid, heap, distance: distance.max(1), unreadable: 0 }
    }

    /// How many records could not be understood so far.
    pub fn unreadable(&self) -> u64 {
        self.unreadable
    }

    /// Appends the events of whole records, which follow those of the last call. `thread` maps the program's
    /// thread numbers to threads. Returns whether more of the file can be read. Behind a record with an
    /// invalid length, no further record can be found.
    pub fn decode(
        &mut self,
        bytes: &Bytes,
        thread: &dyn Fn(u32) -> Tid,
        period: Period,
        events: &mut Vec<Event>,
    ) -> bool {
        let mut at = 0;
        while at < bytes.len() {
            let word = Cursor::new(bytes, at, true).u64();
            let len = word.map_or(0, |word| (word >> 32) as usize);
            let is_whole = len >= record::FREE_WORDS * 8 && len.is_multiple_of(8) && len <= bytes.len() - at;
            if !is_whole {
                self.unreadable += 1;
                return false;
            }
            match self.record(&bytes.slice(at..at + len), thread, period) {
                Some(event) if event.time >= period.since => events.push(event),
                Some(_) => {}
                None => self.unreadable += 1,
            }
            at += len;
        }
        true
    }

    /// Decodes a record; `None` if it is invalid.
    fn record(&self, bytes: &Bytes, thread: &dyn Fn(u32) -> Tid, period: Period) -> Option<Event> {
        let mut input = Cursor::new(bytes, 0, true);
        let kind = input.u64()? as u32;
        let time = period.time(input.u64()?);
        let tid = thread(u32::try_from(input.u64()?).ok()?);
        let (address, number) = (input.u64()?, input.u64()?);
        (time <= period.until).then_some(())?;
        let (heap, pid) = (self.heap, self.pid);
        let kind = match kind {
            record::FREE => EventKind::Free(Free { heap, pid, tid, address, number }),
            record::ALLOCATION => {
                let (size, live) = (input.u64()?, input.u64()?.cast_signed());
                let stack_number = Some(input.u64()?).filter(|hash| *hash != 0);
                let user = stack(bytes, &mut input)?;
                let sample = sample(pid, tid, user);
                let distance = self.distance;
                let stack = stack_number;
                let allocation = Allocation { heap, sample, stack, address, size, distance, number, live };
                EventKind::Allocation(Box::new(allocation))
            }
            _ => return None,
        };
        Some(Event { time, cpu: None, kind })
    }
}

/// The registers and the stack at the end of a record.
fn stack(bytes: &Bytes, input: &mut Cursor<'_>) -> Option<UserStack> {
    let (ip, sp, fp, len) = (input.u64()?, input.u64()?, input.u64()?, input.u64()?);
    let len = usize::try_from(len).ok().filter(|len| *len <= protocol::MAX_STACK)?;
    let start = record::ALLOCATION_WORDS * 8;
    let end = start.checked_add(len).filter(|end| *end <= bytes.len())?;
    if len == 0 {
        return Some(UserStack::None);
    }
    let limited = len == protocol::MAX_STACK;
    Some(UserStack::Copied {
        registers: Box::new(registers(ip, sp, fp)),
        stack: bytes.slice(start..end),
        limited,
    })
}

/// The registers that are known behind a call.
fn registers(ip: u64, sp: u64, fp: u64) -> Registers {
    if cfg!(target_arch = "aarch64") {
        let mut values = Box::new([0; 33]);
        (values[29], values[31], values[32]) = (fp, sp, ip);
        Registers::Aarch64Partial { values, known: 1 << 29 | 1 << 31 | 1 << 32 }
    } else {
        let mut values = [0; 17];
        (values[6], values[7], values[16]) = (fp, sp, ip);
        Registers::X86_64Partial { values, known: 1 << 6 | 1 << 7 | 1 << 16 }
    }
}

fn sample(pid: Pid, tid: Tid, user: UserStack) -> Sample {
    Sample {
        pid,
        tid,
        in_kernel: false,
        state: SampleState::Clocked,
        period_ns: 0,
        cpu_time_ns: None,
        counts_anew: false,
        kernel_stack: Vec::new(),
        user,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Timestamp;

    fn words(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    fn allocation(stack: usize, provided: u64) -> Vec<u8> {
        let len = (record::ALLOCATION_WORDS * 8 + stack) as u64;
        let head = words(&[
            1 | len << 32,
            50,
            7,
            0x1000,
            3,
            24,
            99,
            0,
            0x40_0000,
            0x7fff_0000,
            0x7fff_0010,
            provided,
        ]);
        [head, vec![0; stack]].concat()
    }

    fn decoded(bytes: Vec<u8>) -> (Vec<Event>, u64, bool) {
        let mut decoder = AllocationDecoder::new(Pid(7), HeapId(1), 512);
        let period = Period { since: Timestamp(10), until: Timestamp(100), ahead_ns: 0 };
        let mut events = Vec::new();
        let goes_on = decoder.decode(&bytes.into(), &Tid, period, &mut events);
        (events, decoder.unreadable(), goes_on)
    }

    #[test]
    fn allocations_and_frees_are_events() {
        let free = words(&[2 | 40 << 32, 60, 8, 0x1000, 4]);
        let (events, unreadable, goes_on) = decoded([allocation(64, 64), free].concat());
        assert_eq!((events.len(), unreadable, goes_on), (2, 0, true));
        let EventKind::Allocation(allocation) = &events[0].kind else { panic!("{events:?}") };
        let Allocation { address, size, distance, number, live, .. } = **allocation;
        assert_eq!((address, size, distance, number, live), (0x1000, 24, 512, 3, 99));
        assert!(matches!(&allocation.sample.user, UserStack::Copied { stack, .. } if stack.len() == 64));
        let free = Free { heap: HeapId(1), pid: Pid(7), tid: Tid(8), address: 0x1000, number: 4 };
        assert_eq!(events[1].kind, EventKind::Free(free));
    }

    #[test]
    fn what_makes_no_sense_is_counted() {
        // A stack that is longer than its record, a time in the future, an unknown kind, and one before the start.
        let wrong = [
            allocation(64, 72),
            words(&[2 | 40 << 32, 101, 8, 0, 0]),
            words(&[9 | 40 << 32, 50, 8, 0, 0]),
            words(&[2 | 40 << 32, 9, 8, 0, 0]),
        ];
        assert_eq!(decoded(wrong.concat()), (Vec::new(), 3, true));
        for len in [0, 8, 41, 48, u64::from(u32::MAX)] {
            assert_eq!(decoded(words(&[2 | len << 32, 50, 8, 0, 0])), (Vec::new(), 1, false), "{len}");
        }
    }
}
