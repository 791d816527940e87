//! Identifiers of providers, of classes of events, and of PDB files.

use std::fmt;

/// A globally unique identifier, as the number that its text spells: `3d6fa8d0-fe05-11d0-9dda-00c04fd7ba7c` is
/// `Guid(0x3d6fa8d0_fe05_11d0_9dda_00c04fd7ba7c)`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Guid(pub u128);

impl Guid {
    /// From its bytes in memory and in files: a number of 4 bytes, two of 2 bytes, all little-endian, and
    /// 8 bytes.
    pub const fn from_bytes(mut bytes: [u8; 16]) -> Self {
        let (numbers, _) = bytes.split_at_mut(8);
        let (first, others) = numbers.split_at_mut(4);
        let (second, third) = others.split_at_mut(2);
        first.reverse();
        second.reverse();
        third.reverse();
        Self(u128::from_be_bytes(bytes))
    }

    /// Its bytes in memory and in files.
    pub const fn to_bytes(self) -> [u8; 16] {
        // The exchange of bytes undoes itself.
        Self::from_bytes(self.0.to_be_bytes()).0.to_be_bytes()
    }
}

impl fmt::Display for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{:032x}", self.0);
        write!(f, "{}-{}-{}-{}-{}", &text[..8], &text[8..12], &text[12..16], &text[16..20], &text[20..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_text_as_microsoft_documents_them() {
        let bytes =
            [0xd0, 0xa8, 0x6f, 0x3d, 0x05, 0xfe, 0xd0, 0x11, 0x9d, 0xda, 0x00, 0xc0, 0x4f, 0xd7, 0xba, 0x7c];
        let guid = Guid::from_bytes(bytes);
        assert_eq!(guid.to_string(), "3d6fa8d0-fe05-11d0-9dda-00c04fd7ba7c");
        assert_eq!(guid, Guid(0x3d6f_a8d0_fe05_11d0_9dda_00c0_4fd7_ba7c));
        assert_eq!(guid.to_bytes(), bytes);
    }
}
