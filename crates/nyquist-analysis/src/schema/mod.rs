//! The schema of answers: the rows of reports, queries and the viewer's API, with the same names in all of them.
//!
//! A row is made of a result by [`Rows`], and written by serde. Whoever prints it as text reads the same members.
//! With the feature `schema`, `document` describes all rows, for the reference and for the page's types.

mod amounts;
#[cfg(feature = "schema")]
pub mod document;
mod functions;
mod libs;
mod lines;
mod list;
mod markers;
mod summary;
mod threads;
mod waits;

use std::borrow::Cow;

use nyquist_profile::{FuncId, Profile};

use crate::view::View;

pub use amounts::{Amounts, Totals, Whole};
pub use functions::{CallSiteRow, FunctionDetails, FunctionRow, NeighborRow, NodeRow, PathNodeRow};
pub use libs::{GroupRow, LibRow};
pub use lines::{InstructionRow, LineRow, SourceLineRow};
pub use list::List;
pub use markers::MarkerRow;
pub use summary::{CounterRow, Summary};
pub use threads::{ProcessRow, ThreadRow, TimelinePart};
pub use waits::{WaitPlaceRow, WaitRow, WaitStack, WaitThread};

/// The first number of the functions that stand for collapsed libs. It is beyond all functions of a profile, and stays
/// the same when the profile grows.
pub const FIRST_COLLAPSED_LIB: usize = 1 << 31;

/// The number of a function, or of a collapsed lib.
pub fn function_number(func: FuncId, profile: &Profile) -> usize {
    let lib = func.index().checked_sub(profile.funcs().len());
    lib.map_or(func.index(), |lib| FIRST_COLLAPSED_LIB + lib)
}

/// The form of functions' names.
type NameForm = for<'s> fn(&'s str) -> Cow<'s, str>;

/// Makes the rows of a view.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a> {
    profile: &'a Profile,
    whole: Whole,
    name: NameForm,
}

impl<'a> Rows<'a> {
    /// Rows with shares of the whole view, and with whole names.
    pub fn of(view: &View<'a>) -> Self {
        Self { profile: view.profile(), whole: Whole::of(view), name: |name| Cow::Borrowed(name) }
    }

    /// The same with names of another form.
    #[must_use]
    pub fn with_names(self, name: NameForm) -> Self {
        Self { name, ..self }
    }

    /// What the amounts are parts of.
    pub fn whole(&self) -> Whole {
        self.whole
    }

    /// The handle of a function, by which commands find it in the same file.
    pub fn handle(&self, func: FuncId) -> String {
        format!("f-{}", function_number(func, self.profile))
    }
}
