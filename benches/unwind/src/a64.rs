//! Instructions of 64-bit ARM and the frame.

use crate::instruction::{Flow, State, number};

/// Before a function's first instruction.
pub const ENTRY: State = State { sp: Some(0), fp: None, saved_fp: None, saved_lr: None, number: None };

pub fn flow(name: &str) -> Flow {
    let is_conditional = name.starts_with("b.") || name.starts_with("cb") || name.starts_with("tb");
    let leaves = matches!(name, "b" | "ret" | "retaa" | "retab" | "br" | "brk" | "udf" | "hlt");
    Flow { branches: name == "b" || is_conditional, goes_on: !leaves }
}

/// After an instruction.
pub fn after(mut state: State, name: &str, operands: &[String]) -> State {
    let operand = |at: usize| operands.get(at).map_or("", String::as_str);
    match name {
        "stp" | "str" | "ldp" | "ldr" => access(&mut state, name, operands),
        "sub" | "add" | "mov" => {
            let amount = if name == "mov" { Some(0) } else { amount(&state, operands) };
            let amount = amount.map(|amount| if name == "add" { -amount } else { amount });
            let base = match operand(1) {
                "sp" => state.sp,
                "x29" => state.fp,
                _ => None,
            };
            let place = base.zip(amount).map(|(base, amount)| base + amount);
            match operand(0) {
                "sp" => state.sp = place,
                "x29" => state.fp = place,
                // By this register the stack is probed on Windows, in units of 16 bytes.
                "x15" | "w15" => state.number = number(operand(1)).filter(|_| name == "mov"),
                _ => {}
            }
        }
        _ if matches!(operand(0), "x15" | "w15") => state.number = None,
        _ => {}
    }
    state
}

/// A store or a load of one register or two.
fn access(state: &mut State, name: &str, operands: &[String]) {
    let count = if name.ends_with('p') { 2 } else { 1 };
    let memory = operands.get(count).map_or("", String::as_str);
    let Some((sp, inside)) = state.sp.zip(memory.strip_prefix("[sp")) else { return };
    let Some((offset, rest)) = inside.split_once(']') else { return };
    let place = sp - number(offset.trim_start_matches(',')).unwrap_or(0);
    for (register, word) in operands.iter().take(count).zip([0, 8]) {
        let saved = match register.as_str() {
            "x29" => &mut state.saved_fp,
            "x30" => &mut state.saved_lr,
            _ => continue,
        };
        *saved = name.starts_with("st").then_some(place - word);
        if register == "x29" && name.starts_with("ld") {
            state.fp = None;
        }
    }
    let after = operands.get(count + 1).and_then(|text| number(text));
    state.sp = Some(match (rest, after) {
        ("!", _) => place,
        (_, Some(bytes)) => sp - bytes,
        (_, None) => sp,
    });
}

/// The number that an addition or a subtraction adds, with its shift.
fn amount(state: &State, operands: &[String]) -> Option<i64> {
    let shift = operands.get(3).map_or(Some(0), |shift| number(shift.rsplit(' ').next()?))?;
    let value = operands.get(2)?;
    let value = if value == "x15" { state.number } else { number(value) };
    Some(value? << shift)
}
