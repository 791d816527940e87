//! The answers to the addresses of libs, and the answer of each frame of a profile.

use nyquist_object::RelativeAddress;
use nyquist_profile::{LibId, Profile};
use nyquist_symbols::{AddressInfo, EarlyAnswer};
use std::sync::Arc;

/// The frames of each lib that have an address, in the order of their addresses.
#[derive(Debug, Default)]
pub(super) struct FramesByAddress {
    /// By the lib's number. Each entry has a frame's address in the upper half, and the frame's number in the
    /// lower half, because integers are sorted faster than pairs.
    libs: Vec<Vec<u64>>,
}

impl FramesByAddress {
    pub(super) fn of(profile: &Profile) -> Self {
        let mut libs = vec![Vec::new(); profile.libs().len()];
        for (number, frame) in (0_u64..).zip(profile.frames()) {
            if let (Some(address), Some(lib)) = (frame.address, profile.func(frame.func).lib) {
                libs[lib.index()].push(u64::from(address) << 32 | number);
            }
        }
        for frames in &mut libs {
            frames.sort_unstable();
        }
        Self { libs }
    }

    /// The addresses and frames of a lib.
    pub(super) fn of_lib(&self, lib: LibId) -> impl Iterator<Item = (RelativeAddress, usize)> {
        let frames = self.libs.get(lib.index()).map_or(&[][..], Vec::as_slice);
        frames.iter().map(|frame| (RelativeAddress((frame >> 32) as u32), *frame as u32 as usize))
    }
}

/// The addresses of each lib that need a look-up.
#[derive(Debug, Default)]
pub(super) struct UnknownAddresses {
    /// By the lib's number. Each address once, ascending.
    libs: Vec<Vec<RelativeAddress>>,
}

impl UnknownAddresses {
    /// The number of addresses of a lib.
    pub(super) fn count(&self, lib: LibId) -> usize {
        self.libs.get(lib.index()).map_or(0, Vec::len)
    }

    /// Whether a lib has any addresses.
    pub(super) fn has(&self, lib: LibId) -> bool {
        self.count(lib) > 0
    }

    /// Removes and returns the addresses of a lib.
    pub(super) fn take(&mut self, lib: LibId) -> Vec<RelativeAddress> {
        self.libs.get_mut(lib.index()).map(std::mem::take).unwrap_or_default()
    }
}

/// The answers so far.
#[derive(Debug, Default)]
pub(super) struct Answers {
    /// By the lib's number.
    libs: Vec<OfLib>,
    count: usize,
}

/// The answers of one lib: addresses, ascending, and the answer to each.
#[derive(Debug, Default)]
struct OfLib {
    addresses: Vec<RelativeAddress>,
    infos: Vec<Arc<AddressInfo>>,
    /// The addresses whose answers still have to be stored in the cache.
    unkept: Vec<RelativeAddress>,
}

impl Answers {
    /// The answers of a lib, in the order of their addresses.
    pub(super) fn of_lib(&self, lib: LibId) -> &[Arc<AddressInfo>] {
        self.libs.get(lib.index()).map_or(&[], |of_lib| &of_lib.infos)
    }

    /// The addresses of frames without an answer.
    pub(super) fn unknown(&self, frames: &FramesByAddress) -> UnknownAddresses {
        let libs = (0..frames.libs.len()).map(LibId::from_index);
        let of_lib = |lib| self.unknown_of(lib, frames.of_lib(lib).map(|(address, _)| address));
        UnknownAddresses { libs: libs.map(of_lib).collect() }
    }

    /// The addresses of a lib that have no answer yet, each once. The given addresses ascend.
    pub(super) fn unknown_of(
        &self,
        lib: LibId,
        addresses: impl Iterator<Item = RelativeAddress>,
    ) -> Vec<RelativeAddress> {
        let mut known = self.addresses(lib).iter().copied().peekable();
        let mut unknown: Vec<RelativeAddress> = Vec::new();
        for address in addresses {
            while known.next_if(|known| *known < address).is_some() {}
            if known.peek() != Some(&address) && unknown.last() != Some(&address) {
                unknown.push(address);
            }
        }
        unknown
    }

    /// The number of answers.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Adds the answers to addresses that had none, which ascend.
    pub(super) fn add(&mut self, lib: LibId, addresses: Vec<RelativeAddress>, infos: Vec<Arc<AddressInfo>>) {
        self.count += addresses.len();
        let of_lib = self.of_lib_mut(lib);
        if of_lib.addresses.is_empty() {
            (of_lib.addresses, of_lib.infos) = (addresses, infos);
        } else {
            of_lib.merge(addresses.into_iter().zip(infos));
        }
    }

    /// As [`Answers::add`], but only for the addresses that have an answer.
    pub(super) fn add_early(
        &mut self,
        lib: LibId,
        addresses: &[RelativeAddress],
        answers: Vec<Option<EarlyAnswer>>,
    ) {
        let (mut answered, mut infos) = (Vec::new(), Vec::new());
        let of_lib = self.of_lib_mut(lib);
        for (address, answer) in addresses.iter().zip(answers) {
            let Some(EarlyAnswer { info, was_kept }) = answer else { continue };
            of_lib.unkept.extend((!was_kept).then_some(*address));
            answered.push(*address);
            infos.push(info);
        }
        self.add(lib, answered, infos);
    }

    /// The early answers of all libs that still have to be stored in the cache, ascending by address. They
    /// count as stored from here on.
    pub(super) fn take_unkept(&mut self) -> Vec<(LibId, Vec<RelativeAddress>)> {
        let libs = (0..).map(LibId::from_index).zip(&mut self.libs);
        let mut unkept: Vec<_> =
            libs.map(|(lib, of_lib)| (lib, std::mem::take(&mut of_lib.unkept))).collect();
        unkept.retain(|(_, addresses)| !addresses.is_empty());
        for (_, addresses) in &mut unkept {
            addresses.sort_unstable();
        }
        unkept
    }

    /// The answers to some addresses of a lib.
    pub(super) fn to<'a>(
        &'a self,
        lib: LibId,
        addresses: &'a [RelativeAddress],
    ) -> impl Iterator<Item = (RelativeAddress, &'a AddressInfo)> {
        let (known, infos) = (self.addresses(lib), self.of_lib(lib));
        let info = |address| infos.get(known.binary_search(address).ok()?);
        addresses.iter().filter_map(move |address| Some((*address, &**info(address)?)))
    }

    /// The number of each frame's answer among those of its lib. `None` if there is none.
    pub(super) fn numbers(&self, frames: &FramesByAddress, frame_count: usize) -> Vec<Option<u32>> {
        let mut numbers = vec![None; frame_count];
        for lib in (0..frames.libs.len()).map(LibId::from_index) {
            let mut known = (0_u32..).zip(self.addresses(lib)).peekable();
            for (address, frame) in frames.of_lib(lib) {
                while known.next_if(|(_, known)| **known < address).is_some() {}
                numbers[frame] =
                    known.peek().filter(|(_, known)| **known == address).map(|(number, _)| *number);
            }
        }
        numbers
    }

    fn addresses(&self, lib: LibId) -> &[RelativeAddress] {
        self.libs.get(lib.index()).map_or(&[], |of_lib| &of_lib.addresses)
    }

    fn of_lib_mut(&mut self, lib: LibId) -> &mut OfLib {
        if self.libs.len() <= lib.index() {
            self.libs.resize_with(lib.index() + 1, OfLib::default);
        }
        &mut self.libs[lib.index()]
    }
}

impl OfLib {
    fn merge(&mut self, new: impl Iterator<Item = (RelativeAddress, Arc<AddressInfo>)>) {
        let (addresses, infos) = (std::mem::take(&mut self.addresses), std::mem::take(&mut self.infos));
        let mut new = new.peekable();
        for (address, info) in addresses.into_iter().zip(infos) {
            while let Some((before, info)) = new.next_if(|(new, _)| *new < address) {
                self.push(before, info);
            }
            self.push(address, info);
        }
        new.for_each(|(address, info)| self.push(address, info));
    }

    fn push(&mut self, address: RelativeAddress, info: Arc<AddressInfo>) {
        self.addresses.push(address);
        self.infos.push(info);
    }
}
