//! Mach-O files made of given sections, so that mutations go to the sections and not to the headers around them.

/// Where the first section is in the file, and from the image base.
const SECTIONS: u64 = 0x1000;

/// Where `__TEXT` is.
const TEXT: u64 = 0x1_0000_0000;

/// A Mach-O program for 64-bit x86 or ARM of these sections of `__TEXT`, one behind the other; `__text` is code.
pub fn build(is_arm: bool, sections: &[(&str, &[u8])]) -> Vec<u8> {
    let cpu: u32 = if is_arm { 0x0100_000c } else { 0x0100_0007 };
    let total: u64 = SECTIONS + sections.iter().map(|(_, bytes)| bytes.len() as u64).sum::<u64>();
    let size = 72 + 80 * sections.len() as u32;
    let mut file = Vec::new();
    words(&mut file, &[0xfeed_facf, cpu, 0, 2, 1, size, 0, 0, 0x19, size]);
    name(&mut file, "__TEXT");
    longs(&mut file, &[TEXT, total, 0, total]);
    words(&mut file, &[5, 5, sections.len() as u32, 0]);
    let mut at = SECTIONS;
    for (section, bytes) in sections {
        name(&mut file, section);
        name(&mut file, "__TEXT");
        longs(&mut file, &[TEXT + at, bytes.len() as u64]);
        let flags = if *section == "__text" { 0x8000_0400 } else { 0 };
        words(&mut file, &[at as u32, 0, 0, 0, flags, 0, 0, 0]);
        at += bytes.len() as u64;
    }
    file.resize(SECTIONS as usize, 0);
    sections.iter().for_each(|(_, bytes)| file.extend_from_slice(bytes));
    file
}

fn words(file: &mut Vec<u8>, words: &[u32]) {
    words.iter().for_each(|word| file.extend_from_slice(&word.to_le_bytes()));
}

fn longs(file: &mut Vec<u8>, longs: &[u64]) {
    longs.iter().for_each(|long| file.extend_from_slice(&long.to_le_bytes()));
}

fn name(file: &mut Vec<u8>, name: &str) {
    let mut padded = [0; 16];
    padded[..name.len()].copy_from_slice(name.as_bytes());
    file.extend_from_slice(&padded);
}
