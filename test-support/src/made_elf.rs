//! ELF files with arbitrary sections, for tests of files that no compiler writes.

/// An ELF file for x86_64 with these sections, without segments.
pub fn made_elf<const N: usize>(sections: [(&str, &[u8]); N]) -> Vec<u8> {
    let mut names = vec![0];
    let mut file = vec![0; 64];
    let mut headers = vec![0; 64];
    let mut header = |name: usize, kind: u32, offset: usize, size: usize| {
        headers.extend([name as u32, kind].map(u32::to_le_bytes).as_flattened());
        headers.extend([0, 0, offset as u64, size as u64, 0, 1, 0].map(u64::to_le_bytes).as_flattened());
    };
    for (name, bytes) in sections {
        header(names.len(), 1, file.len(), bytes.len());
        names.extend(name.as_bytes());
        names.push(0);
        file.extend(bytes);
    }
    header(0, 3, file.len(), names.len());
    file.extend(names);
    let headers_at = file.len() as u64;
    file.extend(headers);
    file[..20].copy_from_slice(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3e\0");
    file[20] = 1;
    file[40..48].copy_from_slice(&headers_at.to_le_bytes());
    // The first section header is empty, the last one is that of the names.
    let (count, names_at) = (N as u16 + 2, N as u16 + 1);
    let sizes = [64, 56, 0, 64, count, names_at].map(u16::to_le_bytes);
    file[52..64].copy_from_slice(sizes.as_flattened());
    file
}
