//! Selects the pages of a thread's stack that are worth reading. In a deep stack, few pages contain the end
//! of a frame, and walks read no others.

use std::collections::BTreeMap;
use std::ops::Range;

use super::pages::{MOST_READ, PAGE};

/// How long a page is read after a walk has read it, in nanoseconds.
const FOR: u64 = 2_000_000_000;
/// How long all pages are read after a walk has reached a page that was not read. By then it is known which
/// pages it reads there.
const WHOLE_FOR: u64 = 50_000_000;
/// The most pages of a thread that are tracked: as many as are read at once. If walks read more, all pages
/// are read.
const MOST: usize = (MOST_READ / PAGE) as usize;

/// The pages of a thread's stack that walks to its root have read.
#[derive(Debug, Default)]
pub(crate) struct HotPages {
    /// By their first addresses, with the time of the last report of each.
    pages: BTreeMap<u64, u64>,
    whole_until: u64,
}

impl HotPages {
    /// Notes that a walk has read a page.
    pub(crate) fn note(&mut self, page: u64, now: u64) {
        self.pages.insert(page, now);
        if self.pages.len() > MOST {
            self.pages.retain(|_, read_at| now.saturating_sub(*read_at) < FOR);
        }
        if self.pages.len() > MOST {
            self.pages.clear();
            self.whole_until = now + FOR;
        }
    }

    /// Notes that a walk has reached a page that was not read.
    pub(crate) fn note_gap(&mut self, now: u64) {
        self.whole_until = self.whole_until.max(now + WHOLE_FOR);
    }

    /// The parts of a stack to read: everything up to `inner_end`, and these pages beyond it. `None` if
    /// nothing is known of them.
    pub(crate) fn parts(&self, stack: &Range<u64>, inner_end: u64, now: u64) -> Option<Vec<Range<u64>>> {
        let is_known = |read_at: &u64| now.saturating_sub(*read_at) < FOR;
        if now < self.whole_until || inner_end >= stack.end || !self.pages.values().any(is_known) {
            return None;
        }
        let inner = stack.start..inner_end;
        let mut parts = vec![inner];
        let outer = self.pages.range(inner_end..stack.end);
        for (&page, _) in outer.filter(|(_, read_at)| is_known(read_at)) {
            let end = page + PAGE;
            match parts.last_mut().filter(|last| last.end == page) {
                Some(last) => last.end = end,
                None => parts.push(page..end),
            }
        }
        Some(parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STACK: Range<u64> = 0x10_0000..0x18_0000;

    fn hot_pages(pages: &[u64], now: u64) -> HotPages {
        let mut hot_pages = HotPages::default();
        for page in pages {
            hot_pages.note(*page, now);
        }
        hot_pages
    }

    #[test]
    fn the_inner_part_and_known_outer_pages_are_read() {
        let check = |pages: &[u64], inner_end: u64, expected: Option<&[Range<u64>]>| {
            let parts = hot_pages(pages, 7).parts(&STACK, inner_end, 8);
            assert_eq!(parts.as_deref(), expected, "{pages:x?}");
        };
        let inner = 0x10_0000..0x10_8000;
        check(&[], inner.end, None);
        check(&[0x10_3000], inner.end, Some(std::slice::from_ref(&inner)));
        check(&[0x17_f000, 0x18_0000, 0xf_f000], inner.end, Some(&[inner.clone(), 0x17_f000..0x18_0000]));
        let pages = [0x12_1000, 0x10_8000, 0x12_0000, 0x15_0000];
        let parts = [0x10_0000..0x10_9000, 0x12_0000..0x12_2000, 0x15_0000..0x15_1000];
        check(&pages, inner.end, Some(&parts));
        check(&pages, STACK.end, None);
    }

    #[test]
    fn all_is_read_after_a_gap_or_a_long_silence() {
        let mut hot_pages = hot_pages(&[0x12_0000], 1000);
        let is_whole = |now: u64| hot_pages.parts(&STACK, 0x10_8000, now).is_none();
        assert!(!is_whole(1001));
        hot_pages.note_gap(2000);
        let is_whole = |now: u64| hot_pages.parts(&STACK, 0x10_8000, now).is_none();
        assert_eq!([2001, 2000 + WHOLE_FOR, 1000 + FOR].map(is_whole), [true, false, true]);
    }

    #[test]
    fn all_is_read_where_walks_need_too_many_pages() {
        let many: Vec<u64> = (0..=MOST as u64).map(|page| STACK.start + page * PAGE).collect();
        assert!(hot_pages(&many[1..], 1).parts(&STACK, STACK.start, 2).is_some());
        let mut hot_pages = hot_pages(&many, 1);
        assert_eq!(hot_pages.parts(&STACK, STACK.start, 2), None);
        // The pages of the next walk are not assumed to be complete.
        hot_pages.note(many[0], 2);
        assert_eq!([3, FOR].map(|now| hot_pages.parts(&STACK, STACK.start, now)), [None, None]);
        assert!(hot_pages.parts(&STACK, STACK.start, FOR + 1).is_some());
    }
}
