//! Programs and maps in the kernel, by the raw call (bpf(2)).

use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};

use perf_event_open_sys as perf;

use super::check_long;

/// An instruction: the opcode, the registers (the source in the upper four bits), an offset and a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Instruction {
    pub(crate) code: u8,
    pub(crate) registers: u8,
    pub(crate) offset: i16,
    pub(crate) constant: i32,
}

/// The kinds of maps (`enum bpf_map_type`).
#[derive(Clone, Copy, Debug)]
pub(crate) enum MapKind {
    LruHash = 9,
    Ring = 27,
}

// The commands (`enum bpf_cmd`).
const MAP_CREATE: libc::c_long = 0;
const MAP_UPDATE_ELEM: libc::c_long = 2;
const MAP_DELETE_ELEM: libc::c_long = 3;
const PROG_LOAD: libc::c_long = 5;
/// `BPF_PROG_TYPE_PERF_EVENT`.
const OF_PERF_EVENT: u64 = 7;

/// The call's attributes, of which the kernel takes the rest to be zero.
type Attributes = [u64; 8];

/// # Safety
///
/// The addresses in the attributes must be of live memory of the sizes that the command states.
unsafe fn bpf(command: libc::c_long, attributes: &Attributes) -> io::Result<libc::c_long> {
    // SAFETY: the attributes are live and as long as stated; the caller answers for the addresses in them.
    check_long(unsafe { libc::syscall(libc::SYS_bpf, command, attributes.as_ptr(), size_of::<Attributes>()) })
}

/// # Safety
///
/// As for [`bpf`], and the command must return a new descriptor.
unsafe fn open(command: libc::c_long, attributes: &Attributes) -> io::Result<OwnedFd> {
    // SAFETY: the caller answers for the attributes.
    let fd = unsafe { bpf(command, attributes) }?;
    // SAFETY: the kernel has just returned this descriptor, and nothing else uses it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as libc::c_int) })
}

/// Two numbers of 32 bits in one word, as they lie in memory of both supported architectures.
const fn pair(first: u32, second: u32) -> u64 {
    first as u64 | (second as u64) << 32
}

/// Makes a map.
pub(crate) fn create_map(kind: MapKind, key: u32, value: u32, entries: u32) -> io::Result<OwnedFd> {
    let attributes = [pair(kind as u32, key), pair(value, entries), 0, 0, 0, 0, 0, 0];
    // SAFETY: the attributes have no address, and the command returns a descriptor.
    unsafe { open(MAP_CREATE, &attributes) }
}

/// Loads a program for perf events, if the kernel can verify it.
pub(crate) fn load(program: &[Instruction]) -> io::Result<OwnedFd> {
    let licence = c"Dual MIT/GPL".as_ptr() as u64;
    let count = program.len() as u64;
    let attributes = [OF_PERF_EVENT | count << 32, program.as_ptr() as u64, licence, 0, 0, 0, 0, 0];
    // SAFETY: `program` has that many instructions of eight bytes, the licence ends with a zero, and the command
    // returns a descriptor.
    unsafe { open(PROG_LOAD, &attributes) }
}

/// Runs a program at each sample of an event, and of those that inherit it later.
pub(crate) fn attach(event: BorrowedFd<'_>, program: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: both are open descriptors, and the call takes no pointer.
    super::check(unsafe { perf::ioctls::SET_BPF(event.as_raw_fd(), program.as_raw_fd() as u32) }).map(|_| ())
}

/// Sets the value of a key of 32 bits in a map with values of this many words.
pub(crate) fn set<const WORDS: usize>(map: BorrowedFd<'_>, key: u32, value: [u64; WORDS]) -> io::Result<()> {
    let (key, value) = (&raw const key as u64, &raw const value as u64);
    // SAFETY: all maps that this module's callers make have such keys and values, which live until the call ends.
    unsafe { bpf(MAP_UPDATE_ELEM, &[map.as_raw_fd() as u64, key, value, 0, 0, 0, 0, 0]) }.map(|_| ())
}

/// Removes a key of 32 bits.
pub(crate) fn remove(map: BorrowedFd<'_>, key: u32) -> io::Result<()> {
    let key = &raw const key as u64;
    // SAFETY: as in `set`.
    unsafe { bpf(MAP_DELETE_ELEM, &[map.as_raw_fd() as u64, key, 0, 0, 0, 0, 0, 0]) }.map(|_| ())
}
