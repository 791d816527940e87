//! The effect on the stack of the completed steps of a prologue.

use super::info::{FrameRegister, Operation};
use crate::rule::{CfaKind, Rule, SavedFramePointer};

/// `rbp` by its number in instructions.
const RBP: u8 = 5;

/// The base of the canonical frame address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CfaBase {
    StackPointer,
    /// A register by its number in instructions.
    Register(u8),
}

/// Where the caller's frame pointer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FramePointerLocation {
    InRegister,
    /// Pushed at a distance from the base of the canonical frame address.
    Pushed(i64),
    /// Stored at a distance from it.
    Stored(i64),
    /// At a place that no rule can express.
    Elsewhere,
}

/// The rule of a frame where `operations` have been done, given in the order in which they have to be undone.
///
/// The frame is undone as in "Unwind procedure", but with distances instead of addresses.
pub(super) fn rule(
    register: Option<FrameRegister>,
    operations: impl Iterator<Item = Operation> + Clone,
) -> Rule {
    let mut base = CfaBase::StackPointer;
    let mut distance: i64 = 0;
    let mut saved = FramePointerLocation::InRegister;
    // Registers that were stored are above the frame register once there is one, and above the stack pointer
    // before.
    let has_frame = operations.clone().any(|operation| operation == Operation::SetFrame);
    let frame_base = register.filter(|_| has_frame).map_or(0, |register| -i64::from(register.offset));
    for operation in operations {
        match operation {
            Operation::Push(pushed) => {
                if pushed == RBP {
                    saved = FramePointerLocation::Pushed(distance);
                }
                distance += 8;
            }
            Operation::Allocate(size) => distance += i64::from(size),
            Operation::SetFrame => {
                let Some(register) = register else { return Rule::SLOW };
                (base, distance) = (CfaBase::Register(register.number), frame_base);
                // Later pushes are relative to the stack pointer.
                if matches!(saved, FramePointerLocation::Pushed(_)) {
                    saved = FramePointerLocation::Elsewhere;
                }
            }
            Operation::Save(RBP, offset) => {
                saved = FramePointerLocation::Stored(frame_base + i64::from(offset));
            }
            Operation::Save(..) => {}
            Operation::MachineFrame(_) => return Rule::SLOW,
        }
    }
    to_rule(base, distance + 8, saved).unwrap_or(Rule::SLOW)
}

fn to_rule(base: CfaBase, cfa: i64, saved: FramePointerLocation) -> Option<Rule> {
    let kind = match base {
        CfaBase::StackPointer => CfaKind::StackPointer,
        CfaBase::Register(RBP) => CfaKind::FramePointer,
        CfaBase::Register(_) => return None,
    };
    let operand = i32::try_from(cfa).ok()?;
    match saved {
        FramePointerLocation::InRegister => Rule::new(kind, operand, SavedFramePointer::InRegister, 0),
        FramePointerLocation::Pushed(place) | FramePointerLocation::Stored(place) => {
            Rule::new(kind, operand, SavedFramePointer::FromCfa, place - cfa)
        }
        FramePointerLocation::Elsewhere => None,
    }
}
