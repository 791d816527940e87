//! What is known of a module's code that no unwind information covers: its instructions, and what they say when they are followed.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use nyquist_object::{ByteSource, Elf};

use crate::code::{CodeRange, UncoveredCode, code_ranges, linkage_tables, live_code};
use crate::followed::Followed;

/// Uncovered code, which may be read when a walk first comes by some: gaps are all over a large library, and mostly nobody asks for them.
#[derive(Default)]
pub(crate) struct Uncovered {
    known: OnceLock<Known>,
    later: Option<Box<dyn Later + Send + Sync>>,
    /// Where code is that is read later, by address.
    code: Vec<Range<u32>>,
    /// Where tables of jumps to other modules are, by address. Each of these is a function of its own, known by the
    /// instructions at hand, and every recording comes by some.
    linkage: Vec<Range<u32>>,
    linkage_code: OnceLock<UncoveredCode>,
}

/// What was read.
#[derive(Debug, Default)]
pub(crate) struct Known {
    pub(crate) code: UncoveredCode,
    pub(crate) followed: Followed,
}

/// How what was not read yet is read.
trait Later {
    /// Reads what is not in the ranges, which are in order.
    fn known(&self, covered: &[Range<u32>]) -> Known;

    /// Reads the tables of jumps to other modules.
    fn linkage_code(&self) -> UncoveredCode;
}

impl<S: ByteSource> Later for Arc<Elf<S>> {
    fn known(&self, covered: &[Range<u32>]) -> Known {
        Known::read::<S, S>(self, None, covered)
    }

    fn linkage_code(&self) -> UncoveredCode {
        read_linkage(self)
    }
}

impl Known {
    /// Reads what of a file's code is not in `covered`, and follows it.
    fn read<S: ByteSource, D: ByteSource>(
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

fn read_linkage<S: ByteSource>(elf: &Elf<S>) -> UncoveredCode {
    UncoveredCode::read_whole(elf.source(), &linkage_tables(elf))
}

impl Uncovered {
    /// Instructions that are known, and not followed.
    pub(crate) fn of(code: UncoveredCode) -> Self {
        let known = Known { code, followed: Followed::default() };
        Self { known: known.into(), ..Self::default() }
    }

    /// Reads what of a file's code is not in `covered`.
    pub(crate) fn read<S: ByteSource, D: ByteSource>(
        elf: &Elf<S>,
        debug: Option<&Elf<D>>,
        covered: &[Range<u32>],
    ) -> Self {
        Self {
            known: Known::read(elf, debug, covered).into(),
            linkage: ranges_of(&linkage_tables(elf)),
            linkage_code: read_linkage(elf).into(),
            ..Self::default()
        }
    }

    /// A file's, which is read when a walk comes by it.
    pub(crate) fn later<S: ByteSource + Send + Sync + 'static>(elf: Arc<Elf<S>>) -> Self {
        let code = ranges_of(&live_code(&elf, &code_ranges(&elf)));
        let linkage = ranges_of(&linkage_tables(&elf));
        Self { code, linkage, later: Some(Box::new(elf)), ..Self::default() }
    }

    /// What is known; where nothing was read so far, `covered` says what not to read.
    pub(crate) fn get(&self, covered: impl FnOnce() -> Vec<Range<u32>>) -> &Known {
        self.known
            .get_or_init(|| self.later.as_ref().map(|later| later.known(&covered())).unwrap_or_default())
    }

    /// What was read, if it was.
    pub(crate) fn known(&self) -> Option<&Known> {
        self.known.get()
    }

    /// Whether nothing was read so far, and there is no code at a relative address or up to it. Walks that guess ask about any number
    /// on the stack.
    pub(crate) fn is_elsewhere(&self, address: u32) -> bool {
        let is_code = || self.code.iter().any(|code| code.start <= address && address <= code.end);
        self.known().is_none() && !is_code()
    }

    /// Whether a relative address is in a table of jumps to other modules.
    pub(crate) fn is_linkage(&self, address: u32) -> bool {
        self.linkage.iter().any(|table| table.contains(&address))
    }

    /// The tables of jumps to other modules.
    pub(crate) fn linkage_code(&self) -> &UncoveredCode {
        self.linkage_code
            .get_or_init(|| self.later.as_ref().map(|later| later.linkage_code()).unwrap_or_default())
    }

    /// How many bytes of memory it takes.
    pub(crate) fn size(&self) -> usize {
        let known = self.known().map_or(0, |known| known.code.size() + known.followed.size());
        known + self.linkage_code.get().map_or(0, UncoveredCode::size)
    }
}

fn ranges_of(code: &[CodeRange]) -> Vec<Range<u32>> {
    code.iter().map(|code| code.range.clone()).collect()
}

impl fmt::Debug for Uncovered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Uncovered").field("known", &self.known).finish_non_exhaustive()
    }
}
