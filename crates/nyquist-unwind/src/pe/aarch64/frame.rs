//! The effect on the stack of the operations that have to be undone.

use super::codes::{FRAME_POINTER, LINK, Operation};
use crate::rule::{CfaKind, Rule};

/// The base of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PlaceBase {
    StackPointer,
    FramePointer,
}

/// A place on the stack, in bytes from its base.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FrameSlot {
    base: PlaceBase,
    distance: i64,
}

impl FrameSlot {
    fn above(self, bytes: i64) -> Self {
        Self { distance: self.distance + bytes, ..self }
    }

    /// Its distance from another place, if both have the same base.
    fn from(self, other: Self) -> Option<i64> {
        (self.base == other.base).then_some(self.distance - other.distance)
    }
}

/// The rule of a frame whose operations up to the first end have to be undone.
pub(super) fn rule(operations: &[Operation]) -> Rule {
    plain_rule(operations).unwrap_or(Rule::SLOW)
}

fn plain_rule(operations: &[Operation]) -> Option<Rule> {
    let mut sp = FrameSlot { base: PlaceBase::StackPointer, distance: 0 };
    let (mut frame_pointer, mut link) = (None, None);
    for operation in operations {
        match operation {
            Operation::Allocate(bytes) => sp = sp.above((*bytes).into()),
            // After the frame pointer has been restored, it is the caller's.
            Operation::SetFrame(_) if frame_pointer.is_some() => return None,
            Operation::SetFrame(above) => {
                sp = FrameSlot { base: PlaceBase::FramePointer, distance: -i64::from(*above) };
            }
            Operation::Save(save) => {
                for (register, word) in save.registers.into_iter().zip([0, 8]) {
                    let place = Some(sp.above(i64::from(save.offset) + word));
                    match register {
                        FRAME_POINTER => frame_pointer = place,
                        LINK => link = place,
                        _ => {}
                    }
                }
                sp = sp.above(save.moved.into());
            }
            Operation::Nothing | Operation::PartEnd => {}
            Operation::MachineFrame | Operation::Context | Operation::Interrupted => return None,
            Operation::End => break,
        }
    }
    let kind = match sp.base {
        PlaceBase::StackPointer => CfaKind::StackPointer,
        PlaceBase::FramePointer => CfaKind::FramePointer,
    };
    // If a rule cannot express where one of the two is stored, there is no rule.
    let from_cfa = |place: Option<FrameSlot>| match place {
        None => Some(None),
        Some(place) => place.from(sp).map(Some),
    };
    Rule::with_saved(kind, i32::try_from(sp.distance).ok()?, from_cfa(frame_pointer)?, from_cfa(link)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_counted_from_the_end_of_the_frame() {
        use Operation as Op;
        let check = |operations: &[Operation], kind, cfa, fp, lr| {
            assert_eq!(rule(operations), Rule::with_saved(kind, cfa, fp, lr).unwrap(), "{operations:?}");
        };
        let (sp, fp) = (CfaKind::StackPointer, CfaKind::FramePointer);
        check(&[], sp, 0, None, None);
        check(&[Op::Allocate(32), Op::End, Op::Allocate(16)], sp, 32, None, None);
        let record = Op::pushed_pair(29, 30, 48);
        check(&[Op::SetFrame(0), record, Op::pushed_pair(19, 20, 16)], fp, 64, Some(-64), Some(-56));
        check(&[record, Op::PartEnd, Op::Allocate(16)], sp, 64, Some(-64), Some(-56));
        check(&[Op::SetFrame(16), Op::pair(29, 30, 16), Op::Allocate(32)], fp, 16, Some(-16), Some(-8));
        check(&[Op::pair(21, 30, 16), Op::pushed_pair(19, 20, 32)], sp, 32, None, Some(-8));
    }

    #[test]
    fn what_no_rule_can_say_is_slow() {
        use Operation as Op;
        for operations in [
            &[Op::MachineFrame][..],
            &[Op::Context],
            &[Op::Interrupted],
            &[Op::pair(30, 31, 8), Op::SetFrame(0)],
            &[Op::pair(29, 31, 8), Op::SetFrame(0)],
            &[Op::Allocate(u32::MAX)],
        ] {
            assert_eq!(rule(operations), Rule::SLOW, "{operations:?}");
        }
    }
}
