//! An address space for formats with absolute addresses, because a profile only has addresses relative to
//! libs.

use nyquist_profile::{Frame, LibId, Profile};

/// The alignment of libs, which have a gap between them.
const ALIGNMENT: u64 = 1 << 20;

/// The place of each lib.
pub(crate) struct AddressLayout {
    ranges: Vec<LibRange>,
}

/// The range of a lib: from its image base to the end of its last known address in the profile.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LibRange {
    pub start: u64,
    pub end: u64,
}

impl AddressLayout {
    /// Places the libs one after the other. O(frames + libs).
    pub(crate) fn new(profile: &Profile) -> Self {
        let mut sizes = vec![0_u64; profile.libs().len()];
        for frame in profile.frames() {
            if let (Some(lib), Some(address)) = (profile.func(frame.func).lib, frame.address) {
                sizes[lib.index()] = sizes[lib.index()].max(u64::from(address) + 1);
            }
        }
        let mut start = 4 * ALIGNMENT;
        let place = |size: u64| {
            let range = LibRange { start, end: start + size.max(1).next_multiple_of(4096) };
            start = (range.end + ALIGNMENT).next_multiple_of(ALIGNMENT);
            range
        };
        Self { ranges: sizes.into_iter().map(place).collect() }
    }

    pub(crate) fn range(&self, lib: LibId) -> LibRange {
        self.ranges.get(lib.index()).copied().unwrap_or_default()
    }

    /// The absolute address of a frame that has a relative one.
    pub(crate) fn address(&self, profile: &Profile, frame: &Frame) -> Option<u64> {
        let lib = profile.func(frame.func).lib?;
        Some(self.range(lib).start + u64::from(frame.address?))
    }
}
