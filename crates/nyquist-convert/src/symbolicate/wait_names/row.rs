//! What a function of a runtime says about a wait.
//!
//! A row has functions of one runtime with one meaning. Names are compared without what compilers add.

use super::function_name::FunctionName;
use crate::event::WaitReason;

/// Functions of one runtime with one meaning.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) runtime: &'static str,
    pub(super) meaning: Meaning,
    pub(super) follows: Follows,
    /// Whether the lock's memory has the thread that holds it, as the recorder reads it.
    pub(super) has_owner: bool,
    pub(super) functions: &'static [Function],
}

/// What a function says about a wait that began in it or in what it called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// It waits for this kind of thing.
    Reason(WaitReason),
    /// Its thread is a worker of this runtime, which has nothing to do.
    Idle(&'static str),
    /// Nothing.
    Through,
}

/// Which functions the wait may have passed before, from the innermost one outwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Follows {
    /// None that has a reason: the function makes the system call itself. It may also call code of users.
    Nothing,
    /// Any, or none.
    Any,
    /// One at least: the function may also wait for other things.
    Another,
    /// One of the same runtime, because the function's name alone is too common.
    Own,
}

/// A function's name: the end of its path (`Condvar::wait`), or, where that is too common, the beginning of the
/// path, two dots, and the end (`std..Once::call`, `tokio::loom..*`). A name of C or Go is compared as a whole.
/// `*` stands for any characters within a part of the path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Function(pub(super) &'static str);

impl Function {
    /// Whether a name is this function's.
    pub(super) fn matches(self, name: &FunctionName) -> bool {
        match self.0.split_once("..") {
            Some((first, "*")) => name.begins_with(first),
            Some((first, last)) => name.begins_with(first) && name.ends_with(last),
            None if self.0.contains("::") => name.ends_with(self.0),
            None => name.is_alone() && name.ends_with(self.0),
        }
    }
}

impl Row {
    /// Whether a function is one of the row's.
    pub(super) fn is_of(&self, name: &FunctionName) -> bool {
        self.functions.iter().any(|function| function.matches(name))
    }

    /// Whether the row says something after the row before, if there is one.
    pub(super) fn may_follow(&self, before: Option<&Row>) -> bool {
        match self.follows {
            Follows::Nothing => before.is_none_or(|before| self.is_part_of(before)),
            Follows::Any => true,
            Follows::Another => before.is_some(),
            Follows::Own => before.is_some_and(|before| before.runtime == self.runtime),
        }
    }

    /// Whether another row has functions of the same runtime for the same reason, which call each other.
    fn is_part_of(&self, other: &Row) -> bool {
        other.runtime == self.runtime && other.meaning == self.meaning
    }

    /// The meaning, given what the system call waits for. A futex may be anything. Of a worker that waits for
    /// events or a time, functions may say that it has nothing to do.
    pub(super) fn meaning_for(&self, first: WaitReason) -> Meaning {
        let is_said = match first {
            WaitReason::Lock | WaitReason::ReadWriteLock => self.is_contention(),
            WaitReason::Events | WaitReason::Sleep => matches!(self.meaning, Meaning::Idle(_)),
            _ => true,
        };
        if is_said { self.meaning } else { Meaning::Through }
    }

    /// Whether callers change nothing any more.
    pub(super) fn is_final(&self) -> bool {
        self.is_contention() || matches!(self.meaning, Meaning::Idle(_))
    }

    fn is_contention(&self) -> bool {
        matches!(self.meaning, Meaning::Reason(WaitReason::Lock | WaitReason::ReadWriteLock))
    }
}
