//! The memory of other processes.

use std::ops::Range;

use super::mach::{
    Name, RegionBasicInfo, SUCCESS, VM_REGION_BASIC_INFO_64, mach_vm_read_overwrite, mach_vm_region, words,
};
use super::port::Port;
use crate::suspend::system::ImageEnd;

/// Protections of a region (`mach/vm_prot.h`).
const READABLE: i32 = 1;
const EXECUTABLE: i32 = 4;
/// The most regions of a task that are listed.
const MAX_REGIONS: usize = 1 << 16;

/// Copies memory of a task from an address on. Returns how many bytes were copied: none if a part is not
/// readable. Allocates nothing.
pub(crate) fn read(task: &Port, address: u64, out: &mut [u8]) -> usize {
    let mut copied = 0;
    // SAFETY: the kernel checks the other task's addresses and fails for those that are not readable. It writes
    // `out.len()` bytes at most to `out`, which is this process's own and lives through the call.
    let status = unsafe {
        mach_vm_read_overwrite(
            task.name(),
            address,
            out.len() as u64,
            out.as_mut_ptr().addr() as u64,
            &raw mut copied,
        )
    };
    if status == SUCCESS { usize::try_from(copied).unwrap_or_default().min(out.len()) } else { 0 }
}

/// The readable region that contains an address.
pub(crate) fn region(task: &Port, address: u64) -> Option<Range<u64>> {
    let (region, protection) = region_from(task, address)?;
    (protection & READABLE != 0 && region.contains(&address)).then_some(region)
}

/// The executable regions of a task, those of unknown images included. Known ones are passed over.
pub(crate) fn executable_regions(task: &Port, image_end: ImageEnd<'_>) -> Vec<Range<u64>> {
    let mut next = 0;
    let regions = std::iter::from_fn(|| {
        while let Some(end) = image_end(next) {
            next = end;
        }
        let (region, protection) = region_from(task, next).filter(|(region, _)| region.end > next)?;
        next = region.end;
        Some((region, protection))
    });
    let executable = regions.take(MAX_REGIONS).filter(|(_, protection)| protection & EXECUTABLE != 0);
    executable.map(|(region, _)| region).collect()
}

/// The region that contains an address, or the next one, and its protection.
fn region_from(task: &Port, address: u64) -> Option<(Range<u64>, i32)> {
    let (mut start, mut size) = (address, 0);
    let mut info = RegionBasicInfo::default();
    let mut len = words::<RegionBasicInfo>();
    let mut object: Name = 0;
    // SAFETY: all pointers live through the call, and `info` has `len` words, of which the kernel writes no
    // more. The name of the object is always null, as `mach_vm_region` documents, so there is no right to return.
    let status = unsafe {
        mach_vm_region(
            task.name(),
            &raw mut start,
            &raw mut size,
            VM_REGION_BASIC_INFO_64,
            (&raw mut info).cast(),
            &raw mut len,
            &raw mut object,
        )
    };
    let protection = info.protection;
    (status == SUCCESS).then(|| (start..start.saturating_add(size), protection))
}
