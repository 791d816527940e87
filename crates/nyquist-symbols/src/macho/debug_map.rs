//! The debug map: the object files that an image was linked from, and the address of each of their functions.
//! Linkers store it in the symbol table as entries for debuggers (Apple's `mach-o/stab.h`; LLVM's `dsymutil`
//! documents their order).

use super::images::MachOImage;
use crate::section_contents::SectionContents;
use nyquist_object::macho::Stab;
use nyquist_system::OsStrExt as _;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The longest path that is accepted (`PATH_MAX`, and the name of a member).
const MAX_PATH: u64 = 8192;

/// An object file as the linker saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ObjectPath {
    /// The file, or the archive that it is a member of.
    pub(crate) file: PathBuf,
    /// Its name in the archive.
    pub(crate) member: Option<Vec<u8>>,
    /// When it was written, in seconds since the epoch; `None` if the image does not state it, such as a
    /// reproducible one.
    pub(crate) modified: Option<u64>,
}

/// A function in the image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LinkedFunction {
    pub(super) start: u64,
    pub(super) end: u64,
    /// The number of the object file that it comes from.
    pub(super) object: u32,
    /// The offset of its name in the strings.
    pub(super) name: u32,
}

/// An object file in the symbol table.
#[derive(Clone, Copy, Debug)]
struct DebugMapObject {
    /// The offset of its path in the strings.
    path: u32,
    modified: u64,
    /// The offset of the name of its first function.
    first_name: Option<u32>,
}

/// Object files, and the functions that came from them. Names are read when they are needed, because many
/// entries can share a long one.
#[derive(Debug)]
pub(crate) struct DebugMap {
    objects: Vec<DebugMapObject>,
    /// By address.
    functions: Vec<LinkedFunction>,
    strings: SectionContents,
}

impl DebugMap {
    /// Reads the map of an image. `None` if it has none.
    pub(crate) fn read(image: &MachOImage) -> Option<Self> {
        let strings = SectionContents::of_range(image.source(), image.symbol_table()?.strings);
        let mut map = Self { objects: Vec::new(), functions: Vec::new(), strings };
        let mut is_inside = false;
        let mut begun: Option<LinkedFunction> = None;
        for symbol in image.symbols().ok()? {
            match symbol.stab() {
                Some(Stab::Object) => {
                    is_inside = true;
                    map.objects.push(DebugMapObject {
                        path: symbol.name,
                        modified: symbol.value,
                        first_name: None,
                    });
                }
                Some(Stab::Source) => is_inside = false,
                Some(Stab::Function) if is_inside && symbol.section != 0 => {
                    let object = map.objects.len().saturating_sub(1) as u32;
                    if let Some(object) = map.objects.last_mut() {
                        object.first_name.get_or_insert(symbol.name);
                    }
                    begun = Some(LinkedFunction { start: symbol.value, end: 0, object, name: symbol.name });
                }
                Some(Stab::Function) => {
                    let end = |of: &LinkedFunction| of.start.checked_add(symbol.value);
                    map.functions
                        .extend(begun.take().and_then(|of| Some(LinkedFunction { end: end(&of)?, ..of })));
                }
                _ => {}
            }
        }
        map.functions.sort_by_key(|function| function.start);
        // If functions were folded into one, the first one represents all.
        map.functions.dedup_by_key(|function| function.start);
        (!map.functions.is_empty()).then_some(map)
    }

    /// How many object files there are.
    pub(crate) fn len(&self) -> usize {
        self.objects.len()
    }

    /// The object file with this number, in the order of the image.
    pub(crate) fn object(&self, number: usize) -> Option<ObjectPath> {
        let object = self.objects.get(number)?;
        let bytes = self.strings.window(object.path.into(), MAX_PATH)?;
        let (file, member) = split(bytes.get(..bytes.iter().position(|&byte| byte == 0)?)?);
        let modified = Some(object.modified).filter(|&modified| modified != 0);
        let file = Path::new(OsStr::from_bytes(file)).to_owned();
        Some(ObjectPath { file, member: member.map(<[u8]>::to_vec), modified })
    }

    /// The function that contains an address.
    pub(super) fn find(&self, address: u64) -> Option<LinkedFunction> {
        let after = self.functions.partition_point(|function| function.start <= address);
        self.functions.get(after.checked_sub(1)?).filter(|function| address < function.end).copied()
    }

    /// The linker's name of a function.
    pub(super) fn name(&self, function: LinkedFunction) -> Option<Vec<u8>> {
        self.strings.string(function.name.into()).map(std::borrow::Cow::into_owned)
    }

    /// The linker's name of the first function that came from an object file.
    pub(super) fn first_name(&self, object: usize) -> Option<Vec<u8>> {
        let name = self.objects.get(object)?.first_name?;
        self.strings.string(name.into()).map(std::borrow::Cow::into_owned)
    }
}

/// `/path/libx.a(member.o)`, or the path of an object file.
fn split(path: &[u8]) -> (&[u8], Option<&[u8]>) {
    let member = path.strip_suffix(b")").and_then(|path| {
        let open = path.iter().rposition(|&byte| byte == b'(')?;
        Some((&path[..open], Some(&path[open + 1..])))
    });
    member.unwrap_or((path, None))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_of_archives_are_distinguished() {
        let check = |path: &str, file: &str, member: Option<&str>| {
            assert_eq!(split(path.as_bytes()), (file.as_bytes(), member.map(str::as_bytes)), "{path}");
        };
        check("/a/b.o", "/a/b.o", None);
        check("/a/libx.a(b.o)", "/a/libx.a", Some("b.o"));
        check("/a (1)/libx.a(b.o)", "/a (1)/libx.a", Some("b.o"));
        check("/a)", "/a)", None);
        check("", "", None);
    }
}
