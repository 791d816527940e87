//! Names that debug info states without qualifiers, which are the namespaces, types and functions around
//! their entries.

use nyquist_object::RelativeAddress;
use nyquist_symbols::{AddressInfo, ModuleSymbols};
use nyquist_test_support::made_elf::made_elf;
use std::num::NonZeroUsize;
use std::sync::atomic::AtomicBool;

/// Abbreviations with children: 1 a unit with a language and code, 2 a namespace, 3 a structure, 4 a function
/// without code, all with a name; 5 and 6 the second and third without one, the latter with a line. Without
/// children: 7 a declaration with a name, 8 a function of a specification with code, 9 the same of another
/// unit, 10 a function with a name and code, 11 the extension of a namespace, with children, 12 a declaration
/// with a plain and a linkage name.
const ABBREVIATIONS: &[u8] = &[
    1, 0x11, 1, 0x13, 0x0b, 0x11, 0x01, 0x12, 0x06, 0,
    0, // DW_AT_language, DW_FORM_data1, and where its code is
    2, 0x39, 1, 0x03, 0x08, 0, 0, // DW_AT_name, DW_FORM_string
    3, 0x13, 1, 0x03, 0x08, 0, 0, //
    4, 0x2e, 1, 0x03, 0x08, 0, 0, //
    5, 0x39, 1, 0, 0, //
    6, 0x13, 1, 0x3b, 0x0b, 0, 0, // DW_AT_decl_line
    7, 0x2e, 0, 0x03, 0x08, 0, 0, //
    8, 0x2e, 0, 0x47, 0x13, 0x11, 0x01, 0x12, 0x06, 0, 0, // DW_AT_specification, DW_FORM_ref4
    9, 0x2e, 0, 0x47, 0x10, 0x11, 0x01, 0x12, 0x06, 0, 0, // DW_FORM_ref_addr
    10, 0x2e, 0, 0x03, 0x08, 0x11, 0x01, 0x12, 0x06, 0, 0, //
    11, 0x39, 1, 0x54, 0x13, 0, 0, // DW_AT_extension
    12, 0x2e, 0, 0x03, 0x08, 0x6e, 0x08, 0, 0, // DW_AT_linkage_name
    0,
];

const CPP: u8 = 0x04;
const C: u8 = 0x0c;
const NAMESPACE: u8 = 2;
const STRUCTURE: u8 = 3;
const FUNCTION: u8 = 4;
const UNNAMED_NAMESPACE: &[u8] = &[5];
const DECLARATION: u8 = 7;
const END: &[u8] = &[0];

/// A `.debug_info` section under construction, with at most one function with code for each 0x10 bytes of
/// code.
#[derive(Default)]
struct Info {
    bytes: Vec<u8>,
    unit: usize,
    functions: u32,
}

impl Info {
    fn begin_unit(&mut self, language: u8) {
        self.unit = self.bytes.len();
        self.bytes.extend([0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 8, 1, language]);
        self.bytes.extend(self.code_end().to_le_bytes());
        self.bytes.extend([0; 4]);
    }

    fn end_unit(&mut self) {
        self.bytes.push(0);
        let (unit, end) = (self.unit, self.code_end() as u32);
        let len = (self.bytes.len() - unit - 4) as u32;
        self.bytes[unit..unit + 4].copy_from_slice(&len.to_le_bytes());
        let (start, size) = (unit + 13, unit + 21);
        let start = u32::from_le_bytes(self.bytes[start..start + 4].try_into().unwrap());
        self.bytes[size..size + 4].copy_from_slice(&(end - start).to_le_bytes());
    }

    /// Where the code ends.
    fn code_end(&self) -> u64 {
        u64::from(self.functions + 1) * 0x10
    }

    /// Adds an entry, and returns where it begins.
    fn add(&mut self, entry: &[u8]) -> usize {
        self.bytes.extend(entry);
        self.bytes.len() - entry.len()
    }

    fn named(&mut self, code: u8, name: &str) -> usize {
        self.add(&[&[code], name.as_bytes(), &[0]].concat())
    }

    /// Adds a function with code, whose name is in `head`.
    fn function(&mut self, head: &[u8]) {
        let start = self.code_end();
        self.functions += 1;
        self.add(&[head, &start.to_le_bytes(), &0x10_u32.to_le_bytes()].concat());
    }

    fn specified(&mut self, declaration: usize) {
        let distance = (declaration - self.unit) as u32;
        self.function(&[&[8][..], &distance.to_le_bytes()].concat());
    }

    fn specified_elsewhere(&mut self, declaration: usize) {
        self.function(&[&[9][..], &(declaration as u32).to_le_bytes()].concat());
    }

    /// The names of the functions with code, each looked up alone.
    fn names(self) -> Vec<String> {
        let (module, addresses) = self.module();
        addresses.iter().map(|&address| name(&module.lookup(address))).collect()
    }

    /// The same, looked up together.
    fn names_at_once(self) -> Vec<String> {
        let (module, addresses) = self.module();
        let answers = module.symbolicate(&addresses, NonZeroUsize::MIN, &AtomicBool::new(false));
        answers.iter().map(name).collect()
    }

    /// The module, and an address in each function.
    fn module(self) -> (ModuleSymbols, Vec<RelativeAddress>) {
        let sections: [(&str, &[u8]); 2] = [(".debug_info", &self.bytes), (".debug_abbrev", ABBREVIATIONS)];
        let module = ModuleSymbols::from_image(made_elf(sections)).unwrap();
        let addresses = (1..=self.functions).map(|number| RelativeAddress(number * 0x10 + 8));
        (module, addresses.collect())
    }
}

fn name(info: &AddressInfo) -> String {
    info.frames[0].function.as_deref().unwrap().to_owned()
}

/// A unit with a declaration in a structure in a namespace, and functions in unnamed entries.
fn nested(language: u8) -> (Info, usize) {
    let mut info = Info::default();
    info.begin_unit(language);
    info.named(NAMESPACE, "outer");
    info.add(UNNAMED_NAMESPACE);
    info.named(STRUCTURE, "Shelf<int>");
    info.named(DECLARATION, "before");
    let declaration = info.named(DECLARATION, "sort<int>");
    info.add(END);
    let beside = info.named(DECLARATION, "beside");
    info.add(END);
    info.named(FUNCTION, "run");
    info.add(&[6, 12]);
    let lambda = info.named(DECLARATION, "operator()");
    let other = info.named(DECLARATION, "call");
    info.add(&[0, 0, 0]);
    let plain = info.named(DECLARATION, "plain");
    for declaration in [declaration, beside, lambda, other, plain] {
        info.specified(declaration);
    }
    info.end_unit();
    (info, declaration)
}

#[test]
fn names_are_qualified_by_what_is_around_them() {
    let (info, _) = nested(CPP);
    let expected = [
        "outer::(anonymous namespace)::Shelf<int>::sort<int>",
        "outer::(anonymous namespace)::beside",
        "outer::run::{lambda:12}::operator()",
        "outer::run::{unnamed type:12}::call",
        "plain",
    ];
    assert_eq!(info.names(), expected);
}

#[test]
fn names_of_c_are_left_alone() {
    assert_eq!(nested(C).0.names(), ["sort<int>", "beside", "operator()", "call", "plain"]);
}

#[test]
fn a_declaration_of_another_unit_is_qualified() {
    let (mut info, declaration) = nested(CPP);
    info.begin_unit(CPP);
    info.named(NAMESPACE, "other");
    info.specified_elsewhere(declaration);
    info.add(END);
    info.end_unit();
    assert_eq!(info.names()[5], "outer::(anonymous namespace)::Shelf<int>::sort<int>");
}

#[test]
fn a_namespace_opened_again_keeps_its_name() {
    let mut info = Info::default();
    info.begin_unit(CPP);
    let first = info.named(NAMESPACE, "first");
    info.add(END);
    info.add(&[&[11][..], &(first as u32).to_le_bytes()].concat());
    info.function(b"\x0ainside\0");
    info.add(END);
    info.end_unit();
    assert_eq!(info.names(), ["first::inside"]);
}

#[test]
fn a_linkage_name_needs_nothing_around_it() {
    let mut info = Info::default();
    info.begin_unit(CPP);
    info.named(NAMESPACE, "wrong");
    let declaration = info.add(b"\x0cplain\0_ZN5right5plainEv\0");
    info.add(END);
    info.specified(declaration);
    info.end_unit();
    assert_eq!(info.names(), ["right::plain()"]);
}

#[test]
fn what_is_nested_too_deeply_is_not_qualified() {
    for (depth, name, expected) in [
        (64, "a", format!("{}inside", "a::".repeat(64))),
        (65, "a", "inside".to_owned()),
        (60_000, "a", "inside".to_owned()),
        (40, &*"long".repeat(200), "inside".to_owned()),
    ] {
        let mut info = Info::default();
        info.begin_unit(CPP);
        for _ in 0..depth {
            info.named(NAMESPACE, name);
        }
        info.function(b"\x0ainside\0");
        info.add(&END.repeat(depth));
        info.end_unit();
        assert_eq!(info.names(), [expected], "{depth}");
    }
}

#[test]
fn functions_behind_deep_nests_are_answered_soon() {
    let mut info = Info::default();
    info.begin_unit(CPP);
    info.named(NAMESPACE, "outer");
    info.add(&UNNAMED_NAMESPACE.repeat(500_000));
    info.add(&END.repeat(500_000));
    let count = 5_000;
    for _ in 0..count {
        info.function(b"\x0abehind\0");
    }
    info.add(END);
    info.end_unit();
    // One step outwards for each of the other entries would take minutes.
    assert_eq!(info.names_at_once(), vec!["outer::behind"; count]);
}

#[test]
fn circles_of_declarations_end() {
    let mut info = Info::default();
    info.begin_unit(CPP);
    // A namespace that is its own extension.
    let at = info.bytes.len() as u32;
    info.add(&[&[11][..], &at.to_le_bytes()].concat());
    info.function(b"\x0ainside\0");
    info.add(END);
    // A namespace that extends an entry in itself.
    let at = info.bytes.len() as u32;
    info.add(&[&[11][..], &(at + 5).to_le_bytes()].concat());
    info.named(NAMESPACE, "inner");
    info.add(END);
    info.function(b"\x0abeside\0");
    info.add(END);
    info.end_unit();
    assert_eq!(info.names(), ["(anonymous namespace)::inside", "beside"]);
}
