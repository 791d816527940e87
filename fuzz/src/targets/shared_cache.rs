//! The dyld shared cache, its files changed at arbitrary places: every library in it, taken out and looked at.

use nyquist_test_support::shared_cache_image::{SUFFIXES, build};
use nyquist_object::macho::shared_cache::SharedCache;
use nyquist_object::{ByteSource, MachO};

/// The most libraries that are taken out: a changed list may name as many as it likes.
const MAX_LIBRARIES: usize = 8;

/// Takes one input.
pub fn run(bytes: &[u8]) {
    let mut files = build();
    for change in bytes.as_chunks::<5>().0.iter().take(64) {
        let &[file, low, high, byte, len] = change;
        let file = &mut files[usize::from(file) % SUFFIXES.len()];
        let at = usize::from(u16::from_le_bytes([low, high])) % file.len();
        for place in file.iter_mut().skip(at).take(usize::from(len % 9)) {
            *place ^= byte;
        }
        if len == 0xff {
            file.truncate(at.max(1));
        }
    }
    let other =
        |suffix: &str| SUFFIXES.iter().position(|known| *known == suffix).map(|number| files[number].clone());
    let Ok(cache) = SharedCache::open(files[0].clone(), other) else { return };
    for image in cache.images().iter().take(MAX_LIBRARIES) {
        let Ok(extracted) = cache.extract(image) else { continue };
        assert!(extracted.read_range(extracted.len(), 1).is_err(), "nothing is behind the end");
        let Ok(file) = MachO::open(extracted) else { continue };
        let _ = (file.symbols(), file.function_starts(), file.exports(), file.stubs(), file.text_hash());
    }
}
