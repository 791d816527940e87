//! Instructions of 64-bit x86 and the frame.

use crate::instruction::{Flow, State, number};

/// Before a function's first instruction: the return address is the only word of the frame.
pub const ENTRY: State = State { sp: Some(8), fp: None, saved_fp: None, saved_lr: Some(8), number: None };

pub fn flow(name: &str) -> Flow {
    let leaves = name.starts_with("jmp")
        || name.starts_with("ret")
        || matches!(name, "ud2" | "int3" | "hlt" | "rex64");
    Flow { branches: name.starts_with('j'), goes_on: !leaves }
}

/// After an instruction.
pub fn after(mut state: State, name: &str, operands: &[String]) -> State {
    let operand = |at: usize| operands.get(at).map_or("", String::as_str);
    let (to, from) = (operand(0), operand(1));
    match (name, to) {
        ("push", _) => {
            state.sp = state.sp.map(|sp| sp + 8);
            if to == "rbp" {
                state.saved_fp = state.sp;
            }
        }
        ("pop", _) => pop(&mut state, to),
        ("leave", _) => {
            state.sp = state.fp;
            pop(&mut state, "rbp");
        }
        ("sub", "rsp") if from == "rax" => {
            state.sp = state.sp.zip(state.number).map(|(sp, bytes)| sp + bytes);
        }
        ("sub", "rsp") => state.sp = state.sp.zip(number(from)).map(|(sp, bytes)| sp + bytes),
        ("add", "rsp") => state.sp = state.sp.zip(number(from)).map(|(sp, bytes)| sp - bytes),
        ("mov" | "lea", "rsp") => state.sp = place(&state, from),
        ("mov", "rbp") if from.contains('[') => {
            if place(&state, from) == state.saved_fp {
                state.saved_fp = None;
            }
            state.fp = None;
        }
        ("mov" | "lea", "rbp") => state.fp = place(&state, from),
        ("and", "rsp") => state.sp = None,
        // The caller's, and not the frame's own.
        ("mov", _) if to.contains('[') && from == "rbp" && state.fp.or(state.saved_fp).is_none() => {
            state.saved_fp = place(&state, to);
        }
        ("mov", "eax" | "rax") => state.number = number(from),
        (_, "eax" | "rax" | "ax" | "al") => state.number = None,
        _ => {}
    }
    state
}

fn pop(state: &mut State, register: &str) {
    state.sp = state.sp.map(|sp| sp - 8);
    if register == "rbp" {
        (state.fp, state.saved_fp) = (None, None);
    }
}

/// The place of a register, or of a register and a number in brackets.
fn place(state: &State, text: &str) -> Option<i64> {
    let inside = text.rsplit_once('[').map_or(text, |(_, inside)| inside.trim_end_matches(']'));
    let (register, offset) = match (inside.split_once(" + "), inside.split_once(" - ")) {
        (Some((register, offset)), _) => (register, number(offset)?),
        (None, Some((register, offset))) => (register, -number(offset)?),
        (None, None) => (inside, 0),
    };
    let base = match register {
        "rsp" => state.sp,
        "rbp" => state.fp,
        _ => None,
    };
    Some(base? - offset)
}
