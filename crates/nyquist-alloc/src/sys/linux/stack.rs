//! How much of a thread's stack can be read. A program may run on stacks that it has made itself, next to pages
//! that must not be touched.

use super::calls::{PAGE, is_readable};
use super::thread::ThreadState;

/// A stack pointer further from the end of the thread's own stack is on another stack.
const MAX_OWN_STACK: usize = 64 << 20;

/// The most pages that are looked at for one sample.
const MAX_PAGES: usize = 1 << 11;

/// The end of what can be read from a stack pointer on, at most `most` bytes from there.
pub(super) fn readable_end(thread: &ThreadState, sp: usize, most: usize) -> usize {
    let limit = sp.saturating_add(most);
    let end = thread.stack_end.get();
    let is_own = sp < end && end - sp < MAX_OWN_STACK;
    if !is_own {
        return readable_pages(sp, limit);
    }
    if sp >= thread.readable_from.get() {
        return limit.min(end);
    }
    // Pages of a stack are not unmapped while its thread runs, so each is looked at once.
    let known = thread.readable_from.get();
    let reached = readable_pages(sp, known);
    if reached < known {
        return reached.min(limit);
    }
    thread.readable_from.set(sp & !(PAGE - 1));
    limit.min(end)
}

/// The first address from `start` on in a page that cannot be read, or `end`.
fn readable_pages(start: usize, end: usize) -> usize {
    let mut page = start & !(PAGE - 1);
    for _ in 0..MAX_PAGES {
        if page >= end {
            return end;
        }
        if !is_readable(page) {
            return page.max(start);
        }
        page = page.saturating_add(PAGE);
    }
    page.clamp(start, end)
}
