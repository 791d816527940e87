//! The list of mapped files at the end of a profile, in the format of `/proc/PID/maps`.

use nyquist_profile::LibId;

use crate::import::Importer;

/// Mapped files in the order of their addresses.
#[derive(Default)]
pub(super) struct Maps {
    /// The first address, the end address, the address of the file's first byte, and the file's index.
    ranges: Vec<(u64, u64, u64, usize)>,
    /// The path of each file, and its lib after it was first used.
    files: Vec<(String, Option<LibId>)>,
    /// The file of the last line, because lines of one file follow each other.
    last: Option<usize>,
    /// The path that `$build` stands for.
    build: String,
}

impl Maps {
    /// Adds a line of the list. Other lines are ignored.
    pub(super) fn add(&mut self, line: &str) {
        if let Some(build) = line.trim().strip_prefix("build=") {
            build.clone_into(&mut self.build);
            return;
        }
        let Some((start, end, is_executable, offset, path)) = parse(line) else { return };
        if path.is_empty() || !is_executable || end <= start {
            return;
        }
        let path = match path.strip_prefix("$build") {
            Some(rest) => format!("{}{rest}", self.build),
            None => path.to_owned(),
        };
        let file = match self.last.filter(|&last| self.files[last].0 == path) {
            Some(last) => last,
            None => {
                self.files.push((path, None));
                self.files.len() - 1
            }
        };
        self.last = Some(file);
        self.ranges.push((start, end, start.saturating_sub(offset), file));
    }

    /// Completes the list.
    pub(super) fn finish(&mut self) {
        self.ranges.sort_unstable();
    }

    /// The path of the first file, which is the program's by convention.
    pub(super) fn program(&self) -> &str {
        self.files.first().map_or("", |(path, _)| path)
    }

    /// The lib at an address, and the address relative to it.
    pub(super) fn place(&mut self, importer: &mut Importer, address: u64) -> Option<(LibId, u32)> {
        let after = self.ranges.partition_point(|&(start, ..)| start <= address);
        let &(_, end, base, file) = self.ranges.get(after.checked_sub(1)?)?;
        let relative = u32::try_from(address.checked_sub(base)?).ok().filter(|_| address < end)?;
        let (path, lib) = &mut self.files[file];
        Some((*lib.get_or_insert_with(|| importer.lib(path, None)), relative))
    }
}

/// The first address, the end address, whether it is executable, the offset in the file, and the path, of a
/// line such as `55c70b5a6000-55c70b5a7000 r-xp 00001000 00:00 1234   /bin/app`, or in brief `400000-fcb000: /bin/app`.
fn parse(line: &str) -> Option<(u64, u64, bool, u64, &str)> {
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    let (range, rest) = line.trim().split_once(' ')?;
    let (start, end) = range.split_once('-')?;
    if let Some(end) = end.strip_suffix(':') {
        return Some((hex(start)?, hex(end)?, true, 0, rest.trim()));
    }
    let mut words = rest.split_ascii_whitespace();
    let (rights, offset) = (words.next()?, hex(words.next()?)?);
    let (_device, _inode) = (words.next()?, words.next()?);
    // A path may contain spaces.
    let path = words.next().map_or("", |first| {
        let at = first.as_ptr() as usize - line.as_ptr() as usize;
        line[at..].trim_end()
    });
    Some((hex(start)?, hex(end)?, rights.contains('x'), offset, path))
}
