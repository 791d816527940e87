//! The files of the page, as in this crate.

/// The files below `assets/`, by name.
const FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// The files below `offline/`, by name.
const OFFLINE_FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/offline.rs"));

/// The files below `third_party/`, by name.
const THIRD_PARTY_FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/third_party.rs"));

/// A file below `assets/`.
pub(crate) fn contents(name: &str) -> Option<&'static [u8]> {
    find(FILES, name)
}

fn find(files: &'static [(&str, &[u8])], name: &str) -> Option<&'static [u8]> {
    files.iter().find(|(file, _)| *file == name).map(|(_, bytes)| *bytes)
}

/// The text of a module, by its path in this crate: `assets/` for the page, `offline/` for modules of the
/// page in a file, `third_party/` for code of others.
pub(crate) fn module(path: &str) -> Option<&'static str> {
    let (folder, name) = path.split_once('/')?;
    let files = match folder {
        "assets" => FILES,
        "offline" => OFFLINE_FILES,
        "third_party" => THIRD_PARTY_FILES,
        _ => return None,
    };
    std::str::from_utf8(find(files, name)?).ok()
}

/// All style sheets as one: the page's, the widgets', and the panels', of which later ones take precedence.
pub(crate) fn styles() -> String {
    let mut sheets: Vec<_> = FILES
        .iter()
        .filter(|(name, _)| name.rsplit_once('.').is_some_and(|(_, kind)| kind == "css"))
        .collect();
    sheets.sort_by_key(|(name, _)| (name.matches('/').count(), *name));
    sheets.iter().filter_map(|(_, bytes)| std::str::from_utf8(bytes).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_shortened_as_in_pictures() {
        let script = std::str::from_utf8(contents("fit.js").unwrap()).unwrap();
        assert_eq!(script.replace("\nexport ", "\n"), nyquist_formats::fit::FIT_SCRIPT);
    }

    #[test]
    fn sheets_of_panels_follow_that_of_the_page() {
        let styles = styles();
        let at = |name: &str| {
            let text = std::str::from_utf8(contents(name).unwrap()).unwrap();
            styles.find(text).unwrap_or_else(|| panic!("{name} is missing"))
        };
        assert!(at("style.css") < at("widgets/widgets.css"));
        assert!(at("widgets/widgets.css") < at("panels/flame_graph/flame_graph.css"));
    }
}
