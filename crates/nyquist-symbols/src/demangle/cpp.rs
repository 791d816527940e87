//! Names of the Itanium ABI's C++.

use cpp_demangle::{DemangleOptions, ParseOptions, Symbol};

use super::bounded_string::BoundedString;

/// How deeply a C++ name may nest before it is left mangled.
const MAX_DEPTH: u32 = 96;

/// The most ends of a function's name that are tried where its signature cannot be parsed.
const MAX_ENDS: usize = 256;

/// Demangles a name. If its signature is in a form that the parser does not know, the function's name alone.
pub(super) fn demangle(name: &str) -> Option<String> {
    if !name.starts_with("_Z") && !name.starts_with("__Z") && !name.starts_with("_GLOBAL_") {
        return None;
    }
    let whole = parsed(name, DemangleOptions::new());
    whole.or_else(|| without_signature(name)).map(without_empty_packs)
}

fn parsed(name: &str, options: DemangleOptions) -> Option<String> {
    let parse = ParseOptions::default().recursion_limit(MAX_DEPTH);
    let symbol = Symbol::new_with_options(name, &parse).ok()?;
    let mut out = BoundedString::default();
    symbol.structured_demangle(&mut out, &options.recursion_limit(MAX_DEPTH)).ok()?;
    Some(out.text)
}

/// The name of a function template whose result depends on a member of a template in `std` (`enable_if` by a type trait
/// of `std`, as in `operator==` of strings). The parser does not know the expression (`srSt`) that GCC writes for it. The
/// name is what comes before the result.
fn without_signature(name: &str) -> Option<String> {
    let start = name.find("srSt")?;
    // The result is a type, so the name ends with its template's arguments.
    let ends = name.get(..start)?.match_indices('E').map(|(at, _)| at + 1);
    ends.take(MAX_ENDS).find_map(|end| {
        let function = format!("{}vv", name.get(..end)?);
        parsed(&function, DemangleOptions::new().no_params().no_return_type())
    })
}

/// An empty pack at the end of a template's arguments has no comma.
fn without_empty_packs(name: String) -> String {
    if !name.contains(", >") {
        return name;
    }
    // `operator,` may be an argument itself.
    name.replace("operator, >", "operator,\0>").replace(", >", ">").replace(",\0>", ", >")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `c++filt` prints, of which the name is shown alone.
    #[test]
    fn a_name_is_known_without_its_result() {
        for (mangled, expected) in [
            (
                "_ZSteqIcEN9__gnu_cxx11__enable_ifIXsrSt9__is_charIT_E7__valueEbE6__typeERKNSt7__cxx1112basic_string\
                 IS3_St11char_traitsIS3_ESaIS3_EEESD_",
                "std::operator==<char>",
            ),
            (
                "_ZSt14__relocate_a_1IccENSt9enable_ifIXsrSt24__is_bitwise_relocatableIT_vE5valueEPS2_E4typeES4_S4_\
                 S4_RSaIT0_E",
                "std::__relocate_a_1<char, char>",
            ),
            (
                "_ZSt4swapISt6localeENSt9enable_ifIXsrSt6__and_IJSt6__not_ISt15__is_tuple_likeIT_EESt21is_move_\
                 constructibleIS5_ESt18is_move_assignableIS5_EEE5valueEvE4typeERS5_SF_",
                "std::swap<std::locale>",
            ),
            (
                "_ZSt9__fill_a1IPbbEN9__gnu_cxx11__enable_ifIXntsrSt11__is_scalarIT0_E7__valueEvE6__typeET_S8_RKS4_",
                "std::__fill_a1<bool*, bool>",
            ),
            // The name nests.
            (
                "_ZNSt12__shared_ptrIiLN9__gnu_cxx12_Lock_policyE2EEaSIiEENSt9enable_ifIXsrSt20__sp_compatible_with\
                 IPT_PiE5valueERS2_E4typeEOS_IS5_LS1_2EE",
                "std::__shared_ptr<int, (__gnu_cxx::_Lock_policy)2>::operator=<int>",
            ),
        ] {
            assert_eq!(demangle(mangled).as_deref(), Some(expected));
        }
        assert_eq!(demangle("_ZsrSt"), None);
        assert_eq!(demangle(&format!("_Z{}srSt", "E".repeat(60_000))), None);
    }

    #[test]
    fn empty_packs_have_no_comma() {
        let name = "_ZN4llvm15AnalysisManagerINS_6ModuleEJEE5clearERS1_NS_9StringRefE";
        let expected = "llvm::AnalysisManager<llvm::Module>::clear(llvm::Module&, llvm::StringRef)";
        assert_eq!(demangle(name).as_deref(), Some(expected));
        assert_eq!(without_empty_packs("f<&operator, >".into()), "f<&operator, >");
    }
}
