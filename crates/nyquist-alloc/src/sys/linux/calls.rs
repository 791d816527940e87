//! System calls, made directly: the C library's would set `errno`, and may themselves be replaced.

use super::arch::{call, number};

const AT_FDCWD: usize = -100_isize as usize;

/// The bytes of a page that can be told apart; larger pages consist of several of these.
pub(super) const PAGE: usize = 4096;

pub(super) fn process_id() -> u32 {
    // SAFETY: it has no arguments.
    unsafe { call(number::GETPID, [0; 6]) as u32 }
}

pub(super) fn thread_id() -> u32 {
    // SAFETY: it has no arguments.
    unsafe { call(number::GETTID, [0; 6]) as u32 }
}

pub(super) fn yield_now() {
    // SAFETY: it has no arguments.
    unsafe { call(number::SCHED_YIELD, [0; 6]) };
}

/// Sleeps for a part of a second.
pub(super) fn sleep_ns(ns: u64) {
    let time = [0_u64, ns];
    // SAFETY: the time is two words that outlive the call.
    unsafe { call(number::NANOSLEEP, [time.as_ptr() as usize, 0, 0, 0, 0, 0]) };
}

/// The time since the machine's start, in nanoseconds.
pub(super) fn now() -> u64 {
    const MONOTONIC: usize = 1;
    extern "C" {
        // The C library's reads the clock without a system call.
        fn clock_gettime(clock: i32, time: *mut [i64; 2]) -> i32;
    }
    let mut time = [0_i64; 2];
    // SAFETY: the time is two words that outlive the call.
    if unsafe { clock_gettime(MONOTONIC as i32, &raw mut time) } != 0 {
        // SAFETY: as above.
        unsafe { call(number::CLOCK_GETTIME, [MONOTONIC, time.as_mut_ptr() as usize, 0, 0, 0, 0]) };
    }
    (time[0] as u64).wrapping_mul(1_000_000_000).wrapping_add(time[1] as u64)
}

/// The address of the random bytes that the kernel puts at the outer end of the first thread's stack; 0 if it
/// does not say.
pub(super) fn stack_of_first_thread() -> usize {
    const RANDOM: usize = 25;
    extern "C" {
        fn getauxval(kind: usize) -> usize;
    }
    // SAFETY: it looks a number up in a table.
    unsafe { getauxval(RANDOM) }
}

/// Whether a page can be read. The kernel looks at the memory before it finds that the request makes no sense,
/// so nothing else happens, and every sandbox permits this call.
pub(super) fn is_readable(address: usize) -> bool {
    const FAULT: isize = -14;
    let aligned = address & !7;
    // SAFETY: the first argument is no way to change the mask, so nothing is changed.
    unsafe { call(number::RT_SIGPROCMASK, [usize::MAX >> 1, aligned, 0, 8, 0, 0]) != FAULT }
}

/// What became of a new file.
pub(super) enum NewFile {
    /// It was made, with its space.
    Made(usize),
    /// There is one of that name.
    Exists,
    /// It cannot be made, or is left empty, because there is no space: the recorder sees that.
    NoSpace,
}

/// Makes a new file of a path, with its space. The path ends with a zero.
pub(super) fn new_file(path: &[u8], len: usize) -> NewFile {
    const EXISTS: isize = -17;
    const READ_WRITE_NEW: usize = 0o2 | 0o100 | 0o200;
    const CLOSE_ON_EXEC_NO_LINKS: usize = 0o2_000_000;
    const MODE: usize = 0o600;
    if path.last() != Some(&0) {
        return NewFile::NoSpace;
    }
    // SAFETY: the path ends with a zero and outlives the call.
    let file = unsafe {
        call(
            number::OPENAT,
            [AT_FDCWD, path.as_ptr() as usize, READ_WRITE_NEW | CLOSE_ON_EXEC_NO_LINKS, MODE, 0, 0],
        )
    };
    let Ok(made) = usize::try_from(file) else {
        return if file == EXISTS { NewFile::Exists } else { NewFile::NoSpace };
    };
    // Memory that is mapped and has no space would end the program when it is written, and so would the signal of the
    // kernel for a file that is longer than the program may make.
    // SAFETY: the descriptor is this function's own.
    if len as u64 <= most_bytes_of_files() && unsafe { call(number::FALLOCATE, [made, 0, 0, len, 0, 0]) } == 0
    {
        return NewFile::Made(made);
    }
    close(made);
    NewFile::NoSpace
}

/// How long the files are that the program may write; 0 if that is not known.
fn most_bytes_of_files() -> u64 {
    const FILE_SIZE: usize = 1;
    let mut limits = [0_u64; 2];
    // SAFETY: the kernel writes two words.
    let status = unsafe { call(number::PRLIMIT64, [0, FILE_SIZE, 0, limits.as_mut_ptr() as usize, 0, 0]) };
    if status == 0 { limits[0] } else { 0 }
}

/// Opens a file to read it. The path ends with a zero.
pub(super) fn open_to_read(path: &[u8]) -> Option<usize> {
    const CLOSE_ON_EXEC: usize = 0o2_000_000;
    if path.last() != Some(&0) {
        return None;
    }
    // SAFETY: the path ends with a zero and outlives the call.
    let file = unsafe { call(number::OPENAT, [AT_FDCWD, path.as_ptr() as usize, CLOSE_ON_EXEC, 0, 0, 0]) };
    usize::try_from(file).ok()
}

/// Reads from a file; 0 at its end, and if it cannot be read.
pub(super) fn read(file: usize, buffer: &mut [u8]) -> usize {
    // SAFETY: the kernel writes at most the buffer's length.
    let count = unsafe { call(number::READ, [file, buffer.as_mut_ptr() as usize, buffer.len(), 0, 0, 0]) };
    usize::try_from(count).unwrap_or(0)
}

pub(super) fn close(file: usize) {
    // SAFETY: callers close descriptors that they have opened.
    unsafe { call(number::CLOSE, [file, 0, 0, 0, 0, 0]) };
}

/// Maps the first bytes of a file that is shared, or private memory.
pub(super) fn map(file: Option<usize>, len: usize) -> Option<*mut u8> {
    const READ_WRITE: usize = 3;
    const SHARED: usize = 1;
    const PRIVATE_ANONYMOUS: usize = 0x22;
    let (flags, file) = file.map_or((PRIVATE_ANONYMOUS, usize::MAX), |file| (SHARED, file));
    // SAFETY: the kernel chooses an address where nothing is mapped.
    let address = unsafe { call(number::MMAP, [0, len, READ_WRITE, flags, file, 0]) };
    (address > 0).then_some(address as *mut u8)
}

/// Makes a page be zero in a process that is forked. Returns whether the kernel can.
pub(super) fn wipe_on_fork(page: *mut u8) -> bool {
    const WIPE_ON_FORK: usize = 18;
    // SAFETY: the page was mapped for this purpose.
    unsafe { call(number::MADVISE, [page as usize, PAGE, WIPE_ON_FORK, 0, 0, 0]) == 0 }
}

/// The number at the end of a link such as `pid:[4026531836]`; 0 if it cannot be read.
pub(super) fn namespace() -> u64 {
    let mut text = [0_u8; 64];
    let path = b"/proc/self/ns/pid\0";
    // SAFETY: the path ends with a zero, and the kernel writes at most the length of the text.
    let len = unsafe {
        call(
            number::READLINKAT,
            [AT_FDCWD, path.as_ptr() as usize, text.as_mut_ptr() as usize, text.len(), 0, 0],
        )
    };
    let text = text.get(..usize::try_from(len).unwrap_or(0)).unwrap_or(&[]);
    text.iter()
        .filter(|byte| byte.is_ascii_digit())
        .fold(0_u64, |number, digit| number.wrapping_mul(10).wrapping_add(u64::from(digit - b'0')))
}
