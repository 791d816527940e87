//! The code of a jitdump that has unwind information: where it is now, and in which order it appeared.

use nyquist_object::Avma;
use nyquist_unwind::Module;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// Code that appeared at addresses.
#[derive(Clone, Debug)]
pub(crate) struct UnwindableCode {
    /// The first address.
    pub(crate) start: Avma,
    /// Its size in bytes.
    pub(crate) len: u64,
    /// How it is unwound. `None` if it has no unwind information, and has replaced code that had some.
    pub(crate) module: Option<Arc<Module>>,
}

impl UnwindableCode {
    fn range(&self) -> Range<u64> {
        self.start.0..self.start.0.saturating_add(self.len)
    }
}

/// The code of one jitdump that has unwind information.
#[derive(Debug, Default)]
pub(crate) struct UnwindableCodes {
    /// In the file's order.
    appeared: Vec<UnwindableCode>,
    /// What is there now: the places in `appeared`, by the first address. None overlap.
    current: BTreeMap<u64, usize>,
}

impl UnwindableCodes {
    /// Code appears. It replaces what was at its addresses.
    pub(crate) fn add(&mut self, start: Avma, len: u64, module: Option<Arc<Module>>) {
        let code = UnwindableCode { start, len, module };
        let replaced = self.places_in(&code.range());
        for (first, _) in &replaced {
            self.current.remove(first);
        }
        let (place, is_described) = (self.appeared.len(), code.module.is_some());
        if is_described {
            self.current.insert(start.0, place);
        }
        if is_described || !replaced.is_empty() {
            self.appeared.push(code);
        }
    }

    /// The code that has appeared after the first `known` pieces.
    pub(crate) fn since(&self, known: usize) -> &[UnwindableCode] {
        self.appeared.get(known..).unwrap_or_default()
    }

    /// The code with unwind information that overlaps a range now.
    pub(crate) fn within(&self, range: &Range<u64>) -> impl Iterator<Item = &UnwindableCode> {
        self.places_in(range).into_iter().filter_map(|(_, place)| self.appeared.get(place))
    }

    fn places_in(&self, range: &Range<u64>) -> Vec<(u64, usize)> {
        let overlaps =
            |place: usize| self.appeared.get(place).is_some_and(|code| range.start < code.range().end);
        let before = self.current.range(..range.end).rev().map(|(first, place)| (*first, *place));
        before.take_while(|(_, place)| overlaps(*place)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nyquist_object::Architecture;

    #[test]
    fn later_code_replaces_earlier_code() {
        let mut codes = UnwindableCodes::default();
        let module = || Some(Arc::new(Module::from_made_code(Architecture::X86_64, 16, Vec::new())));
        let starts = |codes: &UnwindableCodes, range: Range<u64>| {
            let mut starts: Vec<u64> = codes.within(&range).map(|code| code.start.0).collect();
            starts.sort_unstable();
            starts
        };
        codes.add(Avma(0x1000), 16, None);
        assert_eq!(codes.since(0).len(), 0, "nothing was there");
        codes.add(Avma(0x1000), 16, module());
        codes.add(Avma(0x1010), 16, module());
        assert_eq!(starts(&codes, 0x1000..0x2000), [0x1000, 0x1010]);
        assert_eq!(starts(&codes, 0x100f..0x1010), [0x1000]);
        assert!(starts(&codes, 0x1020..0x2000).is_empty());
        codes.add(Avma(0x1008), 4, None);
        assert_eq!(starts(&codes, 0x0..0x2000), [0x1010]);
        assert!(codes.since(2).iter().all(|code| code.module.is_none()) && codes.since(2).len() == 1);
        codes.add(Avma(0x1018), u64::MAX, module());
        assert!(starts(&codes, 0x0..0x1017).is_empty());
        assert_eq!(starts(&codes, 0x1020..0x1021), [0x1018]);
    }
}
