//! Arbitrary bytes as samply's symbol file beside a profile.

use nyquist_formats::samply_sidecar::read;

/// Takes one input.
pub fn run(bytes: &[u8]) {
    for lib in read(bytes).into_iter().flatten() {
        assert!(lib.addresses.is_sorted_by(|one, next| one.0 < next.0), "each address is there once");
        assert!(lib.addresses.iter().all(|(_, symbol)| *symbol < lib.symbols.len()), "each has a symbol");
        let frames: usize = lib.symbols.iter().map(|symbol| symbol.frames.len()).sum();
        assert!(frames <= bytes.len() / 2, "no more than there are bytes for");
    }
}
