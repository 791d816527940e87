//! Caches the results of the last requests.

use std::collections::VecDeque;
use std::rc::Rc;

use nyquist_analysis::{Index, Selection, View};
use nyquist_server::ViewerResponse;

/// The number of selections that are kept, for stepping back.
const MAX_VIEWS: usize = 8;

/// The maximum memory of the kept responses, in bytes.
const ANSWER_BYTES: usize = 32 << 20;

/// The views of the last selections.
#[derive(Debug)]
pub(crate) struct ViewCache<'a> {
    index: &'a Index<'a>,
    /// The most recently used one is last.
    kept: VecDeque<Rc<View<'a>>>,
}

impl<'a> ViewCache<'a> {
    /// An empty cache for a profile.
    pub(crate) fn new(index: &'a Index<'a>) -> Self {
        Self { index, kept: VecDeque::new() }
    }

    /// The view of a selection.
    pub(crate) fn of(&mut self, selection: &Selection) -> Rc<View<'a>> {
        let known = self.kept.iter().position(|view| view.selection() == selection);
        let view = known
            .and_then(|position| self.kept.remove(position))
            .unwrap_or_else(|| Rc::new(View::new(self.index, selection)));
        self.kept.push_back(Rc::clone(&view));
        if self.kept.len() > MAX_VIEWS {
            self.kept.pop_front();
        }
        view
    }
}

/// The last responses, by request and query.
#[derive(Debug, Default)]
pub(crate) struct ResponseCache {
    /// Oldest first.
    kept: VecDeque<(String, ViewerResponse)>,
    bytes: usize,
}

impl ResponseCache {
    /// The response to a request.
    pub(crate) fn get(&self, question: &str) -> Option<&ViewerResponse> {
        self.kept.iter().find(|(requested, _)| requested == question).map(|(_, answer)| answer)
    }

    /// Stores a response, and removes the oldest ones if the cache is full.
    pub(crate) fn keep(&mut self, question: String, answer: &ViewerResponse) {
        let size = |(question, answer): &(String, ViewerResponse)| question.len() + answer.body.len();
        let new = (question, answer.clone());
        if size(&new) > ANSWER_BYTES / 4 {
            return;
        }
        self.bytes += size(&new);
        self.kept.push_back(new);
        while self.bytes > ANSWER_BYTES {
            let Some(oldest) = self.kept.pop_front() else { return };
            self.bytes -= size(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
