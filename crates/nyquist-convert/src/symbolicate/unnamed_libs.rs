//! Which libs of a saved profile have addresses and no names.

use nyquist_profile::{LibId, Profile};

/// The libs without names for any address. Frames of such libs have one address each, and do not include
/// inlined functions.
pub fn unnamed_libs(profile: &Profile) -> Vec<LibId> {
    let (mut has_addresses, mut has_names) =
        (vec![false; profile.libs().len()], vec![false; profile.libs().len()]);
    for frame in profile.frames().iter().filter(|frame| frame.address.is_some()) {
        if let Some(lib) = profile.func(frame.func).lib {
            has_addresses[lib.index()] = true;
            has_names[lib.index()] |= frame.inline_depth > 0 || !is_stand_in(profile.func_name(frame.func));
        }
    }
    let is_unnamed = |index: &usize| has_addresses[*index] && !has_names[*index];
    (0..profile.libs().len()).filter(is_unnamed).map(LibId::from_index).collect()
}

/// Whether a name is an address, or derived from one.
fn is_stand_in(name: &str) -> bool {
    let digits = name.strip_prefix("0x").or_else(|| name.strip_prefix("fun_"));
    digits.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_no_names() {
        let check = |name, expected| assert_eq!(is_stand_in(name), expected, "{name}");
        check("0x12ab", true);
        check("fun_1f40", true);
        check("0x", false);
        check("fun_main", false);
        check("main", false);
    }
}
