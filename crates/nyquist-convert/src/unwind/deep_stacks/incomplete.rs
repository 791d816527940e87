//! Why stacks that were deeper than their copies could not be completed from the running program's memory.

/// Why a stack was not completed: the first of these that applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Incomplete {
    /// Readings of its thread had contradicted each other some time before.
    Distrusted,
    /// Readings that fit it have different frames.
    Contradicted,
    /// Its thread was not read within the milliseconds before it.
    UnreadBefore,
    /// Its thread was not read within the milliseconds after it, because the machine was busy, or the thread
    /// ended.
    UnreadAfter,
    /// The readings do not agree with the copy's end, because the thread had moved on by then.
    Misfit,
    /// The walk through the reading does not reach the root.
    Rootless,
    /// A frame in the reading has no unwind information, or no call precedes its return address.
    Uncalled,
    /// Too few readings of its thread had agreed so far.
    Untested,
    /// One frame fills all words that the copy and the reading have in common, so nothing proves that they
    /// are of the same stack.
    NoOverlap,
}

impl Incomplete {
    /// All of them, in their order.
    pub(super) const ALL: [Self; 9] = [
        Self::Distrusted,
        Self::Contradicted,
        Self::UnreadBefore,
        Self::UnreadAfter,
        Self::Misfit,
        Self::Rootless,
        Self::Uncalled,
        Self::Untested,
        Self::NoOverlap,
    ];
}

impl Incomplete {
    /// The reason, as the end of a sentence.
    pub(crate) const fn text(self) -> &'static str {
        match self {
            Self::Distrusted => "soon after readings had contradicted each other",
            Self::Contradicted => "with readings that contradicted each other",
            Self::UnreadBefore => "not read shortly before",
            Self::UnreadAfter => "not read shortly after",
            Self::Misfit => "changed when read",
            Self::Rootless => "without a way to the root in what was read",
            Self::Uncalled => "through code that nothing describes",
            Self::Untested => "before enough readings had agreed",
            Self::NoOverlap => "without an overlap of copy and reading",
        }
    }
}

/// How many stacks were not completed, by the reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct IncompleteCounts([u64; Incomplete::ALL.len()]);

impl IncompleteCounts {
    pub(super) fn add(&mut self, why: Incomplete) {
        if let Some(count) = self.0.get_mut(why as usize) {
            *count += 1;
        }
    }

    /// The reasons that occurred, the most frequent first.
    pub(super) fn by_count(&self) -> Vec<(&'static str, u64)> {
        let all = Incomplete::ALL.into_iter().map(Incomplete::text).zip(self.0);
        let mut counts: Vec<_> = all.filter(|(_, count)| *count > 0).collect();
        counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_counted_and_reported_by_number() {
        let mut counts = IncompleteCounts::default();
        for why in [Incomplete::Misfit, Incomplete::NoOverlap, Incomplete::NoOverlap, Incomplete::Distrusted]
        {
            counts.add(why);
        }
        let expected = [(Incomplete::NoOverlap, 2), (Incomplete::Distrusted, 1), (Incomplete::Misfit, 1)]
            .map(|(why, count)| (why.text(), count));
        assert_eq!(counts.by_count(), expected);
    }

    #[test]
    fn each_reason_has_its_own_place() {
        for (place, why) in Incomplete::ALL.into_iter().enumerate() {
            assert_eq!(why as usize, place, "{why:?}");
        }
    }
}
