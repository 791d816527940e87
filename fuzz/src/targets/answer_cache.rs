//! Files of the answer cache: arbitrary bytes, and arbitrary payloads in blocks, lists and heads whose checksums are
//! right.

use nyquist_object::Avma;
use nyquist_symbols::test_hooks::{
    read_answers, read_inflated, read_kernel, read_table, sealed_block, sealed_kernel, sealed_list,
    sealed_table,
};

const SEED: u64 = 7;

/// Takes one input.
pub fn run(bytes: &[u8]) {
    let Some((&choice, rest)) = bytes.split_first() else { return };
    let file = match choice % 8 {
        0 => rest.to_vec(),
        3 => {
            let (list, sections) = rest.split_at(rest.len() / 2);
            let file = [sealed_list(list, SEED).as_slice(), sections].concat();
            for (_, range) in read_inflated(&file, SEED) {
                assert!(range.start <= range.end && range.end <= file.len() as u64, "{range:?}");
            }
            return;
        }
        4 => return look_at_kernel(rest.to_vec()),
        5 => {
            let Some((len, rest)) = rest.split_first_chunk::<2>() else { return };
            let (head, block) = rest.split_at(rest.len().min(u16::from_le_bytes(*len).into()));
            return look_at_kernel(sealed_kernel(head, &[block.to_vec()]));
        }
        6 => return look_at_table(rest.to_vec()),
        7 => {
            let Some((len, rest)) = rest.split_first_chunk::<2>() else { return };
            let (head, block) = rest.split_at(rest.len().min(u16::from_le_bytes(*len).into()));
            return look_at_table(sealed_table(head, std::iter::once(block.to_vec()), SEED));
        }
        1 => sealed_block(rest, SEED).expect("it is short"),
        _ => {
            let (first, second) = rest.split_at(rest.len() / 2);
            let blocks = [first, second].map(|part| sealed_block(part, SEED).expect("it is short"));
            [blocks[0].as_slice(), b"something between", blocks[1].as_slice()].concat()
        }
    };
    let len = file.len();
    let answers = read_answers(file, SEED);
    let frames: usize = answers.iter().map(|(_, info)| info.frames.len()).sum();
    assert!(answers.len() <= len / 8 && frames <= len / 4, "no more than there are bytes for");
}

fn look_at_table(file: Vec<u8>) {
    let addresses = [0, 1, 0x1000, 0x1004, 0x2000, u64::MAX];
    let names = read_table(file, SEED, b"\0main\0_main\0".to_vec(), &addresses);
    assert!(names.is_none_or(|names| names.len() == addresses.len()));
}

fn look_at_kernel(file: Vec<u8>) {
    let len = file.len();
    let Some(symbols) = read_kernel(file) else { return };
    assert!(symbols.modules().len() <= len / 18, "no more than there are bytes for");
    let ends = symbols.modules().iter().flat_map(|module| [module.range.start.0, module.range.end.0]);
    for address in ends.chain([0, 1, 0x1000, u64::MAX]) {
        let _ = symbols.lookup(Avma(address));
    }
}
