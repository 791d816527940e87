//! A module's code without unwind information: its instructions, and the rules that are derived from them.

use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use nyquist_object::{ByteSource, Elf, FileOffset};

use crate::call_instruction::CallInstruction;
use crate::code::{
    CodeAround, CodeRange, UncoveredCode, code_ranges, linkage_tables, live_code, part_at, read_gap,
};
use crate::followed_functions::{FollowedFunctions, function_starts};
use crate::found_rules::FoundRules;
use crate::inferred_rules::InferredRules;
use crate::rule::Rule;

/// How many small gaps are read one by one before all uncovered code is read. Reading all of it takes about
/// as long as reading some thousands of gaps.
const MAX_SMALL_GAPS: u32 = 1000;

/// Uncovered code, which may be read when a walk first needs some. A large library has gaps everywhere, and
/// most of them are never needed.
#[derive(Default)]
pub(crate) struct LazyUncoveredCode {
    known: OnceLock<UncoveredCache>,
    later: Option<Box<dyn DeferredReader + Send + Sync>>,
    /// The ranges of code that is read later, by address.
    code: Vec<CodeRange>,
    /// The entry point of a program that is read later.
    entry: Option<u32>,
    /// How many small gaps were read one by one.
    small_gaps: AtomicU32,
    /// The ranges of tables of jumps to other modules, by address. Each jump is a separate function, whose
    /// rule is known from its few instructions. Every recording needs some of them.
    linkage: Vec<Range<u32>>,
    linkage_code: OnceLock<UncoveredCode>,
    /// The functions in which threads were interrupted.
    followed: FollowedFunctions,
    /// The rules of code that is made at run time.
    found: FoundRules,
}

/// All uncovered code has to be read, because a gap cannot be handled alone, or because reading everything is
/// faster by now.
#[derive(Debug)]
pub(crate) struct ReadAll;

/// The uncovered code that was read.
#[derive(Debug, Default)]
pub(crate) struct UncoveredCache {
    pub(crate) code: UncoveredCode,
    pub(crate) inferred: InferredRules,
}

/// Reads uncovered code later.
trait DeferredReader {
    /// Reads the code outside of these ranges, which are in order.
    fn read_cache(&self, covered: &[Range<u32>]) -> UncoveredCache;

    /// Reads the tables of jumps to other modules.
    fn linkage_code(&self) -> UncoveredCode;

    /// Reads a gap, if it has any instructions.
    fn gap(&self, gap: &CodeRange) -> Option<Vec<u8>>;

    /// Where functions begin, by relative address.
    fn function_starts(&self) -> Vec<u32>;

    /// Reads code.
    fn code(&self, code: &CodeRange) -> Option<Vec<u8>>;
}

impl<S: ByteSource> DeferredReader for Arc<Elf<S>> {
    fn read_cache(&self, covered: &[Range<u32>]) -> UncoveredCache {
        UncoveredCache::read::<S, S>(self, None, covered)
    }

    fn linkage_code(&self) -> UncoveredCode {
        read_linkage(self)
    }

    fn gap(&self, gap: &CodeRange) -> Option<Vec<u8>> {
        read_gap(self.source(), gap)
    }

    fn function_starts(&self) -> Vec<u32> {
        function_starts(self)
    }

    fn code(&self, code: &CodeRange) -> Option<Vec<u8>> {
        self.source().read_range(code.offset.0, code.range.len() as u64).ok()
    }
}

impl UncoveredCache {
    /// Reads the code of a file that is not in `covered`, and follows it.
    fn read<S: ByteSource, D: ByteSource>(
        elf: &Elf<S>,
        debug: Option<&Elf<D>>,
        covered: &[Range<u32>],
    ) -> Self {
        let ranges = code_ranges(elf);
        let code = UncoveredCode::read(elf, &ranges, covered);
        let inferred = InferredRules::new(elf, debug, (&ranges, covered), &code);
        Self { code, inferred }
    }
}

fn read_linkage<S: ByteSource>(elf: &Elf<S>) -> UncoveredCode {
    UncoveredCode::read_whole(elf.source(), &linkage_tables(elf))
}

impl LazyUncoveredCode {
    /// Code whose instructions are known, but are not followed.
    pub(crate) fn of(code: UncoveredCode) -> Self {
        let known = UncoveredCache { code, inferred: InferredRules::default() };
        Self { known: known.into(), ..Self::default() }
    }

    /// Reads what of a file's code is not in `covered`.
    pub(crate) fn read<S: ByteSource, D: ByteSource>(
        elf: &Elf<S>,
        debug: Option<&Elf<D>>,
        covered: &[Range<u32>],
    ) -> Self {
        Self {
            known: UncoveredCache::read(elf, debug, covered).into(),
            linkage: ranges_of(&linkage_tables(elf)),
            linkage_code: read_linkage(elf).into(),
            ..Self::default()
        }
    }

    /// The uncovered code of a file, which is read when a walk needs it.
    pub(crate) fn later<S: ByteSource + Send + Sync + 'static>(elf: Arc<Elf<S>>) -> Self {
        let code = live_code(&elf, &code_ranges(&elf));
        let linkage = ranges_of(&linkage_tables(&elf));
        let base = elf.image_base().0;
        let entry = elf.entry_point().and_then(|entry| u32::try_from(entry.0.checked_sub(base)?).ok());
        Self { code, entry, linkage, later: Some(Box::new(elf)), ..Self::default() }
    }

    /// The uncovered code. If it was not read so far, `covered` returns the code to leave out.
    pub(crate) fn get(&self, covered: impl FnOnce() -> Vec<Range<u32>>) -> &UncoveredCache {
        self.known
            .get_or_init(|| self.later.as_ref().map(|later| later.read_cache(&covered())).unwrap_or_default())
    }

    /// The uncovered code, if it was read.
    pub(crate) fn cache(&self) -> Option<&UncoveredCache> {
        self.known.get()
    }

    /// Whether no code was read so far, and none is at a relative address or ends there. This is checked
    /// because guessing walks look up arbitrary numbers on the stack.
    pub(crate) fn is_elsewhere(&self, address: u32) -> bool {
        let holds = |Range { start, end }: &Range<u32>| *start <= address && address <= *end;
        self.cache().is_none() && !self.code.iter().any(|code| holds(&code.range))
    }

    /// The range of code that is read later and that contains a relative address.
    pub(crate) fn stretch_at(&self, address: u32) -> Option<&Range<u32>> {
        part_at(&self.code, address).map(|stretch| &stretch.range)
    }

    /// The entry point of a program that is read later.
    pub(crate) fn entry(&self) -> Option<u32> {
        self.entry
    }

    /// Reads a small gap in one range of code, if it has any instructions.
    pub(crate) fn small_gap(&self, gap: &Range<u32>) -> Result<Option<Vec<u8>>, ReadAll> {
        if self.small_gaps.fetch_add(1, Ordering::Relaxed) >= MAX_SMALL_GAPS {
            return Err(ReadAll);
        }
        let later = self.later.as_ref().ok_or(ReadAll)?;
        let CodeRange { range, offset } = part_at(&self.code, gap.start).ok_or(ReadAll)?;
        let offset = FileOffset(offset.0 + u64::from(gap.start - range.start));
        Ok(later.gap(&CodeRange { range: gap.clone(), offset }))
    }

    /// The rule at a relative address in uncovered code, by following the function there alone from its
    /// symbol.
    pub(crate) fn followed_rule(&self, code: &CodeAround<'_>, address: u32) -> Rule {
        let starts = || self.later.as_ref().map(|later| later.function_starts()).unwrap_or_default();
        self.followed.rule(code, address, starts)
    }

    /// The rules that were found for code that is made at run time, by relative address.
    pub(crate) fn found_rules(&self) -> &FoundRules {
        &self.found
    }

    /// The code before a relative address, as much as a call can take. `None` if the file is not there any
    /// more, or has no code there.
    pub(crate) fn code_before(&self, address: u32) -> Option<Vec<u8>> {
        let CodeRange { range, offset } = part_at(&self.code, address.checked_sub(1)?)?;
        let start = range.start.max(address.saturating_sub(CallInstruction::MAX_LEN as u32));
        let offset = FileOffset(offset.0 + u64::from(start - range.start));
        self.later.as_ref()?.code(&CodeRange { range: start..address, offset })
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
        let known = self.cache().map_or(0, |known| known.code.size() + known.inferred.size());
        known + self.linkage_code.get().map_or(0, UncoveredCode::size)
    }
}

fn ranges_of(code: &[CodeRange]) -> Vec<Range<u32>> {
    code.iter().map(|code| code.range.clone()).collect()
}

impl fmt::Debug for LazyUncoveredCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Uncovered").field("known", &self.known).finish_non_exhaustive()
    }
}
