//! Files of the answer cache: arbitrary bytes, and arbitrary payloads in blocks and lists whose checksums are right.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nyquist_symbols::{read_answers, read_inflated, sealed_block, sealed_list};

const SEED: u64 = 7;

fuzz_target!(|bytes: &[u8]| {
    let Some((&choice, rest)) = bytes.split_first() else { return };
    let file = match choice % 4 {
        0 => rest.to_vec(),
        3 => {
            let (list, sections) = rest.split_at(rest.len() / 2);
            let file = [sealed_list(list, SEED).as_slice(), sections].concat();
            for (_, range) in read_inflated(&file, SEED) {
                assert!(range.start <= range.end && range.end <= file.len() as u64, "{range:?}");
            }
            return;
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
});
