//! Writes heaptrack's data, for `heaptrack_print` and `heaptrack_gui`.
//!
//! The lines are described in [`read`](super::read). Each definition comes before its first use.

use std::borrow::Cow;
use std::io::{self, Write};

use nyquist_profile::{FrameId, Profile, StackId, ThreadIndex};
use rustc_hash::FxHashMap;

use super::plan::{Blocks, Change, Step, plan};
use crate::{SourcePaths, hidden, source_path};

/// heaptrack 1.4, and its version of the format.
const VERSION: &str = "v 10400 3";

/// Writes the allocations of all threads. What was allocated, what stayed and what was there at the peak are as in the
/// profile; times between are as exact as those of its groups. O(groups × log groups + allocations).
///
/// # Errors
/// If `out` cannot be written.
pub fn write(profile: &Profile, paths: SourcePaths<'_>, out: &mut impl Write) -> io::Result<()> {
    let threads = (0..profile.threads().len()).map(ThreadIndex::from_index);
    let groups: Vec<_> = threads.flat_map(|thread| profile.allocated_groups(thread)).collect();
    let command = profile.meta().arguments.as_deref().unwrap_or(&profile.meta().product);
    // The sizes of pages, and how many there are, which the profile does not have.
    writeln!(
        out,
        "{VERSION}\nX {}\nI 1000 {:x}",
        hidden::escape(command),
        profile.meta().main_memory.unwrap_or(0) >> 12
    )?;
    let mut writer = HeaptrackWriter {
        profile,
        paths,
        strings: FxHashMap::default(),
        frames: FxHashMap::default(),
        traces: FxHashMap::default(),
        infos: FxHashMap::default(),
        out,
    };
    let mut now = 0;
    for step in plan(&groups) {
        let ms = step.time / 1_000_000;
        if ms > now {
            now = ms;
            writeln!(writer.out, "c {ms:x}")?;
        }
        writer.step(&step)?;
    }
    writeln!(writer.out, "c {:x}", (profile.duration() / 1_000_000).max(now))
}

/// Texts, addresses, stacks and sizes are numbered from 1 in the order of their definitions, but sizes from 0.
struct HeaptrackWriter<'a, W> {
    profile: &'a Profile,
    paths: SourcePaths<'a>,
    strings: FxHashMap<String, usize>,
    frames: FxHashMap<FrameId, usize>,
    traces: FxHashMap<StackId, usize>,
    infos: FxHashMap<(u64, usize), usize>,
    out: &'a mut W,
}

impl<W: Write> HeaptrackWriter<'_, W> {
    fn step(&mut self, step: &Step) -> io::Result<()> {
        let kinds = self.kinds(step.blocks)?;
        let repeated = |out: &mut W, sign| {
            let lines = kinds.iter().flat_map(|(info, count)| (0..*count).map(move |_| info));
            lines.into_iter().try_for_each(|info| writeln!(out, "{sign} {info:x}"))
        };
        match step.change {
            Change::Allocated => repeated(self.out, '+'),
            Change::Freed => repeated(self.out, '-'),
            Change::AllAtOnce => {
                repeated(self.out, '+')?;
                repeated(self.out, '-')
            }
            Change::OneByOne => {
                let infos = kinds.iter().flat_map(|(info, count)| (0..*count).map(move |_| info));
                infos.into_iter().try_for_each(|info| writeln!(self.out, "+ {info:x}\n- {info:x}"))
            }
        }
    }

    /// The numbers of the sizes of blocks, with how many have each: two sizes, if their mean is not whole.
    fn kinds(&mut self, blocks: Blocks) -> io::Result<Vec<(usize, u64)>> {
        let trace = match blocks.stack {
            Some(stack) => self.trace(stack)?,
            None => 0,
        };
        let count = blocks.count.max(1);
        let (size, larger) = (blocks.bytes / count, blocks.bytes % count);
        let mut kinds = Vec::new();
        for (size, count) in [(size, count - larger), (size + 1, larger)] {
            if count > 0 {
                kinds.push((self.info(size, trace)?, count));
            }
        }
        Ok(kinds)
    }

    fn info(&mut self, size: u64, trace: usize) -> io::Result<usize> {
        let next = self.infos.len();
        if let Some(info) = self.infos.get(&(size, trace)) {
            return Ok(*info);
        }
        self.infos.insert((size, trace), next);
        writeln!(self.out, "a {size:x} {trace:x}")?;
        Ok(next)
    }

    /// The number of a stack, which is defined after those of its callers.
    fn trace(&mut self, stack: StackId) -> io::Result<usize> {
        let missing = |traces: &FxHashMap<StackId, usize>| {
            let new = self.profile.ancestors(stack).take_while(|stack| !traces.contains_key(stack));
            new.collect::<Vec<_>>()
        };
        for stack in missing(&self.traces).into_iter().rev() {
            let node = self.profile.stack(stack);
            let parent = node.prefix.and_then(|prefix| self.traces.get(&prefix).copied()).unwrap_or(0);
            let address = self.address(node.frame)?;
            writeln!(self.out, "t {address:x} {parent:x}")?;
            self.traces.insert(stack, self.traces.len() + 1);
        }
        Ok(self.traces.get(&stack).copied().unwrap_or(0))
    }

    /// The number of a frame's address, with its file, and its function with file and line.
    fn address(&mut self, id: FrameId) -> io::Result<usize> {
        if let Some(number) = self.frames.get(&id) {
            return Ok(*number);
        }
        let profile = self.profile;
        let frame = profile.frame(id);
        let func = profile.func(frame.func);
        let lib = match func.lib {
            Some(lib) => self.string(&profile.lib(lib).path)?,
            None => 0,
        };
        let name = self.string(profile.func_name(frame.func))?;
        let file = profile.frame_source(frame).map(|source| source_path(profile, source, self.paths));
        let file = file.as_deref().map_or(Ok(0), |file| self.string(file))?;
        let line = profile.frame_line(frame).unwrap_or(0);
        writeln!(self.out, "i {:x} {lib:x} {name:x} {file:x} {line:x}", frame.address.unwrap_or(0))?;
        let number = self.frames.len() + 1;
        self.frames.insert(id, number);
        Ok(number)
    }

    fn string(&mut self, text: &str) -> io::Result<usize> {
        let text: Cow<'_, str> = hidden::escape(text);
        if let Some(number) = self.strings.get(&*text) {
            return Ok(*number);
        }
        writeln!(self.out, "s {:x} {text}", text.len())?;
        let number = self.strings.len() + 1;
        self.strings.insert(text.into_owned(), number);
        Ok(number)
    }
}

#[cfg(test)]
mod tests {
    use crate::test_profile::{allocations, amounts_of};

    #[test]
    fn what_is_written_is_read_again() {
        let mut out = Vec::new();
        super::write(&allocations(), &crate::as_named, &mut out).unwrap();
        let of = |name| amounts_of(&super::super::read_value(&out, Some(name)).unwrap().profile);
        assert_eq!(of("total"), ["main;get 1300", "main;put 500"]);
        assert_eq!(of("live"), ["main;get 300"]);
        assert_eq!(of("peak"), ["main;get 1000", "main;put 100"]);
        assert_eq!(of("allocations"), ["main;get 13", "main;put 5"]);
        // The block of the peak is freed just after it was allocated, too.
        assert_eq!(of("temporary"), ["main;put 5"]);
    }
}
