//! Looks up a few addresses in made-up debug info, a given number of times. `cargo xtask test instructions`
//! counts its instructions with callgrind. Prints how many entries were skipped.

use nyquist_object::RelativeAddress;
use nyquist_symbols::ModuleSymbols;
use nyquist_test_support::made_elf::made_elf;
use std::num::NonZeroUsize;
use std::sync::atomic::AtomicBool;

const FUNCTIONS: u32 = 400;
const FUNCTION_SIZE: u32 = 0x100;

/// An address is looked up in one function in this many.
const ASKED: usize = 50;

/// 1 a unit and 2 a function with its code, 3 a parameter with a type, 4 a variable with an expression, 5 an
/// inlined call with its code, 6 a function without code.
const ABBREVIATIONS: &[u8] = &[
    1, 0x11, 1, 0x13, 0x0b, 0x11, 0x01, 0x12, 0x06, 0,
    0, // DW_AT_language, DW_FORM_data1; DW_AT_low_pc, DW_FORM_addr; DW_AT_high_pc, DW_FORM_data4
    2, 0x2e, 1, 0x03, 0x08, 0x11, 0x01, 0x12, 0x06, 0, 0, // DW_AT_name, DW_FORM_string
    3, 0x05, 0, 0x49, 0x13, 0, 0, // DW_AT_type, DW_FORM_ref4
    4, 0x34, 0, 0x02, 0x18, 0x49, 0x13, 0, 0, // DW_AT_location, DW_FORM_exprloc
    5, 0x1d, 1, 0x11, 0x01, 0x12, 0x06, 0, 0, //
    6, 0x2e, 1, 0x3a, 0x0b, 0, 0, // DW_AT_decl_file, DW_FORM_data1
    0,
];

/// The entries of one function, followed by those of a function without code, and their number.
fn function(number: u32) -> (Vec<u8>, usize) {
    let start = u64::from(FUNCTION_SIZE * (number + 1)).to_le_bytes();
    let code = [&start[..], &FUNCTION_SIZE.to_le_bytes()].concat();
    let parameter = [3, 1, 1, 1, 1];
    let variable = [4, 2, 0x91, 0x40, 1, 1, 1, 1];
    let inside =
        [parameter.repeat(8), variable.repeat(8), [&[5][..], &code, &variable, &[0]].concat()].concat();
    let entries =
        [&[2][..], b"function\0", &code, &inside, &[0], &[6, 1], &parameter, &parameter, &[0]].concat();
    (entries, 1 + 8 + 8 + 3 + 1 + 4)
}

/// `DW_LANG_C99`, whose names have no scopes, and `DW_LANG_C_plus_plus`, whose plain names are qualified with
/// their scopes.
const LANGUAGES: [(&str, u8); 2] = [("look-up", 0x0c), ("look-up-of-scopes", 0x04)];

/// A file of one unit of DWARF 4, without segments, in a language, and the number of its entries.
fn image(language: u8) -> (Vec<u8>, usize) {
    let functions = || (0..FUNCTIONS).map(function);
    let count = functions().map(|(_, count)| count).sum::<usize>() + 2;
    let size = (FUNCTION_SIZE * FUNCTIONS).to_le_bytes();
    let head =
        [&[4, 0, 0, 0, 0, 0, 8, 1, language][..], &u64::from(FUNCTION_SIZE).to_le_bytes(), &size].concat();
    let unit = [head, functions().flat_map(|(entries, _)| entries).collect(), vec![0]].concat();
    let info = [&(unit.len() as u32).to_le_bytes()[..], &unit].concat();
    (made_elf([(".debug_info", &info), (".debug_abbrev", ABBREVIATIONS)]), count)
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [what, passes] = arguments.as_slice() else { panic!("usage: count look-up PASSES") };
    let language = LANGUAGES.iter().find(|(name, _)| name == what).expect("there is nothing else to count").1;
    let passes: usize = passes.parse().expect("a number of passes");
    let (image, entries) = image(language);
    let module = ModuleSymbols::from_image(image).expect("a module");
    let starts = (1..=FUNCTIONS).step_by(ASKED).map(|number| RelativeAddress(FUNCTION_SIZE * number + 8));
    let addresses: Vec<_> = starts.collect();
    for _ in 0..passes {
        let answers = module.symbolicate(&addresses, NonZeroUsize::MIN, &AtomicBool::new(false));
        let frames = answers.iter().map(|answer| answer.frames.len()).sum::<usize>();
        assert_eq!(frames, 2 * addresses.len(), "each address is in an inlined call");
    }
    println!("{}", passes * entries);
}
