//! Caches the results of the last requests.

use std::collections::VecDeque;
use std::rc::Rc;

use nyquist_analysis::{Index, Selection, View};
use nyquist_server::ViewerResponse;

/// The number of selections that are kept, for stepping back.
const MAX_VIEWS: usize = 8;

/// The number of selections that are kept whatever their size: a page asks about up to three at a time.
const MIN_VIEWS: usize = 3;

/// The maximum memory of more views than that, in bytes.
const VIEW_BYTES: usize = 64 << 20;

/// The maximum memory of the kept responses, in bytes.
const ANSWER_BYTES: usize = 32 << 20;

/// The views of the last selections.
#[derive(Debug)]
pub(crate) struct ViewCache<'a> {
    index: &'a Index<'a>,
    /// The most recently used one is last.
    cached: VecDeque<Rc<View<'a>>>,
    max_bytes: usize,
}

impl<'a> ViewCache<'a> {
    /// An empty cache for a profile.
    pub(crate) fn new(index: &'a Index<'a>) -> Self {
        Self { index, cached: VecDeque::new(), max_bytes: VIEW_BYTES }
    }

    /// The view of a selection.
    pub(crate) fn of(&mut self, selection: &Selection) -> Rc<View<'a>> {
        let known = self.cached.iter().position(|view| view.selection() == selection);
        let view = known
            .and_then(|position| self.cached.remove(position))
            .unwrap_or_else(|| Rc::new(View::new(self.index, selection)));
        self.cached.push_back(Rc::clone(&view));
        self.make_room();
        view
    }

    fn make_room(&mut self) {
        let bytes = |views: &VecDeque<Rc<View<'_>>>| views.iter().map(|view| view.own_bytes()).sum::<usize>();
        while self.cached.len() > MAX_VIEWS
            || (self.cached.len() > MIN_VIEWS && bytes(&self.cached) > self.max_bytes)
        {
            self.cached.pop_front();
        }
    }
}

/// The last responses, by request and query.
#[derive(Debug, Default)]
pub(crate) struct ResponseCache {
    /// Oldest first.
    cached: VecDeque<(String, ViewerResponse)>,
    bytes: usize,
}

impl ResponseCache {
    /// The response to a request.
    pub(crate) fn get(&self, question: &str) -> Option<&ViewerResponse> {
        self.cached.iter().find(|(requested, _)| requested == question).map(|(_, answer)| answer)
    }

    /// Stores a response, and removes the oldest ones if the cache is full.
    pub(crate) fn keep(&mut self, question: String, answer: &ViewerResponse) {
        let size = |(question, answer): &(String, ViewerResponse)| question.len() + answer.body.len();
        let new = (question, answer.clone());
        if size(&new) > ANSWER_BYTES / 4 {
            return;
        }
        self.bytes += size(&new);
        self.cached.push_back(new);
        while self.bytes > ANSWER_BYTES {
            let Some(oldest) = self.cached.pop_front() else { return };
            self.bytes -= size(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use nyquist_profile::{Frame, Func, Meta, Process, Profile, ProfileBuilder, Sample, Thread, ThreadIndex};

    use super::*;

    /// A thread with a sample in each of some functions.
    fn profile(functions: usize) -> Profile {
        let mut builder = ProfileBuilder::new(Meta::default());
        let process = builder.add_process(Process::default());
        let thread: ThreadIndex = builder.add_thread(Thread::new(process, "1", "main"));
        for number in 0..functions {
            let name = builder.intern_string(&number.to_string());
            let func = builder.intern_func(Func::new(name, None));
            let frame = builder.intern_frame(Frame::label(func));
            let stack = builder.intern_stack(None, frame);
            builder.add_sample(thread, Sample { weight: 1, ..Sample::new(number as u64, Some(stack), 1) });
        }
        builder.finish()
    }

    #[test]
    fn large_views_make_room_for_others() {
        let profile = profile(100);
        let index = Index::new(&profile);
        let selection = |end: u64| Selection { range: Some(0..end), ..Selection::default() };
        for (max_bytes, expected) in [(0, MIN_VIEWS), (5 * 101 * 16, 5), (usize::MAX, MAX_VIEWS)] {
            let mut views = ViewCache { max_bytes, ..ViewCache::new(&index) };
            (1..20).for_each(|end| drop(views.of(&selection(end))));
            assert_eq!(views.cached.len(), expected, "{max_bytes}");
            assert_eq!(views.cached.back().unwrap().selection(), &selection(19));
        }
    }

    #[test]
    fn the_oldest_answers_make_room() {
        let mut answers = ResponseCache::default();
        answers.keep("too large".to_owned(), &ViewerResponse::json(vec![0; ANSWER_BYTES / 2]));
        for number in 0..6 {
            answers.keep(number.to_string(), &ViewerResponse::json(vec![0; ANSWER_BYTES / 5]));
        }
        assert!(
            answers.get("too large").is_none() && answers.get("0").is_none() && answers.get("1").is_none()
        );
        assert!(answers.get("2").is_some() && answers.get("5").is_some());
        assert!(answers.bytes <= ANSWER_BYTES);
    }
}
