//! The files of the page. They are compressed when they are first asked for.

use std::io::Write as _;
use std::sync::OnceLock;

use flate2::Compression;
use flate2::write::GzEncoder;
use nyquist_server::Asset;

/// The files below `assets/`, by name.
const FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// The files below `offline/`, by name.
const OFFLINE_FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/offline.rs"));

/// The page itself.
const PAGE: &str = "index.html";

/// What stands in the page for the address that opens the profile in the Firefox Profiler.
const FRONT_END: &str = "{{FIREFOX_URL}}";

/// The files that were asked for, as they are sent.
static PREPARED: OnceLock<Vec<OnceLock<Asset>>> = OnceLock::new();

/// The file at a path below the token: the page at the empty path, the others below `assets/`.
pub(crate) fn find(path: &str, front_end: &str) -> Option<Asset> {
    if path.is_empty() {
        let page = contents(PAGE)?;
        let page = String::from_utf8_lossy(page).replacen(FRONT_END, &escaped(front_end), 1);
        return Some(asset(PAGE, page.as_bytes()));
    }
    let name = path.strip_prefix("assets/").filter(|name| *name != PAGE)?;
    let position = FILES.iter().position(|(file, _)| *file == name)?;
    let prepared = PREPARED.get_or_init(|| FILES.iter().map(|_| OnceLock::new()).collect());
    Some(prepared.get(position)?.get_or_init(|| asset(name, FILES[position].1)).clone())
}

/// The text of a module, by its path in this crate: those of the page are in `assets/`, those that only its file has in `offline/`.
pub(crate) fn script(path: &str) -> Option<&'static str> {
    if let Some(name) = path.strip_prefix("assets/") {
        return text(name);
    }
    let name = path.strip_prefix("offline/")?;
    let (_, bytes) = OFFLINE_FILES.iter().find(|(file, _)| *file == name)?;
    std::str::from_utf8(bytes).ok()
}

fn text(name: &str) -> Option<&'static str> {
    contents(name).and_then(|bytes| std::str::from_utf8(bytes).ok())
}

/// All style sheets, in the order in which the page names them.
pub(crate) fn styles() -> String {
    let page = text(PAGE).unwrap_or_default();
    let named = page.split("href=\"assets/").skip(1).filter_map(|rest| rest.split('"').next());
    named.filter(|name| name.strip_suffix(".css").is_some()).filter_map(text).collect()
}

fn contents(name: &str) -> Option<&'static [u8]> {
    FILES.iter().find(|(file, _)| *file == name).map(|(_, bytes)| *bytes)
}

fn asset(name: &str, bytes: &[u8]) -> Asset {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    Asset {
        content_type: content_type(name),
        etag: format!("\"{:08x}-{:x}\"", crc.sum(), bytes.len()),
        plain: bytes.to_vec().into(),
        gzip: compressed(bytes).into(),
    }
}

fn compressed(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    // Writing to memory does not fail.
    let _ = encoder.write_all(bytes);
    encoder.finish().unwrap_or_default()
}

fn content_type(name: &str) -> &'static str {
    match name.rsplit_once('.').map(|(_, extension)| extension) {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "application/octet-stream",
    }
}

/// A text as the value of an attribute.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the page may take over the network, in bytes.
    const PAGE_WEIGHT: usize = 200_000;

    #[test]
    fn the_page_has_the_front_end_and_no_own_script() {
        let page = find("", "https://a.example/\"><script>alert(1)</script>").unwrap();
        let text = String::from_utf8(page.plain.to_vec()).unwrap();
        assert!(text.contains("https://a.example/&quot;&gt;&lt;script&gt;"));
        assert!(!text.contains(FRONT_END));
        for script in text.split("<script").skip(1) {
            assert!(script.contains("src=") && script.contains("></script>"), "{script}");
        }
        assert!(!text.contains("<style") && !text.contains(" style=") && !text.contains(" onclick="));
    }

    #[test]
    fn only_what_is_there_is_served() {
        assert!(find("assets/main.js", "").is_some());
        for wrong in ["main.js", "assets/", "assets/../main.js", "assets/index.html", "assets/nothing.js"] {
            assert!(find(wrong, "").is_none(), "{wrong}");
        }
    }

    #[test]
    fn every_file_has_a_type_and_all_are_light() {
        let mut sum = 0;
        for (name, bytes) in FILES {
            assert_ne!(content_type(name), "application/octet-stream", "{name}");
            sum += asset(name, bytes).gzip.len();
        }
        assert!(sum < PAGE_WEIGHT, "the page takes {sum} bytes");
    }
}
