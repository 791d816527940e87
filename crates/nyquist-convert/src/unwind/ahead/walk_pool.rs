//! Memory of walks whose samples are converted, for the next ones: threads that allocate for each other also wait for each other.

use bytes::Bytes;

use crate::event::pre_unwound::AddressSpaceHash;
use crate::event::{PreUnwound, Registers, UserStack};

/// The most of them that are kept: more than are on their way at once, but for those of a recorder that has fallen behind.
const MOST: usize = 4096;

/// Such memory.
#[derive(Debug, Default)]
pub(crate) struct WalkPool {
    #[expect(clippy::vec_box, reason = "the boxes are what is used again")]
    walks: Vec<Box<PreUnwound>>,
}

impl WalkPool {
    /// Takes the memory of a stack that nobody needs any more, and frees the copy.
    pub(crate) fn put(&mut self, stack: UserStack) {
        if let UserStack::PreUnwound(mut unwound) = stack
            && self.walks.len() < MOST
        {
            unwound.clear();
            self.walks.push(unwound);
        }
    }

    /// Takes all that another one has.
    pub(crate) fn append(&mut self, other: &mut Self) {
        self.walks.append(&mut other.walks);
        self.walks.truncate(MOST);
    }

    /// A stack that is to be walked, in memory that another one had, if there is any.
    pub(crate) fn pending(
        &mut self,
        code: AddressSpaceHash,
        registers: Box<Registers>,
        copy: (Bytes, bool),
    ) -> UserStack {
        let pending = |frames| PreUnwound::pending(code, registers, copy, frames);
        UserStack::PreUnwound(match self.walks.pop() {
            Some(mut spare) => {
                *spare = pending(std::mem::take(&mut spare.frames));
                spare
            }
            None => Box::new(pending(Vec::new())),
        })
    }
}
