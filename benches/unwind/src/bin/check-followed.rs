//! The rules that instructions alone give, beside those of the unwind information, at every byte of the functions of
//! files with symbols. Fails on any class of difference that known-differences.txt lacks, or has fewer of.

use anyhow::{Context, Result, ensure};
use nyquist_object::{Elf, FileSource, RelativeAddress};
use nyquist_unwind::Module;
use nyquist_unwind::rule::{CfaKind, Rule};
use nyquist_unwind::rule_table::RuleTable;
use nyquist_unwind_bench::known;
use std::collections::BTreeMap;
use std::fs::File;

/// How a rule differs from the one of the unwind information; `None` where it says the same, or where the frame pointer
/// says it there and the stack pointer here.
fn difference(found: Rule, described: Rule) -> Option<&'static str> {
    let saved = |rule: Rule| (rule.saved_frame_pointer(), rule.saved_offset());
    match (found.kind(), described.kind()) {
        (CfaKind::Uncovered, _) => Some("instructions: no rule"),
        (CfaKind::StackPointer, CfaKind::FramePointer) if saved(found) == saved(described) => None,
        (kind, other) if kind != other => Some("instructions: another kind of rule"),
        _ if found.operand() != described.operand() => Some("instructions: another CFA"),
        _ if saved(found) != saved(described) => Some("instructions: another place of the frame pointer"),
        _ => None,
    }
}

fn check(path: &str) -> Result<()> {
    let elf = Elf::open(FileSource::new(File::open(path)?))?;
    let (described, followed) = (Module::from_elf(&elf)?, Module::from_elf_instructions(&elf)?);
    let (mut bytes, mut differences) = (0, BTreeMap::<_, usize>::new());
    let regions = described.tables().flat_map(RuleTable::regions);
    let covered = regions.flat_map(|region| region.start..region.end);
    for address in covered.map(RelativeAddress) {
        let rule = described.rule(address);
        if !matches!(rule.kind(), CfaKind::StackPointer | CfaKind::FramePointer) {
            continue;
        }
        bytes += 1;
        if let Some(class) = difference(followed.inferred_rule(address), rule) {
            *differences.entry(class).or_default() += 1;
        }
    }
    ensure!(bytes > 0, "no function has unwind information");
    println!("{path}: {bytes} bytes");
    differences.into_iter().try_for_each(|(class, count)| known::check(class, count, bytes))
}

fn main() -> Result<()> {
    let mut files = std::env::args().skip(1).peekable();
    ensure!(files.peek().is_some(), "check-followed FILE...");
    files.try_for_each(|path| check(&path).with_context(|| path.clone()))
}
