//! The kinds of records.

/// Defines the kinds, and how their numbers are read.
macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $number:literal,)*) => {
        /// The kind of a record: its first byte.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Kind {
            $($(#[$doc])* $kind = $number,)*
        }

        impl Kind {
            /// The kind of a number; `None` for one of a later version.
            pub(crate) fn of(number: u8) -> Option<Self> {
                match number {
                    $($number => Some(Self::$kind),)*
                    _ => None,
                }
            }
        }
    };
}

kinds! {
    /// Rows that were added to the strings.
    Strings = 1,
    /// Rows that were added to the libs.
    Libs = 2,
    /// Rows that were added to the functions.
    Funcs = 3,
    /// Rows that were added to the frames.
    Frames = 4,
    /// Rows that were added to the stacks.
    Stacks = 5,
    /// A category, new or with more subcategories.
    Category = 6,
    /// A kind of marker.
    MarkerSchema = 7,
    /// Processes, new or changed.
    Processes = 8,
    /// Threads, new or changed.
    Threads = 9,
    /// Samples that were added to a thread.
    Samples = 10,
    /// Markers that were added to a thread.
    Markers = 11,
    /// A counter.
    Counter = 12,
    /// Values that were added to a counter.
    CounterSamples = 13,
    /// Where the names of a lib come from.
    NameSource = 14,
    /// A piece of code that was generated at run time.
    GeneratedCode = 15,
    /// Facts about the recording. The last one counts.
    Meta = 16,
    /// What a batch ends with: how far the recording has come. The last one counts.
    State = 17,
}
