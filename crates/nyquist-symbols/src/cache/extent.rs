//! The addresses for which a cached answer is valid.

use nyquist_object::RelativeAddress;

/// An address, and the addresses after it that have the same answer. Without debug info these are all
/// addresses of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) start: RelativeAddress,
    /// The number of addresses.
    pub(crate) len: u32,
}

impl Extent {
    /// A single address.
    pub(crate) fn of(address: RelativeAddress) -> Self {
        Self { start: address, len: 1 }
    }

    pub(crate) fn contains(self, address: RelativeAddress) -> bool {
        address.0.checked_sub(self.start.0).is_some_and(|offset| offset < self.len)
    }

    /// Whether all addresses of another one are in it.
    pub(crate) fn covers(self, other: Self) -> bool {
        let offset = other.start.0.checked_sub(self.start.0);
        offset.and_then(|offset| offset.checked_add(other.len)).is_some_and(|end| end <= self.len)
    }
}

/// Appends an answer to others that start no later, unless the last of them is valid for all of its
/// addresses.
pub(crate) fn push_unless_covered<T>(cached: &mut Vec<(Extent, T)>, extent: Extent, answer: T) {
    if !cached.last().is_some_and(|(last, _)| last.covers(extent)) {
        cached.push((extent, answer));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_at_both_ends_of_all_that_there_are() {
        let extent = |start, len| Extent { start: RelativeAddress(start), len };
        let last = Extent::of(RelativeAddress(u32::MAX));
        assert!(last.contains(RelativeAddress(u32::MAX)) && !last.contains(RelativeAddress(0)));
        let all = extent(0, u32::MAX);
        assert!(all.contains(RelativeAddress(0)) && !all.contains(RelativeAddress(u32::MAX)));
        assert!(all.covers(extent(5, 10)) && !all.covers(last) && !extent(5, 10).covers(all));
        assert!(extent(5, 10).covers(extent(14, 1)) && !extent(5, 10).covers(extent(14, 2)));
        assert!(!extent(5, 10).covers(extent(6, u32::MAX)));
    }
}
