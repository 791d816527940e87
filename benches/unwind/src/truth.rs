//! What the instructions of a function do to its frame, by following them from the first one along every branch: an
//! oracle for unwind information that shares nothing with it. Instructions are read as `llvm-objdump` prints them.

use crate::instruction::{State, number};
use crate::{a64, x64};
use anyhow::{Result, ensure};
use nyquist_object::Architecture;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// An instruction: its name and its operands.
pub type Instruction = (String, Vec<String>);

/// Instructions by their addresses.
pub type Instructions = BTreeMap<u64, Instruction>;

/// All instructions of a file's code.
pub fn instructions(path: &Path) -> Result<Instructions> {
    let mut command = Command::new("llvm-objdump");
    let output = command.args(["-d", "--no-show-raw-insn", "--x86-asm-syntax=intel"]).arg(path).output()?;
    ensure!(output.status.success(), "llvm-objdump: {}", output.status);
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.lines().filter_map(instruction).collect())
}

fn instruction(line: &str) -> Option<(u64, Instruction)> {
    let (address, rest) = line.split_once(':')?;
    let address = u64::from_str_radix(address.trim(), 16).ok()?;
    let rest = rest.trim().split(" //").next()?.split(';').next()?.trim_end();
    let (name, operands) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let operands = operands.split(" <").next()?;
    let mut parts: Vec<String> = Vec::new();
    for part in operands.split(',').map(str::trim) {
        match parts.last_mut() {
            Some(last) if last.contains('[') && !last.contains(']') => *last = format!("{last},{part}"),
            _ => parts.push(part.to_owned()),
        }
    }
    (!name.is_empty()).then(|| (address, (name.to_owned(), parts)))
}

/// The state before each instruction of a function that can be reached from its first one.
pub fn states(
    architecture: Architecture,
    instructions: &Instructions,
    start: u64,
    end: u64,
) -> BTreeMap<u64, State> {
    let is_arm = architecture == Architecture::Aarch64;
    let mut found: BTreeMap<u64, State> = BTreeMap::new();
    let entry = if is_arm { a64::ENTRY } else { x64::ENTRY };
    let mut open = vec![(start, entry)];
    while let Some((address, state)) = open.pop() {
        let mut inside = instructions.range(address..end.max(address));
        let Some((_, (name, operands))) = inside.next().filter(|(at, _)| **at == address) else { continue };
        if found.insert(address, state).is_some() {
            continue;
        }
        let after =
            if is_arm { a64::after(state, name, operands) } else { x64::after(state, name, operands) };
        let flow = if is_arm { a64::flow(name) } else { x64::flow(name) };
        let target = operands.last().and_then(|operand| number(operand)).map(|target| target as u64);
        if flow.branches {
            open.extend(target.map(|target| (target, after)));
        }
        if flow.goes_on {
            open.extend(inside.next().map(|(next, _)| (*next, after)));
        }
    }
    found
}
