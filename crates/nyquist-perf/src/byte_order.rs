//! The byte order of numbers: that of the machine that wrote them.

/// The byte order of numbers in records and files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ByteOrder {
    /// The lowest byte first, as on x86_64, aarch64 and riscv64.
    #[default]
    Little,
    /// The highest byte first, as on s390x and big-endian powerpc.
    Big,
}

macro_rules! number {
    ($name:ident) => {
        #[doc = concat!("Reads a `", stringify!($name), "`.")]
        #[inline]
        pub fn $name(self, bytes: [u8; size_of::<$name>()]) -> $name {
            match self {
                Self::Little => $name::from_le_bytes(bytes),
                Self::Big => $name::from_be_bytes(bytes),
            }
        }
    };
}

impl ByteOrder {
    number!(u16);
    number!(u32);
    number!(u64);
}
