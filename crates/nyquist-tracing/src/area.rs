//! The memory file in which a recorder that attaches enables markers and reads them.

use crate::protocol::control;
use crate::sys::{self, Shared};
use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::sync::atomic::{AtomicU32, Ordering};

/// The control file. Forked children of the program have it, too.
#[derive(Debug)]
pub(crate) struct Area {
    file: File,
    /// The file's device and inode.
    identity: (u64, u64),
    page: Shared,
}

impl Area {
    /// Creates the file, so that a recorder can find it.
    pub(crate) fn create() -> io::Result<Self> {
        let file = sys::memory_file(&CString::new(control::NAME)?)?;
        let mut page = Shared::map_new(&file, 0, control::LEN)?;
        page.write(0, &control::MAGIC);
        Ok(Self { identity: identity(&file)?, file, page })
    }

    /// The state that the recorder has set.
    pub(crate) fn state(&self) -> u32 {
        self.word(control::STATE).load(Ordering::Acquire)
    }

    /// Sleeps until the state changes, or for a shorter time.
    pub(crate) fn wait(&self, seen: u32) {
        self.page.wait(control::STATE, seen);
    }

    /// Memory for a new ring, with its header.
    pub(crate) fn ring(&self) -> io::Result<Shared> {
        let file = self.own_file()?;
        let add = |count: u32| count.checked_add(1);
        let number = self.word(control::RINGS).fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
        let number = number.map_err(|_| io::ErrorKind::Other)?;
        Shared::map_new(&file, control::ring_at(number), control::RING_LEN)
    }

    /// Frees the memory of all rings. A thread that still writes to one allocates some again, until the
    /// next call.
    pub(crate) fn free(&self) -> io::Result<()> {
        let rings = self.word(control::RINGS).load(Ordering::Relaxed);
        let start = control::ring_at(0);
        match control::ring_at(rings) - start {
            0 => Ok(()),
            len => sys::free(&self.own_file()?, start, len),
        }
    }

    fn word(&self, at: usize) -> &AtomicU32 {
        self.page.u32_at(at)
    }

    /// The file, by a separate descriptor. Programs that close all descriptors close this crate's, too.
    /// The next file that they open gets its number, and must not be written to.
    fn own_file(&self) -> io::Result<File> {
        let file = self.file.try_clone()?;
        if identity(&file)? != self.identity {
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(file)
    }
}

fn identity(file: &File) -> io::Result<(u64, u64)> {
    let metadata = file.metadata()?;
    Ok((metadata.dev(), metadata.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::header;
    use std::os::unix::fs::FileExt as _;

    fn blocks(area: &Area) -> u64 {
        area.file.metadata().unwrap().blocks()
    }

    #[test]
    fn rings_lie_side_by_side_and_can_be_freed() {
        let area = Area::create().unwrap();
        let empty = blocks(&area);
        let mut rings: Vec<_> = (0..3).map(|_| area.ring().unwrap()).collect();
        for (number, ring) in rings.iter_mut().enumerate() {
            ring.write(header::PID, &[number as u8 + 1]);
        }
        let pid = |number| {
            let mut byte = [0];
            area.file.read_exact_at(&mut byte, control::ring_at(number) + header::PID as u64).unwrap();
            byte[0]
        };
        assert_eq!([pid(0), pid(1), pid(2)], [1, 2, 3]);
        assert_eq!(area.word(control::RINGS).load(Ordering::Relaxed), 3);
        assert!(blocks(&area) >= empty + 3 * (control::RING_LEN as u64 / 512));
        area.free().unwrap();
        assert_eq!((blocks(&area), pid(2)), (empty, 0));
        // A number is not reused.
        let mut next = area.ring().unwrap();
        next.write(header::PID, &[4]);
        assert_eq!((pid(0), pid(3)), (0, 4));
    }

    #[test]
    fn nobody_can_make_the_file_shorter() {
        let area = Area::create().unwrap();
        let _ring = area.ring().unwrap();
        assert!(area.file.set_len(0).is_err());
        assert!(area.ring().is_ok() && area.free().is_ok());
    }

    #[test]
    fn a_descriptor_now_anothers_is_left_alone() {
        let mut area = Area::create().unwrap();
        let other = sys::memory_file(&CString::new("other").unwrap()).unwrap();
        let own = std::mem::replace(&mut area.file, other);
        assert!(area.ring().is_err() && area.free().is_ok());
        assert_eq!(
            (area.file.metadata().unwrap().len(), area.word(control::RINGS).load(Ordering::Relaxed)),
            (0, 0)
        );
        area.file = own;
        assert!(area.ring().is_ok());
    }

    #[test]
    fn any_page_size_divides_where_rings_are() {
        for number in [0, 1, 77, u32::MAX] {
            assert_eq!(control::ring_at(number) % (1 << 16), 0);
        }
        assert!(control::RING_LEN as u64 <= control::STRIDE);
    }
}
