//! The symbols that samply saves in a file beside a profile (`samply record --unstable-presymbolicate`).

use crate::args::SymbolArgs;
use crate::failure::io_reason;
use crate::memory;
use crate::number::counted;
use crate::printer::Printer;
use nyquist_formats::samply_sidecar::{self, MEMORY_A_BYTE, SidecarLib, SidecarSymbol};
use nyquist_object::{DebugId, RelativeAddress};
use nyquist_symbols::{AddressInfo, Origin, SourceFrame, StatedAnswers, Symbol};
use nyquist_system::open_regular_unlinked;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The symbols in the file beside a profile, if there is one. If it cannot be used, a message is printed.
pub(crate) fn symbols_of(profile: &Path, args: &SymbolArgs, printer: Printer) -> Option<StatedAnswers> {
    let path = place(profile)?;
    match read(&path, memory::side_files(args.max_memory).most()) {
        Ok(libs) => {
            let libs_named = counted(libs.len() as u64, "lib");
            printer.detail(format_args!("{}: names for {libs_named}", path.display()));
            Some(stated_answers(path, libs))
        }
        Err(None) => None,
        Err(Some(reason)) => {
            printer.warn(format_args!("the names in {} are not used: {reason}", path.display()));
            None
        }
    }
}

/// The path that samply uses: `p.json.syms.json` beside `p.json.gz`, `p.syms.json` beside `p.json`.
fn place(profile: &Path) -> Option<PathBuf> {
    (profile != Path::new("-") && profile.file_name().is_some()).then(|| profile.with_extension("syms.json"))
}

/// The contents of the file. The error is the reason why it is not used, or `None` if there is no file.
fn read(path: &Path, memory: u64) -> Result<Vec<SidecarLib>, Option<String>> {
    let reason = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => None,
        io::ErrorKind::InvalidInput => Some("it is not a regular file".to_owned()),
        _ => Some(io_reason(&error)),
    };
    // Links are not followed, because in a folder that others may write to they could lead anywhere.
    let file = open_regular_unlinked(path).map_err(reason)?;
    let most = memory / MEMORY_A_BYTE;
    let mut bytes = Vec::new();
    file.take(most.saturating_add(1)).read_to_end(&mut bytes).map_err(reason)?;
    if bytes.len() as u64 > most {
        return Err(Some(format!("it is larger than {} MiB; --max-memory allows more", most >> 20)));
    }
    samply_sidecar::read(&bytes).map_err(|error| {
        let cause = std::error::Error::source(&error).map(|cause| format!(" ({cause})"));
        Some(format!("{error}{}", cause.unwrap_or_default()))
    })
}

fn stated_answers(path: PathBuf, libs: Vec<SidecarLib>) -> StatedAnswers {
    let mut stated = StatedAnswers::of_file(path);
    for SidecarLib { debug_name, breakpad_id, symbols, addresses } in libs {
        let Some(debug_id) = DebugId::from_breakpad(&breakpad_id) else { continue };
        let infos: Vec<_> = symbols.into_iter().map(|symbol| Arc::new(info(symbol))).collect();
        let answer =
            |(address, symbol): (u32, usize)| Some((RelativeAddress(address), infos.get(symbol)?.clone()));
        stated.add(&debug_name, debug_id, addresses.into_iter().filter_map(answer));
    }
    stated
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
    AddressInfo { symbol, frames, origin: Origin::Stated }
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

    /// Asserts that a file is refused for a reason.
    fn refused(path: &Path, memory: u64, expected: &str) {
        let reason = read(path, memory).unwrap_err().unwrap_or_default();
        assert!(reason.contains(expected), "{reason}");
    }

    #[test]
    fn only_a_small_regular_file_of_samply_is_read() {
        let folder = std::env::temp_dir().join(format!("nyquist-sidecar-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("p.syms.json");
        let good = r#"{"string_table":[],"data":[]}"#;
        fs::write(&path, good).unwrap();
        let size = good.len() as u64 * MEMORY_A_BYTE;
        assert_eq!(read(&path, size), Ok(Vec::new()));
        refused(&path, size - MEMORY_A_BYTE, "larger than 0 MiB");
        refused(&folder, size, "not a regular file");
        fs::write(&path, "{}").unwrap();
        refused(&path, size, "it is not a symbol file of samply (missing field");
        assert_eq!(read(&folder.join("none"), size), Err(None));
        fs::remove_dir_all(&folder).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn links_and_devices_are_refused() {
        let folder = std::env::temp_dir().join(format!("nyquist-sidecar-link-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (path, link) = (folder.join("p.syms.json"), folder.join("link"));
        fs::write(&path, r#"{"string_table":[],"data":[]}"#).unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        refused(&link, 1 << 30, "not a regular file");
        refused(Path::new("/dev/zero"), 1 << 30, "not a regular file");
        fs::remove_dir_all(&folder).unwrap();
    }
}
