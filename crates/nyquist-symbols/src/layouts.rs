//! The layouts of symbol folders and servers: the path of a file, given its name and identity.
//!
//! Paths are relative, with `/` between their parts, so that they can be appended to a folder or a server's
//! address.

use nyquist_object::{DebugId, PeCodeId};

/// The last part of a path of any system. Windows uses the separator `\`, and such a path may be read on
/// another system.
pub fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or_default()
}

/// The path of a PDB in a symbol store of Microsoft's `symstore`: `app.pdb/GUIDAGE/app.pdb`, the GUID and the
/// age in upper-case digits ("SymStore", "Using SymSrv").
pub fn symbol_store_pdb(pdb_name: &str, id: DebugId) -> Option<String> {
    let name = plain(pdb_name)?;
    Some(format!("{name}/{}/{name}", id.breakpad().to_uppercase()))
}

/// The path of an image in a symbol store: `app.exe/TIMESTAMPsize/app.exe`.
pub fn symbol_store_image(image_name: &str, id: PeCodeId) -> Option<String> {
    let name = plain(image_name)?;
    Some(format!("{name}/{id}/{name}"))
}

/// The path of a symbol file in Breakpad's layout: `app.pdb/ID/app.sym`. The full name is used for a module
/// without a PDB: `libfoo.so/ID/libfoo.so.sym` (Breakpad, `SimpleSymbolSupplier`).
pub fn breakpad(debug_name: &str, id: DebugId) -> Option<String> {
    let name = plain(debug_name)?;
    Some(format!("{name}/{}/{}", id.breakpad().to_uppercase(), symbol_file_name(name)))
}

/// The name of the symbol file that Breakpad makes for a PDB or a module.
pub fn symbol_file_name(debug_name: &str) -> String {
    let stem = debug_name.len().checked_sub(4).and_then(|at| debug_name.split_at_checked(at));
    let stem = stem.filter(|(_, suffix)| suffix.eq_ignore_ascii_case(".pdb")).map(|(stem, _)| stem);
    format!("{}.sym", stem.unwrap_or(debug_name))
}

/// The name, if it cannot leave the folder in which it is looked for.
fn plain(name: &str) -> Option<&str> {
    let name = file_name(name);
    let is_plain = !name.is_empty() && name != "." && name != ".." && !name.contains('\0');
    is_plain.then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_ids_make_paths() {
        let id = DebugId::from_breakpad("6C974EBE5232EE469D6B7847A670B2A9a").unwrap();
        let store = symbol_store_pdb("C:\\build\\app.pdb", id).unwrap();
        assert_eq!(store, "app.pdb/6C974EBE5232EE469D6B7847A670B2A9A/app.pdb");
        assert_eq!(breakpad("app.pdb", id).unwrap(), "app.pdb/6C974EBE5232EE469D6B7847A670B2A9A/app.sym");
        assert_eq!(breakpad("libx.so", id).unwrap(), "libx.so/6C974EBE5232EE469D6B7847A670B2A9A/libx.so.sym");
        let code_id = PeCodeId { timestamp: 0x5ca1_2c43, size_of_image: 0xab000 };
        assert_eq!(symbol_store_image("app.exe", code_id).unwrap(), "app.exe/5CA12C43ab000/app.exe");
    }

    #[test]
    fn a_name_never_leads_out_of_the_folder() {
        let id = DebugId::default();
        for name in ["", "..", ".", "x/..", "a\\..", "/"] {
            assert_eq!(symbol_store_pdb(name, id), None, "{name}");
            assert_eq!(breakpad(name, id), None, "{name}");
        }
        assert_eq!(file_name("C:\\a/b\\c.dll"), "c.dll");
    }
}
