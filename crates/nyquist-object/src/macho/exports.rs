//! The exports of a file: a trie of names (`LC_DYLD_EXPORTS_TRIE`, `LC_DYLD_INFO`; the nodes as in Apple's
//! `mach-o/loader.h`, at `EXPORT_SYMBOL_FLAGS_KIND_MASK`).

use super::MachO;
use crate::{ByteSource, ObjectError, Svma};

/// The flags of an export.
const KIND_MASK: u64 = 0x3;
const KIND_REGULAR: u64 = 0;
const REEXPORT: u64 = 0x8;

/// The maximum length of a name.
const MAX_NAME: usize = 64 << 10;

/// The maximum size of all names together in bytes, and the maximum per byte of the trie. Names of real
/// files share prefixes, so the trie is a few times smaller than they are.
const MAX_NAMES: usize = 256 << 20;
const MAX_RATIO: usize = 64;

/// An exported name, with an address in the same file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// The linker's name.
    pub name: Vec<u8>,
    /// The address of the function or data.
    pub address: Svma,
}

impl<S: ByteSource> MachO<S> {
    /// The file's own exports. Re-exports of other files, thread-local and absolute symbols are left
    /// out, and so is everything after damaged data.
    ///
    /// # Errors
    /// If the file is shorter than it claims.
    pub fn exports(&self) -> Result<Vec<Export>, ObjectError> {
        let Some(range) = self.exports_trie() else { return Ok(Vec::new()) };
        let bytes = self.source().read_range(range.offset.0, range.size)?;
        let base = self.image_base();
        let at = |(name, offset): (Vec<u8>, u64)| Some(Export { name, address: base.checked_add(offset)? });
        Ok(read(&bytes).into_iter().filter_map(at).collect())
    }
}

/// A node to read, and the length of the name up to it.
struct PendingNode {
    node: usize,
    name: Vec<u8>,
}

/// The names of a trie with their distances from the image base.
fn read(bytes: &[u8]) -> Vec<(Vec<u8>, u64)> {
    let mut found = Vec::new();
    let mut was_read = vec![false; bytes.len()];
    let mut budget = bytes.len().saturating_mul(MAX_RATIO).min(MAX_NAMES);
    let mut pending = vec![PendingNode { node: 0, name: Vec::new() }];
    while let Some(PendingNode { node, name }) = pending.pop() {
        // Each node has one parent, so a node that was read before is part of a cycle.
        match was_read.get_mut(node) {
            Some(was_read) if !*was_read => *was_read = true,
            _ => continue,
        }
        let Some((export, children)) = read_node(bytes, node) else { continue };
        for (edge, child) in children {
            let len = name.len() + edge.len();
            if len <= MAX_NAME && len < budget {
                budget -= len;
                pending.push(PendingNode { node: child, name: [&name, edge].concat() });
            }
        }
        found.extend(export.map(|offset| (name, offset)));
    }
    found
}

/// One node: the offset of the export with the name so far, and its children, each with the part that it
/// appends to the name.
type TrieNode<'a> = (Option<u64>, Vec<(&'a [u8], usize)>);

fn read_node(bytes: &[u8], node: usize) -> Option<TrieNode<'_>> {
    let mut rest = bytes.get(node..)?;
    let size = uleb(&mut rest)?;
    let (mut export, after) = rest.split_at_checked(usize::try_from(size).ok()?)?;
    let mut place = None;
    if let Some(flags) = uleb(&mut export)
        && flags & (KIND_MASK | REEXPORT) == KIND_REGULAR
    {
        // For an export with a resolver, this is the stub; the resolver's own address follows.
        place = uleb(&mut export);
    }
    let (&count, mut rest) = after.split_first()?;
    let mut children = Vec::new();
    for _ in 0..count {
        let Some(end) = rest.iter().position(|&byte| byte == 0) else { break };
        let (edge, after) = rest.split_at(end);
        rest = &after[1..];
        let Some(child) = uleb(&mut rest).and_then(|child| usize::try_from(child).ok()) else { break };
        children.push((edge, child));
    }
    Some((place, children))
}

/// Reads a LEB128 number from the front.
fn uleb(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `_add` at 0x1010, `_address` at 0x20, `_b` re-exported from library 1.
    fn trie() -> Vec<u8> {
        let mut bytes = vec![0, 2];
        bytes.extend(b"_add\0\x0f_b\0\x1e");
        bytes.resize(0x0f, 0);
        bytes.extend([3, 0, 0x90, 0x20, 1]);
        bytes.extend(b"ress\0\x1a");
        bytes.extend([2, 0, 0x20, 0]);
        bytes.extend([3, 8, 1, 0, 0]);
        bytes
    }

    #[test]
    fn the_names_along_the_edges_are_put_together() {
        let mut found = read(&trie());
        found.sort();
        assert_eq!(found, [(b"_add".to_vec(), 0x1010), (b"_address".to_vec(), 0x20)]);
    }

    #[test]
    fn tries_that_loop_or_grow_end() {
        assert_eq!(read(&[0, 1, b'a', 0, 0]), []);
        assert_eq!(read(&[]), []);
        // Many children, each of them the same node.
        let children = b"ab\0\x02".repeat(200);
        assert!(read(&[&[0, 200], &children[..]].concat()).len() < 2);
        // A long name that many children share.
        let offset = |at: u32| [at as u8 | 0x80, (at >> 7) as u8 | 0x80, (at >> 14) as u8];
        let first = [&[0, 1][..], &b"x".repeat(60_000), &[0], &offset(60_006)].concat();
        let edges: Vec<u8> =
            (0..255).flat_map(|leaf| [&b"y\0"[..], &offset(61_283 + 4 * leaf)].concat()).collect();
        let whole = [&first[..], &[0, 255], &edges, &[2, 0, 1, 0].repeat(255)].concat();
        let found = read(&whole);
        assert!((10..100).contains(&found.len()), "{}", found.len());
    }

    #[test]
    fn a_trie_that_is_cut_gives_what_comes_before() {
        let trie = trie();
        for len in 0..trie.len() {
            assert!(read(&trie[..len]).len() <= 2);
        }
    }
}
