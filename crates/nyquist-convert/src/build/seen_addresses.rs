//! Sends the addresses of a conversion to the threads that look them up meanwhile.

use crate::modules::lib_source::LibSource;
use nyquist_object::RelativeAddress;
use nyquist_profile::{LibId, Profile};
use std::sync::mpsc::{self, Receiver, Sender};

/// The minimum number of addresses that are sent, and looked up, at once.
pub(crate) const AT_ONCE: usize = 2048;

/// Sends addresses that occur for the first time from the converter to a
/// [`Symbolicator`](crate::Symbolicator).
#[derive(Debug)]
pub struct AddressSender {
    to: Sender<SeenAddresses>,
    /// How many frames and libs of the profile have been sent.
    frames: usize,
    libs: usize,
}

/// The other end of a [`AddressSender`].
#[derive(Debug)]
pub struct AddressReceiver(pub(crate) Receiver<SeenAddresses>);

/// The contents of a message.
#[derive(Debug)]
pub(crate) struct SeenAddresses {
    pub(crate) libs: Vec<(LibId, LibSource)>,
    pub(crate) addresses: Vec<(LibId, RelativeAddress)>,
}

impl AddressSender {
    /// A sender, and its receiver.
    pub fn new() -> (Self, AddressReceiver) {
        let (to, seen) = mpsc::channel();
        (Self { to, frames: 0, libs: 0 }, AddressReceiver(seen))
    }

    /// Sends the frames of a profile that were added since the last time, if they are many. `source` returns
    /// where a lib's symbols come from, if that is known to be a file.
    pub(crate) fn send(&mut self, profile: &Profile, source: impl Fn(LibId) -> Option<LibSource>) {
        if profile.frames().len() < self.frames + AT_ONCE {
            return;
        }
        let new_libs = (self.libs..profile.libs().len()).map(LibId::from_index);
        let libs = new_libs.filter_map(|lib| Some((lib, source(lib)?))).collect();
        let new_frames = &profile.frames()[self.frames..];
        let address = |frame: &nyquist_profile::Frame| {
            Some((profile.func(frame.func).lib?, RelativeAddress(frame.address?)))
        };
        let addresses = new_frames.iter().filter_map(address).collect();
        (self.frames, self.libs) = (profile.frames().len(), profile.libs().len());
        // If the receiver is gone, it looks all addresses up by itself.
        let _ = self.to.send(SeenAddresses { libs, addresses });
    }
}
