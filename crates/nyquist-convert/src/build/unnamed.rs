//! Names for addresses that have no symbol, or no symbol yet.
//!
//! Most addresses in libs get their names from symbols in the end. Until then the addresses of a lib share
//! one function, whose name is empty. A function and a text for each address would soon be replaced. They
//! took about 4 % of the CPU time of recording a compiler.

use nyquist_profile::{Frame, Func, FuncId, LibId, Profile, ProfileBuilder, StringId};

/// The function of all addresses of a lib that have no name yet.
pub(crate) fn intern_func(builder: &mut ProfileBuilder, lib: LibId) -> FuncId {
    let name = builder.intern_string("");
    builder.intern_func(func(lib, name))
}

/// The function of a frame of which only the address is known.
pub(crate) fn func_at(builder: &mut ProfileBuilder, lib: LibId, address: u32) -> Func {
    func(lib, name_at(builder, address))
}

/// The name of an address.
pub(crate) fn name_at(builder: &mut ProfileBuilder, address: u32) -> StringId {
    hexadecimal(address.into(), |name| builder.intern_string(name))
}

/// The lib and the address of a frame that has no name, given its function.
pub(crate) fn place(profile: &Profile, frame: &Frame, func: &Func) -> Option<(LibId, u32)> {
    let (lib, address) = (func.lib?, frame.address?);
    profile.string(func.name).is_empty().then_some((lib, address))
}

fn func(lib: LibId, name: StringId) -> Func {
    Func::new(name, Some(lib))
}

/// Passes a number to `then` as `{number:#x}` formats it. The formatting machinery takes a tenth of the time
/// of interning an address.
pub(crate) fn hexadecimal<T>(number: u64, then: impl FnOnce(&str) -> T) -> T {
    let mut room = [0; 18];
    let mut rest = number;
    let mut start = room.len();
    loop {
        start -= 1;
        room[start] = b"0123456789abcdef"[(rest & 15) as usize];
        rest >>= 4;
        if rest == 0 {
            break;
        }
    }
    start -= 2;
    room[start..start + 2].copy_from_slice(b"0x");
    then(std::str::from_utf8(&room[start..]).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_std_writes_them() {
        for number in [0, 9, 0xa, 0x10, 0xdead_beef, u64::from(u32::MAX), u64::MAX] {
            hexadecimal(number, |text| assert_eq!(text, format!("{number:#x}")));
        }
    }
}
