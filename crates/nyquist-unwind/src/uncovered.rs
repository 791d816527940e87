//! What is known of a module's code that no unwind information covers: its instructions, and what they say when they are followed.

use std::fmt;
use std::ops::Range;
use std::sync::OnceLock;

use nyquist_object::{ByteSource, Elf};

use crate::code::{UncoveredCode, code_ranges};
use crate::followed::Followed;

/// Uncovered code, which may be read when a walk first comes by some: gaps are all over a large library, and mostly nobody asks for them.
pub(crate) struct Uncovered {
    known: OnceLock<Known>,
    read: Option<Box<Read>>,
}

/// Reads what is not in the ranges, which are in order.
type Read = dyn Fn(&[Range<u32>]) -> Known + Send + Sync;

/// What was read.
#[derive(Debug, Default)]
pub(crate) struct Known {
    pub(crate) code: UncoveredCode,
    pub(crate) followed: Followed,
}

impl Known {
    /// Reads what of a file's code is not in `covered`, and follows it.
    pub(crate) fn read<S: ByteSource, D: ByteSource>(
        elf: &Elf<S>,
        debug: Option<&Elf<D>>,
        covered: &[Range<u32>],
    ) -> Self {
        let ranges = code_ranges(elf);
        let code = UncoveredCode::read(elf, &ranges, covered);
        let followed = Followed::new(elf, debug, (&ranges, covered), &code);
        Self { code, followed }
    }
}

impl Uncovered {
    /// Instructions that are known, and not followed.
    pub(crate) fn of(code: UncoveredCode) -> Self {
        Self::from(Known { code, followed: Followed::default() })
    }

    /// What is read later.
    pub(crate) fn later(read: impl Fn(&[Range<u32>]) -> Known + Send + Sync + 'static) -> Self {
        Self { known: OnceLock::new(), read: Some(Box::new(read)) }
    }

    /// What is known; where nothing was read so far, `covered` says what not to read.
    pub(crate) fn get(&self, covered: impl FnOnce() -> Vec<Range<u32>>) -> &Known {
        self.known.get_or_init(|| self.read.as_ref().map(|read| read(&covered())).unwrap_or_default())
    }

    /// What was read, if it was.
    pub(crate) fn known(&self) -> Option<&Known> {
        self.known.get()
    }
}

impl From<Known> for Uncovered {
    fn from(known: Known) -> Self {
        Self { known: known.into(), read: None }
    }
}

impl fmt::Debug for Uncovered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Uncovered").field("known", &self.known).finish_non_exhaustive()
    }
}
