//! Writes DHAT's JSON, version 2, for its viewer (`dh_view.html`).
//!
//! The fields are described in valgrind's `dhat/dh_main.c` (file format).

use std::io::{self, Write};

use nyquist_profile::{AllocatedGroup, AllocationMeasure, Frame, Profile, StackId, ThreadIndex};
use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::json::{separate, write_json};
use crate::{SourcePaths, hidden, source_path};

/// The lifetime in µs below which the viewer calls blocks short-lived: that of the crate `dhat`.
const SHORT_LIVED_US: u64 = 10;

/// Writes the allocations of all threads, by stack. Times are in µs. Lifetimes, and the most that a stack had, are as
/// exact as the times of groups. O(groups × log groups + stacks × depth).
///
/// # Errors
/// If `out` cannot be written.
pub fn write(profile: &Profile, paths: SourcePaths<'_>, out: &mut impl Write) -> io::Result<()> {
    let threads = (0..profile.threads().len()).map(ThreadIndex::from_index);
    let groups: Vec<_> = threads.flat_map(|thread| profile.allocated_groups(thread)).collect();
    let mut by_stack: FxHashMap<Option<StackId>, Vec<AllocatedGroup>> = FxHashMap::default();
    for group in &groups {
        by_stack.entry(group.stack).or_default().push(*group);
    }
    let mut stacks: Vec<_> = by_stack.into_iter().collect();
    stacks.sort_unstable_by_key(|(stack, _)| *stack);
    let mut frames =
        FrameTable { profile, paths, texts: vec!["[root]".into()], by_text: FxHashMap::default() };
    out.write_all(head(profile, &groups).as_bytes())?;
    for (index, (stack, groups)) in stacks.iter().enumerate() {
        separate(out, index)?;
        write_json(out, &point(groups, frames.of_stack(*stack), profile.duration()))?;
    }
    out.write_all(b"],\"ftbl\":")?;
    write_json(out, &frames.texts)?;
    out.write_all(b"}\n")
}

/// The members before the stacks.
fn head(profile: &Profile, groups: &[AllocatedGroup]) -> String {
    let meta = profile.meta();
    let command = meta.arguments.as_deref().unwrap_or(&meta.product);
    let pid = profile.processes().first().and_then(|process| process.pid.parse::<u64>().ok()).unwrap_or(0);
    let last = groups.iter().map(|group| group.end.unwrap_or(group.start)).max().unwrap_or(0);
    let end = profile.duration().max(last) / 1000;
    // Each block of the peak was there, so it was not before the last of them was allocated.
    let at_peak = groups.iter().filter(|group| group.amount(AllocationMeasure::Peak) > 0.0);
    let peak = at_peak.map(|group| group.start).max().unwrap_or(0) / 1000;
    format!(
        "{{\"dhatFileVersion\":2,\"mode\":\"heap\",\"verb\":\"Allocated\",\"bklt\":true,\"bkacc\":false,\
         \"tu\":\"µs\",\"Mtu\":\"s\",\"tuth\":{SHORT_LIVED_US},\"cmd\":{},\"pid\":{pid},\"te\":{end},\"tg\":{peak},\"pps\":[",
        serde_json::Value::from(hidden::escape(command))
    )
}

/// A stack that allocated.
#[derive(Serialize)]
struct Point {
    /// Bytes and blocks in all, and their lifetimes together.
    tb: u64,
    tbk: u64,
    tl: u64,
    /// The most that there were at a time.
    mb: u64,
    mbk: u64,
    /// At the peak of the whole program.
    gb: u64,
    gbk: u64,
    /// At the end.
    eb: u64,
    ebk: u64,
    fs: Vec<usize>,
}

fn point(groups: &[AllocatedGroup], fs: Vec<usize>, end: u64) -> Point {
    use AllocationMeasure::{Allocations, Live, LiveBlocks, Peak, PeakBlocks, Total};
    let sum = |measure| groups.iter().map(|it| it.amount(measure)).sum::<f64>().round() as u64;
    let lifetime = |it: &AllocatedGroup| {
        let live = it.amount(LiveBlocks);
        let ended = (it.amount(Allocations) - live).max(0.0);
        let until = it.end.unwrap_or(it.start);
        live * end.saturating_sub(it.start) as f64 + ended * (until - it.start) as f64
    };
    let (tb, tbk) = (sum(Total), sum(Allocations));
    let (gb, gbk, eb, ebk) = (sum(Peak), sum(PeakBlocks), sum(Live), sum(LiveBlocks));
    let most = |all, live, least: u64, total: u64| {
        (most_at_once(groups, all, live).round() as u64).max(least).min(total)
    };
    Point {
        tb,
        tbk,
        tl: (groups.iter().map(lifetime).sum::<f64>() / 1000.0).round() as u64,
        mb: most(Total, Live, gb.max(eb), tb),
        mbk: most(Allocations, LiveBlocks, gbk.max(ebk), tbk),
        gb,
        gbk,
        eb,
        ebk,
        fs,
    }
}

/// The most of a measure that there was at a time, counting blocks from the first allocation of their group to its last
/// free. Blocks that were freed about when they were allocated are not counted.
fn most_at_once(groups: &[AllocatedGroup], all: AllocationMeasure, live: AllocationMeasure) -> f64 {
    let changes = groups.iter().flat_map(|it| {
        let (live, all) = (it.amount(live), it.amount(all));
        let ended = (all - live).max(0.0);
        let end = it.end.filter(|end| *end > it.start);
        [Some((it.start, live)), end.map(|_| (it.start, ended)), end.map(|end| (end, -ended))]
    });
    let mut changes: Vec<(u64, f64)> = changes.flatten().collect();
    changes.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let mut now = 0.0;
    changes.into_iter().fold(0.0, |most, (_, change)| {
        now += change;
        f64::max(most, now)
    })
}

/// The texts of frames, each once. The first is the root.
struct FrameTable<'a> {
    profile: &'a Profile,
    paths: SourcePaths<'a>,
    texts: Vec<String>,
    by_text: FxHashMap<String, usize>,
}

impl FrameTable<'_> {
    /// The numbers of a stack's frames, the innermost first. The viewer needs one at least.
    fn of_stack(&mut self, stack: Option<StackId>) -> Vec<usize> {
        let profile = self.profile;
        let frames = stack.into_iter().flat_map(|stack| profile.stack_frames(stack));
        let texts: Vec<String> = frames.map(|frame| self.text(frame)).collect();
        let texts = if texts.is_empty() { vec!["[no stack]".to_owned()] } else { texts };
        texts.into_iter().map(|text| self.number(text)).collect()
    }

    fn number(&mut self, text: String) -> usize {
        *self.by_text.entry(text).or_insert_with_key(|text| {
            self.texts.push(text.clone());
            self.texts.len() - 1
        })
    }

    /// A frame as `0x1234: main (app.c:3)`, or `0x1234: main (in /lib/app.so)`.
    fn text(&self, frame: &Frame) -> String {
        let profile = self.profile;
        let func = profile.func(frame.func);
        let place = match (profile.frame_source(frame), func.lib) {
            (Some(source), _) => {
                let file = source_path(profile, source, self.paths);
                match profile.frame_line(frame) {
                    Some(line) => format!("{file}:{line}"),
                    None => file.into_owned(),
                }
            }
            (None, Some(lib)) => format!("in {}", profile.lib(lib).path),
            (None, None) => "in ???".to_owned(),
        };
        let name = profile.func_name(frame.func);
        let text = format!("{:#x}: {name} ({place})", frame.address.unwrap_or(0));
        hidden::escape(&text).into_owned()
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
        assert_eq!(of("total_blocks"), ["main;get 13", "main;put 5"]);
        let json: serde_json::Value = serde_json::from_slice(&out).unwrap();
        let point = |number: &str, key: &str| json.pointer(&format!("/pps/{number}/{key}")).unwrap().as_u64();
        // Ten blocks of 100 bytes for 3 ms, and three to the end, at 10 ms, from 5 ms on.
        assert_eq!(
            [point("0", "tl"), point("0", "mb"), point("0", "mbk")],
            [Some(45_000), Some(1000), Some(10)]
        );
        assert_eq!([json["te"].as_u64(), json["tg"].as_u64()], [Some(10_000), Some(2000)]);
    }
}
