//! The file that samply's `--unstable-presymbolicate` writes beside a profile (`p.json.syms.json` beside
//! `p.json.gz`): the names of the profile's addresses, which are not in the profile itself.
//!
//! Source: `samply/src/shared/symbol_precog.rs` of samply 0.13.

use serde::Deserialize;
use std::sync::Arc;

use crate::error::ReadError;

const FORMAT: &str = "a symbol file of samply";

/// The most functions at one address: the one that was called and the inlined ones.
const MAX_FRAMES: usize = 1024;

/// Reading a file needs at most this many bytes of memory for each byte of the file.
pub const MEMORY_A_BYTE: u64 = 16;

/// The names of the addresses of one lib. All indices are checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SidecarLib {
    /// The lib's `debugName` in the profile.
    pub debug_name: String,
    /// The lib's `breakpadId` in the profile.
    pub breakpad_id: String,
    /// The symbols, which addresses can share.
    pub symbols: Vec<SidecarSymbol>,
    /// Look-up addresses, ascending and distinct, each with the index of its symbol in `symbols`.
    pub addresses: Vec<(u32, usize)>,
}

/// A function of the machine code, and a place in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SidecarSymbol {
    /// Where the function begins.
    pub address: u32,
    /// Its size in bytes.
    pub size: Option<u32>,
    /// Its name.
    pub name: Arc<str>,
    /// The functions at the place, the innermost first. Empty if only the symbol is known.
    pub frames: Vec<SidecarFrame>,
}

/// A function of the source, and the place in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SidecarFrame {
    /// Its name.
    pub function: Option<Arc<str>>,
    /// The source file.
    pub file: Option<Arc<str>>,
    /// The line, from 1.
    pub line: Option<u32>,
}

#[derive(Deserialize)]
struct SidecarFile {
    string_table: Vec<String>,
    data: Vec<LibEntry>,
}

#[derive(Deserialize)]
struct LibEntry {
    debug_name: String,
    debug_id: String,
    symbol_table: Vec<SymbolEntry>,
    known_addresses: Vec<(u32, usize)>,
}

#[derive(Deserialize)]
struct SymbolEntry {
    rva: u32,
    #[serde(default)]
    size: Option<u32>,
    symbol: usize,
    #[serde(default)]
    frames: Option<Vec<FrameEntry>>,
}

#[derive(Deserialize)]
struct FrameEntry {
    function: Option<usize>,
    file: Option<usize>,
    line: Option<u32>,
}

/// Reads such a file.
///
/// # Errors
/// It is no such JSON, or refers to missing data.
pub fn read(bytes: &[u8]) -> Result<Vec<SidecarLib>, ReadError> {
    let SidecarFile { string_table, data } =
        serde_json::from_slice(bytes).map_err(|error| ReadError::Json { format: FORMAT, error })?;
    let strings = SidecarStrings(string_table.into_iter().map(Arc::from).collect());
    data.into_iter().map(|lib| strings.lib(lib)).collect()
}

struct SidecarStrings(Vec<Arc<str>>);

impl SidecarStrings {
    fn get(&self, index: usize) -> Result<Arc<str>, ReadError> {
        self.0.get(index).cloned().ok_or_else(|| malformed(format!("there is no string {index}")))
    }

    fn lib(&self, lib: LibEntry) -> Result<SidecarLib, ReadError> {
        let LibEntry { debug_name, debug_id, symbol_table, known_addresses: mut addresses } = lib;
        let symbols =
            symbol_table.into_iter().map(|symbol| self.symbol(symbol)).collect::<Result<Vec<_>, _>>()?;
        if let Some((_, missing)) = addresses.iter().find(|(_, symbol)| *symbol >= symbols.len()) {
            return Err(malformed(format!("there is no symbol {missing}")));
        }
        addresses.sort_by_key(|(address, _)| *address);
        addresses.dedup_by_key(|(address, _)| *address);
        Ok(SidecarLib { debug_name, breakpad_id: breakpad_id(&debug_id), symbols, addresses })
    }

    fn symbol(&self, symbol: SymbolEntry) -> Result<SidecarSymbol, ReadError> {
        let SymbolEntry { rva: address, size, symbol, frames } = symbol;
        let frames = frames.unwrap_or_default();
        if frames.len() > MAX_FRAMES {
            return Err(malformed(format!("an address is in {} functions", frames.len())));
        }
        let frames = frames.into_iter().map(|frame| self.frame(&frame)).collect::<Result<_, _>>()?;
        Ok(SidecarSymbol { address, size, name: self.get(symbol)?, frames })
    }

    fn frame(&self, frame: &FrameEntry) -> Result<SidecarFrame, ReadError> {
        let text = |index: Option<usize>| index.map(|index| self.get(index)).transpose();
        let line = frame.line.filter(|line| *line > 0);
        Ok(SidecarFrame { function: text(frame.function)?, file: text(frame.file)?, line })
    }
}

fn malformed(problem: String) -> ReadError {
    ReadError::Malformed { format: FORMAT, problem }
}

/// Converts an id with hyphens, in which an age of 0 is left out, to an id in the format of profiles.
fn breakpad_id(debug_id: &str) -> String {
    let mut parts = debug_id.splitn(6, '-');
    let guid: String = parts.by_ref().take(5).collect();
    let age = parts.next().unwrap_or("0");
    if debug_id.contains('-') { guid.to_ascii_uppercase() + age } else { debug_id.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file as samply 0.13.1 writes it, with the order and the omissions of its members.
    const FILE: &str = r#"{"string_table":["UNKNOWN","outer","inner","/src/a.c","plain"],"data":[
        {"debug_name":"app","debug_id":"dfb8e43a-f242-3d73-a453-aeb6a777ef75","code_id":"3ae4b8df42f2733da453aeb6a777ef75e84ab7f8",
         "symbol_table":[
            {"rva":4096,"size":64,"symbol":1,"frames":[{"function":2,"file":3,"line":7},{"function":1,"file":3,"line":null}]},
            {"rva":8192,"symbol":4}],
         "known_addresses":[[8200,1],[4100,0],[4104,0]]}]}"#;

    #[test]
    fn functions_inlines_files_and_lines_are_read() {
        let libs = read(FILE.as_bytes()).unwrap();
        let [lib] = libs.as_slice() else { panic!("{libs:?}") };
        assert_eq!(
            (lib.debug_name.as_str(), lib.breakpad_id.as_str()),
            ("app", "DFB8E43AF2423D73A453AEB6A777EF750")
        );
        assert_eq!(lib.addresses, [(4100, 0), (4104, 0), (8200, 1)]);
        let [first, second] = lib.symbols.as_slice() else { panic!("{lib:?}") };
        assert_eq!((first.address, first.size, &*first.name), (4096, Some(64), "outer"));
        let frames: Vec<_> =
            first.frames.iter().map(|f| (f.function.as_deref(), f.file.as_deref(), f.line)).collect();
        assert_eq!(
            frames,
            [(Some("inner"), Some("/src/a.c"), Some(7)), (Some("outer"), Some("/src/a.c"), None)]
        );
        assert_eq!((second.size, &*second.name, second.frames.len()), (None, "plain", 0));
    }

    #[test]
    fn ids_become_those_of_profiles() {
        let check = |debug_id, expected| assert_eq!(breakpad_id(debug_id), expected, "{debug_id}");
        check("dfb8e43a-f242-3d73-a453-aeb6a777ef75-a", "DFB8E43AF2423D73A453AEB6A777EF75a");
        check("dfb8e43a-f242-3d73-a453-aeb6a777ef75", "DFB8E43AF2423D73A453AEB6A777EF750");
        check("DFB8E43AF2423D73A453AEB6A777EF750", "DFB8E43AF2423D73A453AEB6A777EF750");
        check("", "");
    }

    #[test]
    fn what_is_not_there_is_refused() {
        let check = |what: &str, with: &str, expected: &str| {
            let text = FILE.replacen(what, with, 1);
            assert_ne!(text, FILE);
            let error = read(text.as_bytes()).unwrap_err();
            assert!(error.to_string().contains(expected), "{error}");
        };
        check(r#""symbol":4"#, r#""symbol":5"#, "there is no string 5");
        check(r#""file":3"#, r#""file":99"#, "there is no string 99");
        check("[8200,1]", "[8200,2]", "there is no symbol 2");
        check("[8200,1]", "[8200,-1]", "not a symbol file of samply");
        check(r#""data""#, r#""date""#, "not a symbol file of samply");
        let many = r#"{"function":2},"#.repeat(MAX_FRAMES);
        check(r#""frames":["#, &format!(r#""frames":[{many}"#), "an address is in 1026 functions");
        assert!(read(b"").is_err() && read(b"[]").is_err());
    }
}
