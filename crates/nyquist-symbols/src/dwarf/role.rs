//! The role of an entry in the searches for the functions around an address, and for the qualifiers of a
//! name.

use gimli::constants::{self, DwTag};

/// The role of an entry in the search for the functions around an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// A function.
    Function,
    /// A call that was inlined.
    Inlined,
    /// Anything else.
    Other,
}

/// An entry that qualifies the names of the functions in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Qualifier {
    Namespace,
    /// A structure, a class, a union or an enumeration.
    Type,
    Function,
}

impl Qualifier {
    pub(crate) fn of(tag: DwTag) -> Option<Self> {
        Some(match tag {
            constants::DW_TAG_namespace => Self::Namespace,
            constants::DW_TAG_structure_type
            | constants::DW_TAG_class_type
            | constants::DW_TAG_union_type
            | constants::DW_TAG_interface_type
            | constants::DW_TAG_enumeration_type => Self::Type,
            constants::DW_TAG_subprogram => Self::Function,
            _ => return None,
        })
    }
}
