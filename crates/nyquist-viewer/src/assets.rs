//! The files of the page's address: the page, its script and its style sheet. They are compressed on first
//! request.

use std::io::Write as _;
use std::sync::OnceLock;

use flate2::Compression;
use flate2::write::GzEncoder;
use nyquist_server::Asset;

use crate::bundle;
use crate::files;

/// The page itself.
const PAGE: &str = "index.html";

/// Builds a file of the page.
type Make = fn() -> Vec<u8>;

/// The files that the page refers to.
const NAMED: [(&str, Make); 3] = [
    ("page.js", || bundle::script(bundle::SERVED).into_bytes()),
    ("page.css", || files::styles().into_bytes()),
    ("icon.svg", || files::contents("icon.svg").unwrap_or_default().to_vec()),
];

/// The placeholder in the page for the address that opens the profile in the Firefox Profiler.
const FRONT_END: &str = "{{FIREFOX_URL}}";

/// The files in the form in which they are sent.
static PREPARED: [OnceLock<Asset>; NAMED.len()] = [const { OnceLock::new() }; NAMED.len()];

/// The file at a path below the token: the page at the empty path, the others below `assets/`.
pub(crate) fn find(path: &str, front_end: &str) -> Option<Asset> {
    if path.is_empty() {
        let page = files::contents(PAGE)?;
        let page = String::from_utf8_lossy(page).replacen(FRONT_END, &escaped(front_end), 1);
        return Some(asset(PAGE, page.as_bytes()));
    }
    let name = path.strip_prefix("assets/")?;
    let position = NAMED.iter().position(|(file, _)| *file == name)?;
    let (name, made) = NAMED[position];
    Some(PREPARED[position].get_or_init(|| asset(name, &made())).clone())
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

    /// The limit of the page's size over the network, in bytes.
    const PAGE_WEIGHT: usize = 80_000;

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
        for wrong in ["page.js", "assets/", "assets/../page.js", "assets/index.html", "assets/nothing.js"] {
            assert!(find(wrong, "").is_none(), "{wrong}");
        }
    }

    #[test]
    fn what_the_page_names_is_there_and_light() {
        let page = find("", "").unwrap();
        let mut sum = page.gzip.len();
        let text = String::from_utf8(page.plain.to_vec()).unwrap();
        let named: Vec<_> = text.split('"').filter(|value| value.starts_with("assets/")).collect();
        assert_eq!(named.len(), NAMED.len(), "{named:?}");
        for path in named {
            let asset = find(path, "").unwrap();
            assert_ne!(asset.content_type, "application/octet-stream", "{path}");
            sum += asset.gzip.len();
        }
        assert!(sum < PAGE_WEIGHT, "the page takes {sum} bytes");
    }
}
