//! The arguments of a program, as they are in its process's name.

use nyquist_resources::{Budget, Charge};
use std::ops::Deref;
use std::sync::Arc;

/// The arguments of a program, as text. A child process shares them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Arguments(Option<Arc<CountedText>>);

#[derive(Debug)]
struct CountedText {
    text: Box<str>,
    _charge: Charge,
}

impl Arguments {
    /// Arguments whose memory is charged to a budget. `None` if it is too small for them.
    pub(super) fn new(text: String, budget: &Budget) -> Option<Self> {
        if text.is_empty() {
            return Some(Self::default());
        }
        let charge = budget.charge();
        let bytes = size_of::<CountedText>() + text.len();
        let has_room = charge.take(bytes as u64);
        has_room.then(|| Self(Some(Arc::new(CountedText { text: text.into(), _charge: charge }))))
    }
}

impl Deref for Arguments {
    type Target = str;

    fn deref(&self) -> &str {
        self.0.as_ref().map_or("", |counted| &counted.text)
    }
}

impl PartialEq for Arguments {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Arguments {}
