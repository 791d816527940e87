//! The writable memory of a process around an address, such as the stack of a thread.

use std::fs::File;
use std::io::Read as _;
use std::ops::Range;

use super::sys;

/// The writable memory around an address of a process, as far as it is one mapping. For a stack pointer, this
/// is the thread's stack.
pub(crate) fn around(pid: u32, address: u64) -> Option<Range<u64>> {
    let mut maps = File::open(format!("/proc/{pid}/maps")).ok()?;
    match sys::maps::writable_at(&maps, address) {
        Ok(range) => range,
        Err(_) => writable_line_at(&mut maps, address),
    }
}

/// The same from the text. The kernel's time to print it grows with the number of mappings.
fn writable_line_at(maps: &mut File, address: u64) -> Option<Range<u64>> {
    let mut text = Vec::new();
    maps.read_to_end(&mut text).ok()?;
    text.split(|byte| *byte == b'\n').filter_map(writable_range).find(|range| range.contains(&address))
}

/// The range of a line of `maps`, if it is writable.
pub(crate) fn writable_range(line: &[u8]) -> Option<Range<u64>> {
    let line = std::str::from_utf8(line.get(..line.len().min(64))?).unwrap_or_default();
    let mut words = line.split(' ');
    let (start, end) = words.next()?.split_once('-')?;
    let writable = words.next()?.as_bytes().get(1) == Some(&b'w');
    let number = |digits| u64::from_str_radix(digits, 16).ok();
    writable.then_some(number(start)?..number(end)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writable_memory_is_as_the_mappings_say() {
        let (pid, on_stack) = (std::process::id(), 0_u64);
        let on_heap = Box::new(0_u64);
        let writable = [&raw const on_stack, &raw const *on_heap].map(|address| address as u64);
        let others = [writable_range as *const () as u64, 8, u64::MAX];
        for address in writable.into_iter().chain(others) {
            let mut maps = File::open("/proc/self/maps").unwrap();
            let expected = writable_line_at(&mut maps, address);
            assert_eq!(expected.is_some(), writable.contains(&address), "{address:#x}");
            assert_eq!(around(pid, address), expected, "{address:#x}");
        }
        assert_eq!(around(u32::MAX >> 1, writable[0]), None, "there is no such process");
    }
}
