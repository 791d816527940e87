//! `_NT_SYMBOL_PATH`: the places where Windows debuggers search for symbols
//! (<https://learn.microsoft.com/windows-hardware/drivers/debugger/symbol-path>, "Symbol path for Windows
//! debuggers").

use std::path::PathBuf;

/// The default server, for a path that requests a symbol server without naming one.
const MICROSOFT: &str = "https://msdl.microsoft.com/download/symbols";

/// One element of a symbol path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathElement {
    /// `FOLDER`: a folder with symbol files, or laid out as a store.
    Folder(PathBuf),
    /// `cache*FOLDER`: files from later elements are kept there. Without a folder, in the default one.
    Cache(Option<PathBuf>),
    /// `srv*STORE*STORE*...`: stores, each of which is filled from the later ones.
    Server {
        /// The folders, the nearest first. An empty part stands for the default one.
        caches: Vec<Option<PathBuf>>,
        /// The server, if the last store is one; otherwise it is a folder like the others.
        url: Option<String>,
    },
}

/// Parses a symbol path. Empty elements are left out, and so are those for another kind of symbol server.
pub fn parse_symbol_path(text: &str) -> Vec<PathElement> {
    text.split(';').map(str::trim).filter(|element| !element.is_empty()).filter_map(element).collect()
}

fn element(text: &str) -> Option<PathElement> {
    let mut parts = text.split('*');
    let first = parts.next()?;
    let rest: Vec<&str> = parts.collect();
    match first.to_ascii_lowercase().as_str() {
        "srv" => Some(server(&rest)),
        // The second part names the program that communicates with the server.
        "symsrv" => rest.split_first().map(|(_, rest)| server(rest)),
        "cache" => Some(PathElement::Cache(rest.first().and_then(|folder| folder_of(folder)))),
        _ if is_url(first) && rest.is_empty() => {
            Some(PathElement::Server { caches: Vec::new(), url: Some(url_of(first)) })
        }
        _ if rest.is_empty() => Some(PathElement::Folder(PathBuf::from(first))),
        _ => None,
    }
}

fn server(parts: &[&str]) -> PathElement {
    let url = parts.iter().find(|part| is_url(part)).map(|url| url_of(url));
    let folders = parts.iter().take_while(|part| !is_url(part));
    let caches: Vec<_> = folders.map(|folder| folder_of(folder)).collect();
    let names_nothing = caches.iter().all(Option::is_none) && url.is_none();
    PathElement::Server { caches, url: url.or_else(|| names_nothing.then(|| MICROSOFT.to_owned())) }
}

fn folder_of(text: &str) -> Option<PathBuf> {
    (!text.is_empty()).then(|| PathBuf::from(text))
}

fn is_url(text: &str) -> bool {
    text.starts_with("http://") || text.starts_with("https://")
}

fn url_of(text: &str) -> String {
    text.trim_end_matches('/').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[PathElement]) {
        assert_eq!(parse_symbol_path(text), expected, "{text}");
    }

    fn server(caches: &[&str], url: Option<&str>) -> PathElement {
        let caches = caches.iter().map(|folder| folder_of(folder)).collect();
        PathElement::Server { caches, url: url.map(str::to_owned) }
    }

    #[test]
    fn folders_caches_and_servers() {
        check("", &[]);
        check(" ; ;", &[]);
        check("/a;/b c", &[PathElement::Folder("/a".into()), PathElement::Folder("/b c".into())]);
        check("cache*/c", &[PathElement::Cache(Some("/c".into()))]);
        check("CACHE*", &[PathElement::Cache(None)]);
        check("srv*/c*https://s.example/", &[server(&["/c"], Some("https://s.example"))]);
        check("SRV*/c*/d*https://s.example", &[server(&["/c", "/d"], Some("https://s.example"))]);
        check("srv**https://s.example", &[server(&[""], Some("https://s.example"))]);
        check("srv*/store", &[server(&["/store"], None)]);
        check("symsrv*symsrv.dll*/c*http://s", &[server(&["/c"], Some("http://s"))]);
        check("https://s.example/x", &[server(&[], Some("https://s.example/x"))]);
        check("other*thing", &[]);
    }

    #[test]
    fn a_server_without_a_name_is_microsofts() {
        check("srv*", &[server(&[""], Some(MICROSOFT))]);
        check("srv", &[server(&[], Some(MICROSOFT))]);
    }
}
