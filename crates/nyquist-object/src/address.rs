//! The four kinds of address. They have the same value in many binaries, so they are separate types: a
//! mix-up does not compile.

use std::fmt;
use std::ops::Sub;

macro_rules! address {
    ($(#[$doc:meta])* $name:ident, $repr:ty) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(transparent)]
        pub struct $name(pub $repr);

        impl $name {
            /// The address `bytes` further on, or `None` if it would leave the address space.
            #[must_use]
            pub fn checked_add(self, bytes: $repr) -> Option<Self> {
                self.0.checked_add(bytes).map(Self)
            }

            /// The address `bytes` before, or `None` if it would leave the address space.
            #[must_use]
            pub fn checked_sub(self, bytes: $repr) -> Option<Self> {
                self.0.checked_sub(bytes).map(Self)
            }

            /// The distance in bytes from `start` to this address, or `None` if this address is before it.
            pub fn offset_from(self, start: Self) -> Option<$repr> {
                self.0.checked_sub(start.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({:#x})"), self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:#x}", self.0)
            }
        }
    };
}

address! {
    /// An actual virtual memory address: the address of the byte in the running process.
    Avma, u64
}

address! {
    /// A stated virtual memory address: the address of the byte according to the object file.
    Svma, u64
}

address! {
    /// The distance in bytes from a module's image base: for ELF from the page of the first `PT_LOAD`, for
    /// Mach-O from `__TEXT`, for PE the RVA. The only kind of address stored in a profile.
    RelativeAddress, u32
}

address! {
    /// A position in an object file, in bytes from its start.
    FileOffset, u64
}

impl Sub<RelativeAddress> for Avma {
    type Output = Avma;

    /// The address of the image base. Wraps, like the loader's own arithmetic.
    fn sub(self, relative: RelativeAddress) -> Avma {
        Avma(self.0.wrapping_sub(u64::from(relative.0)))
    }
}

impl RelativeAddress {
    /// The address of a byte of a module whose image base is `base`; `None` if the byte is not within the
    /// 4 GiB after it.
    pub fn from_avma(avma: Avma, base: Avma) -> Option<Self> {
        u32::try_from(avma.0.wrapping_sub(base.0)).ok().map(Self)
    }

    /// The same as [`RelativeAddress::from_avma`], for an address in the file.
    pub fn from_svma(svma: Svma, base: Svma) -> Option<Self> {
        u32::try_from(svma.0.checked_sub(base.0)?).ok().map(Self)
    }

    /// The address in a file whose image base is `base`.
    #[must_use]
    pub fn to_svma(self, base: Svma) -> Svma {
        Svma(base.0.wrapping_add(u64::from(self.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_addresses_span_four_gibibytes() {
        let base = Avma(0x7f00_0000_0000);
        assert_eq!(RelativeAddress::from_avma(Avma(base.0 + 0x1234), base), Some(RelativeAddress(0x1234)));
        assert_eq!(RelativeAddress::from_avma(Avma(base.0 + 0x1_0000_0000), base), None);
        assert_eq!(RelativeAddress::from_avma(Avma(base.0 - 1), base), None);
    }

    #[test]
    fn a_relative_address_and_its_svma_are_inverse() {
        let base = Svma(0x40_0000);
        let relative = RelativeAddress::from_svma(Svma(0x40_1000), base).unwrap();
        assert_eq!(relative.to_svma(base), Svma(0x40_1000));
        assert_eq!(RelativeAddress::from_svma(Svma(0x3f_ffff), base), None);
    }
}
