//! The lines of the texts in which the kernel lists its symbols and modules.

use nyquist_object::Avma;
use std::io::{self, BufRead};
use std::ops::Range;

/// The longest line that is read. Symbol names are shorter than 512 bytes.
const MAX_LINE: u64 = 64 << 10;

/// A line of `/proc/modules`: name, size, users, their names, state, address.
pub(super) fn parse_module(line: &str) -> Option<(String, Range<Avma>)> {
    let fields: Vec<&str> = line.split_ascii_whitespace().take(6).collect();
    let &[name, size, .., address] = fields.as_slice() else { return None };
    let start = u64::from_str_radix(address.strip_prefix("0x")?, 16).ok().filter(|&start| start != 0)?;
    let end = start.checked_add(size.parse().ok()?)?;
    Some((name.to_owned(), Avma(start)..Avma(end)))
}

/// Calls `take` with each line that is UTF-8 and not absurdly long.
pub(super) fn for_each_line(mut text: impl BufRead, mut take: impl FnMut(&str)) -> io::Result<()> {
    let mut line = Vec::new();
    loop {
        line.clear();
        if io::Read::take(&mut text, MAX_LINE).read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        if let Ok(line) = std::str::from_utf8(&line) {
            take(line);
        }
    }
}
