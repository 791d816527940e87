//! The symbols that samply saves in a file beside a profile (`samply record --unstable-presymbolicate`).

use crate::note::{Note, SamplySymbolsError};
use crate::observer::ReadObserver;
use nyquist_formats::samply_sidecar::{self, MEMORY_A_BYTE, SidecarLib, SidecarSymbol};
use nyquist_object::{DebugId, RelativeAddress};
use nyquist_symbols::{AddressInfo, Origin, ProvidedAnswers, SourceFrame, Symbol};
use nyquist_system::open_regular_unlinked;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The symbols in the file beside a profile, if there is one. Reading it takes at most `memory` bytes. The observer
/// is notified whether it is used.
pub fn samply_symbols(profile: &Path, memory: u64, observer: &dyn ReadObserver) -> Option<ProvidedAnswers> {
    let path = place(profile)?;
    match read(&path, memory) {
        Ok(libs) => {
            observer.note(Note::SamplySymbols { path: path.clone(), libs: libs.len() });
            Some(provided_answers(path, libs))
        }
        Err(None) => None,
        Err(Some(reason)) => {
            observer.note(Note::SamplySymbolsRefused { path, reason });
            None
        }
    }
}

/// The path that samply uses: `p.json.syms.json` beside `p.json.gz`, `p.syms.json` beside `p.json`.
fn place(profile: &Path) -> Option<PathBuf> {
    (profile != Path::new("-") && profile.file_name().is_some()).then(|| profile.with_extension("syms.json"))
}

/// The contents of the file. The error is the reason why it is not used, or `None` if there is no file.
fn read(path: &Path, memory: u64) -> Result<Vec<SidecarLib>, Option<SamplySymbolsError>> {
    let reason = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => None,
        io::ErrorKind::InvalidInput => Some(SamplySymbolsError::NotRegular),
        _ => Some(SamplySymbolsError::Unreadable(error)),
    };
    // Links are not followed, because in a folder that others may write to they could lead anywhere.
    let file = open_regular_unlinked(path).map_err(reason)?;
    let most = memory / MEMORY_A_BYTE;
    let mut bytes = Vec::new();
    file.take(most.saturating_add(1)).read_to_end(&mut bytes).map_err(reason)?;
    if bytes.len() as u64 > most {
        return Err(Some(SamplySymbolsError::TooLarge { most }));
    }
    samply_sidecar::read(&bytes).map_err(|error| Some(SamplySymbolsError::Malformed(error)))
}

fn provided_answers(path: PathBuf, libs: Vec<SidecarLib>) -> ProvidedAnswers {
    let mut provided = ProvidedAnswers::of_file(path);
    for SidecarLib { debug_name, breakpad_id, symbols, addresses } in libs {
        let Some(debug_id) = DebugId::from_breakpad(&breakpad_id) else { continue };
        let infos: Vec<_> = symbols.into_iter().map(|symbol| Arc::new(info(symbol))).collect();
        let answer =
            |(address, symbol): (u32, usize)| Some((RelativeAddress(address), infos.get(symbol)?.clone()));
        provided.add(&debug_name, debug_id, addresses.into_iter().filter_map(answer));
    }
    provided
}

fn info(symbol: SidecarSymbol) -> AddressInfo {
    let SidecarSymbol { address, size, name, frames } = symbol;
    let frames = frames.into_iter();
    let frame = |frame: samply_sidecar::SidecarFrame| SourceFrame {
        function: frame.function,
        file: frame.file,
        line: frame.line,
        ..SourceFrame::default()
    };
    let mut frames: Vec<_> = frames.map(frame).collect();
    if frames.is_empty() {
        frames.push(SourceFrame::default());
    }
    if let Some(outermost) = frames.last_mut() {
        outermost.function.get_or_insert_with(|| name.clone());
    }
    let symbol = Some(Symbol { name, address: RelativeAddress(address), size });
    AddressInfo { symbol, frames, origin: Origin::Provided }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_file_is_where_samply_puts_it() {
        let check = |profile: &str, expected: Option<&str>| {
            assert_eq!(place(Path::new(profile)).as_deref(), expected.map(Path::new), "{profile}");
        };
        check("p.json.gz", Some("p.json.syms.json"));
        check("/a.b/p.json", Some("/a.b/p.syms.json"));
        check("-", None);
        check("/", None);
    }

    /// A folder for a test, and a file in it that may be used.
    fn folder_with_file(name: &str) -> (PathBuf, PathBuf) {
        let folder = std::env::temp_dir().join(format!("nyquist-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("p.syms.json");
        fs::write(&path, r#"{"string_table":[],"data":[]}"#).unwrap();
        (folder, path)
    }

    #[test]
    fn only_a_small_regular_file_of_samply_is_read() {
        let (folder, path) = folder_with_file("sidecar");
        let size = fs::metadata(&path).unwrap().len() * MEMORY_A_BYTE;
        assert!(matches!(read(&path, size), Ok(libs) if libs.is_empty()));
        let denied = |path: &Path, memory| read(path, memory).unwrap_err();
        let too_large = denied(&path, size - MEMORY_A_BYTE);
        assert!(matches!(too_large, Some(SamplySymbolsError::TooLarge { .. })), "{too_large:?}");
        assert!(matches!(denied(&folder, size), Some(SamplySymbolsError::NotRegular)));
        fs::write(&path, "{}").unwrap();
        assert!(matches!(denied(&path, size), Some(SamplySymbolsError::Malformed(_))));
        assert!(denied(&folder.join("none"), size).is_none());
        fs::remove_dir_all(&folder).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn links_and_devices_are_refused() {
        let (folder, path) = folder_with_file("sidecar-link");
        let link = folder.join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        for path in [&link, Path::new("/dev/zero")] {
            assert!(matches!(read(path, 1 << 30), Err(Some(SamplySymbolsError::NotRegular))), "{path:?}");
        }
        fs::remove_dir_all(&folder).unwrap();
    }
}
