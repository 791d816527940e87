//! Ids: indexes into the tables of a profile, one type per table.

use std::fmt;
use std::num::NonZeroU32;

use serde::{Serialize, Serializer};

/// Defines an id as an index whose `Option` has the same size, because samples and stacks contain millions of
/// them.
macro_rules! id {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(NonZeroU32);

        impl $name {
            /// The id of the row at `index`. Indexes beyond `u32::MAX - 1` all become the last one, where the
            /// tables end.
            pub fn from_index(index: usize) -> Self {
                let index = u32::try_from(index).unwrap_or(u32::MAX);
                Self(NonZeroU32::MIN.saturating_add(index))
            }

            /// The index of the row.
            pub fn index(self) -> usize {
                self.0.get() as usize - 1
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.index())
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_u32(self.0.get() - 1)
            }
        }
    )*};
}

id! {
    /// A string in [`Profile::strings`](crate::Profile::strings).
    StringId;
    /// A lib in [`Profile::libs`](crate::Profile::libs).
    LibId;
    /// A source file in [`Profile::sources`](crate::Profile::sources).
    SourceId;
    /// A function in [`Profile::funcs`](crate::Profile::funcs).
    FuncId;
    /// A symbol-table entry in [`Profile::native_symbols`](crate::Profile::native_symbols).
    NativeSymbolId;
    /// A frame in [`Profile::frames`](crate::Profile::frames).
    FrameId;
    /// A stack in [`Profile::stacks`](crate::Profile::stacks).
    StackId;
    /// A process in [`Profile::processes`](crate::Profile::processes).
    ProcessIndex;
    /// A thread in [`Profile::threads`](crate::Profile::threads).
    ThreadIndex;
    /// A category in [`Profile::categories`](crate::Profile::categories).
    CategoryId;
    /// A kind of marker in [`Profile::marker_schemas`](crate::Profile::marker_schemas).
    MarkerSchemaId;
    /// A counter in [`Profile::counters`](crate::Profile::counters).
    CounterId;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_optional_id_takes_four_bytes() {
        assert_eq!(size_of::<Option<StackId>>(), 4);
    }

    #[test]
    fn an_id_gives_back_its_index() {
        for index in [0, 1, 77, u32::MAX as usize - 1] {
            assert_eq!(StackId::from_index(index).index(), index);
        }
    }

    #[test]
    fn an_index_too_large_stays_the_last_one() {
        assert_eq!(StackId::from_index(usize::MAX).index(), u32::MAX as usize - 1);
    }
}
