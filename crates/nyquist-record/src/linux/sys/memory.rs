//! Having the kernel give memory before it is written to: madvise(2).

use std::io;

use super::check;
use super::limits::page_size;

/// Has the kernel give all whole pages of a buffer that it has not given yet. Page by page, as they are first written to, takes several
/// times as long. Where the kernel cannot (before Linux 5.14), it gives them so.
pub(crate) fn populate(buffer: &mut [u8]) {
    let _ = try_populate(buffer);
}

fn try_populate(buffer: &mut [u8]) -> io::Result<()> {
    let page = page_size();
    let before = buffer.as_ptr().align_offset(page).min(buffer.len());
    let pages = &mut buffer[before..];
    let len = pages.len() / page * page;
    if len > 0 {
        // SAFETY: the range is memory of ours that is borrowed mutably, and what is in it stays as it is.
        check(unsafe { libc::madvise(pages.as_mut_ptr().cast(), len, libc::MADV_POPULATE_WRITE) })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many page faults this thread has had.
    fn faults() -> i64 {
        let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: the call fills the struct, which is all numbers.
        let usage = unsafe {
            libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
            usage.assume_init()
        };
        usage.ru_minflt
    }

    #[test]
    fn given_memory_is_written_without_a_fault() {
        let written_faults = |give: fn(&mut [u8]) -> io::Result<()>| {
            // Never one that was used before: glibc asks the system for each of more than 32 MB.
            let mut buffer = vec![0_u8; 64 << 20];
            buffer[5] = 7;
            let given = give(&mut buffer);
            let before = faults();
            buffer.iter_mut().step_by(page_size()).for_each(|byte| *byte += 1);
            assert_eq!((buffer[0], buffer[5], buffer[page_size()]), (1, 7, 1));
            given.map(|()| faults() - before)
        };
        let without = written_faults(|_| Ok(())).unwrap();
        match written_faults(try_populate) {
            Ok(with) => assert!(with < without, "{with} faults, and {without} without"),
            // The kernel is older.
            Err(error) => assert_eq!(error.raw_os_error(), Some(libc::EINVAL)),
        }
    }

    #[test]
    fn less_than_a_page_is_left_alone() {
        populate(&mut []);
        populate(&mut [0; 7]);
    }
}
