//! What a trace states of images: their mappings, and the identities that come in other events.

use super::paths::Volumes;
use crate::event::{MappedFile, Mapping, Pid, ProvidedImage};
use nyquist_etw::PointerSize;
use nyquist_etw::kernel::{Image, ImageId, PdbId};
use nyquist_object::{Avma, DebugId, FileOffset, PeCodeId};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// The most identities that are kept.
const MAX_IDENTITIES: usize = 1 << 20;

/// What a trace states of images.
#[derive(Clone, Debug, Default)]
pub(super) struct Images {
    pub(super) volumes: Volumes,
    /// The times in headers, by process and first address.
    timestamps: FxHashMap<(u32, u64), u32>,
    pdbs: FxHashMap<(u32, u64), (DebugId, String)>,
}

impl Images {
    pub(super) fn add_id(&mut self, id: &ImageId) {
        if self.timestamps.len() < MAX_IDENTITIES && id.timestamp != 0 {
            self.timestamps.insert((id.pid, id.base), id.timestamp);
        }
    }

    pub(super) fn add_pdb(&mut self, id: &PdbId) {
        if self.pdbs.len() < MAX_IDENTITIES {
            let name = id.path.rsplit(['\\', '/']).next().unwrap_or_default().to_owned();
            let debug = DebugId::from_guid(id.guid.to_bytes(), id.age);
            self.pdbs.insert((id.pid, id.base), (debug, name));
        }
    }

    /// The path of an image, as users see it.
    pub(super) fn display_path(&self, image: &Image) -> String {
        self.volumes.display_path(&image.path)
    }

    /// The mapping of an image.
    pub(super) fn mapping(&self, image: &Image, pointer_size: PointerSize) -> Mapping {
        let in_kernel = is_kernel(image.base, pointer_size);
        let pid = Some(Pid(image.pid)).filter(|_| !in_kernel);
        Mapping {
            pid,
            start: Avma(image.base),
            len: image.size.min(u64::MAX - image.base),
            offset: FileOffset(0),
            path: self.display_path(image),
            identity: MappedFile::Provided(Arc::new(self.provided(image))),
        }
    }

    fn provided(&self, image: &Image) -> ProvidedImage {
        // Some writers state the kernel's images for process 0, others for the process that runs them.
        let places = [(image.pid, image.base), (0, image.base)];
        let timestamp = places.iter().find_map(|place| self.timestamps.get(place)).copied();
        let timestamp = timestamp.unwrap_or(image.timestamp);
        let size = u32::try_from(image.size).ok();
        let code = size.filter(|_| timestamp != 0).map(|size_of_image| PeCodeId { timestamp, size_of_image });
        let pdb = places.iter().find_map(|place| self.pdbs.get(place)).cloned();
        let (debug, pdb) = pdb.map_or((None, String::new()), |(debug, name)| (Some(debug), name));
        ProvidedImage { code, debug, pdb }
    }
}

/// Whether an address is in the kernel's half of the address space.
pub(super) fn is_kernel(address: u64, pointer_size: PointerSize) -> bool {
    match pointer_size {
        PointerSize::Four => address >= 0x8000_0000,
        PointerSize::Eight => address >> 63 != 0,
    }
}
