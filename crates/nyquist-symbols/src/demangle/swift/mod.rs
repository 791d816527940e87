//! Names of Swift (stable mangling, since Swift 5, and that of 4.2), as `Module.Type.function(label:)`
//! (`docs/ABI/Mangling.rst` of Swift).
//!
//! A mangled name is a program for a stack machine: identifiers and types are pushed, and operators pop them
//! and push their results. A demangled name shows the path of a function, its labels, and its kind. Types are
//! only shown if they distinguish two functions. If an operator is unknown, the part before it still shows
//! where the function is.

mod generics;
mod identifiers;
mod node;
mod operators;
mod reader;
mod stack;
mod thunks;
mod types;
mod words;

use node::NodeKind;
use reader::MangledNameReader;

/// The longest mangled name that is parsed.
const MAX_MANGLED: usize = 16 << 10;

/// Demangles a name. `None` if it is not a name of Swift, or cannot be read at all.
pub(crate) fn demangle(name: &str) -> Option<String> {
    const PREFIXES: [&str; 3] = ["$s", "$S", "$e"];
    let global = name.strip_prefix('_').unwrap_or(name);
    let rest = PREFIXES.iter().find_map(|prefix| global.strip_prefix(prefix))?;
    if rest.len() > MAX_MANGLED || !rest.is_ascii() {
        return None;
    }
    let mut reader = MangledNameReader::new(rest);
    match reader.read_all() {
        Some(whole) => Some(whole),
        None => reader.place(),
    }
}

impl MangledNameReader<'_> {
    /// The whole name. `None` if a part of it is unknown.
    fn read_all(&mut self) -> Option<String> {
        let mut suffix = "";
        while self.at < self.text.len() {
            if self.peek() == b'.' {
                suffix = std::str::from_utf8(self.text.get(self.at..)?).ok()?;
                break;
            }
            let node = self.operator()?;
            self.push(node)?;
        }
        let mut text = String::new();
        while let Some(attribute) = self.pop(NodeKind::Attribute) {
            text.push_str(&attribute.text);
        }
        let [node] = &*self.stack else { return None };
        if !matches!(node.kind, NodeKind::Entity | NodeKind::Type) {
            return None;
        }
        text.push_str(&node.text);
        if !suffix.is_empty() {
            text.extend([" with unmangled suffix \"", suffix, "\""]);
        }
        Some(text)
    }

    /// The place of the function, for a name that can only be read in part: a context, and the name in it.
    fn place(&self) -> Option<String> {
        let mut nodes = self.stack.iter();
        let context = nodes.next().filter(|node| node.is_path())?;
        match nodes.next().filter(|node| matches!(node.kind, NodeKind::Identifier | NodeKind::Declaration)) {
            Some(name) => Some(format!("{}.{}", context.text, name.text)),
            None if context.kind == NodeKind::Identifier => None,
            None => Some(context.text.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(mangled: &str, expected: &str) {
        assert_eq!(demangle(mangled).as_deref(), Some(expected), "{mangled}");
    }

    /// Names of Swift's own tests (`test/Demangle/Inputs/manglings.txt`), in our format.
    #[test]
    fn functions_have_paths_and_labels() {
        check("$s7example1fyyYaKF", "example.f()");
        check("_$S8mangling14varargsVsArray3arr1nySaySiG_SStF", "mangling.varargsVsArray(arr:n:)");
        check("$S8mangling14varargsVsArray3arrySaySiGd_tF", "mangling.varargsVsArray(arr:)");
        check("$S4test6testitySiyt_tF", "test.testit(_:)");
        check(
            "$s4main20receiveInstantiationyySo34__CxxTemplateInst12MagicWrapperIiEVzF",
            "main.receiveInstantiation(_:)",
        );
        check(
            "_$S10Foundation11MeasurementV12SimulatorKitSo9UnitAngleCRszlE11OrientationO2eeoiySbAcDEAGOyAF_G_AKtFZ",
            "static (extension in SimulatorKit):Foundation.Measurement.Orientation.==(_:_:)",
        );
        check(
            "$sSUss17FixedWidthIntegerRzrlEyxqd__cSzRd__lufCSu_SiTgm5",
            "generic specialization <Swift.UInt, Swift.Int> of (extension in Swift):Swift.UnsignedInteger.init(_:)",
        );
        check(
            "$s20mangling_retroactive5test0yyAA1ZVy12RetroactiveB1XVSiAE1YVAG0D1A1PHPyHCg_AiJ1QHPyHCg1_GF",
            "mangling_retroactive.test0(_:)",
        );
    }

    #[test]
    fn types_constructors_and_accessors() {
        check("$s4test3StrCACycfC", "test.Str.__allocating_init()");
        check("$S4main4TestC1xACSi_tc6_PRIV_Llfc", "main.Test.init(x:)");
        check(
            "$s4Test5ProtoP8IteratorV10collectionAEy_qd__Gqd___tcfc",
            "Test.Proto.Iterator.init(collection:)",
        );
        check(
            "$s17property_wrappers10WithTuplesV9fractionsSd_S2dtvpfP",
            "property wrapper backing initializer of property_wrappers.WithTuples.fractions",
        );
        check("$s4main1gyySiXCvp", "main.g");
        check("$S4blah8PatatinoaySiGD", "blah.Patatino<Swift.Int>");
        check("$s3nix7MyclassCfd", "nix.Myclass.deinit");
        check("$s3nix7MyclassCfD", "nix.Myclass.__deallocating_deinit");
        check("$s3nix8MystructVyS2icig", "nix.Mystruct.subscript(_:).getter");
        check("$s3nix1CC5valueSivg", "nix.C.value.getter");
        check("$s3nix1CC5valueSivsZ", "static nix.C.value.setter");
        check("$s3nix1CC5valueSivau", "nix.C.value.unsafeMutableAddressor");
    }

    #[test]
    fn closures_and_local_functions() {
        check(
            "_$Ss17MutableCollectionP1asAARzs012RandomAccessB0RzsAA11SubSequences013BidirectionalB0PRpzsAdHRQlE06rotatecD015shiftingToStart5Indexs01_A9IndexablePQzAN_tFAKs01_M4BasePQzAQcfU_",
            "closure #1 in (extension in a):Swift.MutableCollection.rotateRandomAccess(shiftingToStart:)",
        );
        check("$S3nix8MystructV1xACyxGx_tcfc7MyaliasL_ayx__GD", "Myalias #1 in nix.Mystruct.init(x:)<A>");
        check("$s4main3fooyyF3barL_yyF", "bar #1() in main.foo()");
        check("$s4main3fooyyFyycfU0_", "closure #2 in main.foo()");
        check("$s4main3fooyyFyycfu_", "implicit closure #1 in main.foo()");
        check("$s4main3foo1xySi_tFfA_", "default argument 0 of main.foo(x:)");
    }

    #[test]
    fn thunks_and_specialisations() {
        check("$s4main6testityyYaFTu", "async function pointer to main.testit()");
        check("$s4main6testityyYaFTQ0_", "(2) await resume partial function for main.testit()");
        check("$s4main6testityyYaFTY_", "(1) suspend resume partial function for main.testit()");
        check("_$S3abc6testityySiFTm", "merged abc.testit(_:)");
        check(
            "$sSo17OS_dispatch_queueC4sync7executeyyyXE_tFTOTA",
            "partial apply forwarder for @nonobjc __C.OS_dispatch_queue.sync(execute:)",
        );
        check(
            "$s4Test6testityyxlFAA8MystructV_TB5",
            "generic specialization <Test.Mystruct> of Test.testit(_:)",
        );
        check("$s1A1gyyxlFx_qd__t_Ti5", "inlined generic function <(A, A1)> of A.g(_:)");
        check(
            "_$S3foo6testityyyyc_yyctF1a1bTf3pfpf_n",
            "function signature specialization of foo.testit(_:_:)",
        );
        check(
            "$ss18EnumeratedIteratorVyxGSTsST5split9maxSplits25omittingEmptySubsequences14whereSeparatorSay11SubSequenceQzGSi_S2b7ElementQzKXEtKFTW",
            "protocol witness for Swift.Sequence.split(maxSplits:omittingEmptySubsequences:whereSeparator:) in conformance Swift.EnumeratedIterator<A> : Swift.Sequence",
        );
        check("$s4main1CC3fooyyFTj", "dispatch thunk of main.C.foo()");
        check("$s4main1CC3fooyyFTo", "@objc main.C.foo()");
        check("$sIeg_IyB_TR", "reabstraction thunk helper from @callee_guaranteed to @callee_unowned");
        check("$sSqWOy.17", "outlined copy of Swift.Optional with unmangled suffix \".17\"");
        check("$s4main1SVMa", "type metadata accessor for main.S");
        check("$s4main1SVwcp", "initializeWithCopy value witness for main.S");
        check(
            "$s3Bar3FooVAA5DrinkVyxGs5Error_pSeRzSERzlyShy4AbcdAHO6MemberVGALSeHPAKSeAAyHC_HCg_ALSEHPAKSEAAyHC_HCg0_Iseggozo_SgWOe",
            "outlined consume of (@callee_guaranteed)?",
        );
        check("$s4main5value_WZ", "one-time initialization function for main.value");
    }

    #[test]
    fn what_is_not_known_is_where_it_is() {
        check("$s13test_mangling3fooyS2f_S2ftFTJfUSSpSr", "test_mangling.foo(_:_:_:)");
        check("$s4main3fooyyFXq", "main.foo()");
        check("$s4main1SV3fooyySi\u{1}F", "main.S.foo");
        for whole in ["$s", "$sx", "$sSD5IndexVy__G", "$s0", "$s5main"] {
            let found = demangle(whole);
            assert!(found.as_deref().is_none_or(|found| !found.is_empty()), "{whole}: {found:?}");
        }
        for other in ["$", "s4main", "$x4main3fooyyF", "_T0s5print", "", "_SocketJoinOrLeaveMulticast"] {
            assert_eq!(demangle(other), None, "{other}");
        }
    }

    #[test]
    fn names_in_other_scripts() {
        check("$s8mangling0022egbpdajGbuEbxfgehfvwxnyyF", "mangling.ليهمابتكلموشعربي؟()");
        check("$s8mangling007p_qcaDcoiyS2i_SitF", "mangling.«+»(_:_:)");
    }

    #[test]
    fn hostile_names_end() {
        let long = "AA".repeat(8000);
        for name in ["$s4mainV", "$s1aSay", "$sx", "$s4main3fooyy"] {
            let _ = demangle(&format!("{name}{long}"));
        }
        let _ = demangle(&format!("$s1aV{}", "AASg".repeat(4000)));
        let _ = demangle(&format!("$s{}", "A2047a".repeat(2600)));
        let _ = demangle(&format!("$s4main1aV{}", "S2047i".repeat(2600)));
        // Copies of a long name cost nothing until they are concatenated.
        let copies = "A2047C".repeat(30);
        let many = demangle(&format!("$s4main9000{}V_{copies}t4nameyyF", "x".repeat(9000)));
        assert!(many.is_none_or(|many| many.len() < 10_000));
        let doubling = "_ADt".repeat(3000);
        let _ = demangle(&format!("$s4main1aVAC{doubling}"));
        let whole = "$sSUss17FixedWidthIntegerRzrlEyxqd__cSzRd__lufCSu_SiTgm5";
        for len in 0..whole.len() {
            let _ = demangle(&whole[..len]);
            for byte in 1..128_u8 {
                let mut bytes = whole.as_bytes().to_vec();
                bytes[len] = byte;
                let _ = demangle(std::str::from_utf8(&bytes).unwrap());
            }
        }
    }
}
