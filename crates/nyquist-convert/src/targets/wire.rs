//! Numbers, texts and identities as bytes of a message between two processes of this program.

use crate::event::{MappedFile, Mapping, Pid};
use crate::files::opened::FileDenied;
use crate::files::view::MountView;
use nyquist_object::{Avma, BuildId, FileOffset};
use nyquist_system::{FileFacts, FileId, Ownership};
use std::io;

/// Writes a message.
#[derive(Debug, Default)]
pub(super) struct MessageWriter(pub(super) Vec<u8>);

impl MessageWriter {
    pub(super) fn byte(mut self, value: u8) -> Self {
        self.0.push(value);
        self
    }

    pub(super) fn number(mut self, value: impl Into<u64>) -> Self {
        self.0.extend_from_slice(&value.into().to_le_bytes());
        self
    }

    pub(super) fn bytes(self, bytes: &[u8]) -> Self {
        let mut writer = self.number(bytes.len() as u64);
        writer.0.extend_from_slice(bytes);
        writer
    }

    pub(super) fn user(self, user: Option<u32>) -> Self {
        self.number(user.map_or(u64::MAX, u64::from))
    }

    pub(super) fn view(self, view: MountView) -> Self {
        match view {
            MountView::Ours => self.byte(0),
            MountView::Other { mount, folder } => self.byte(1).number(mount).number(folder),
        }
    }

    pub(super) fn mapping(self, mapping: &Mapping) -> Self {
        let place = self.number(mapping.start.0).number(mapping.len).number(mapping.offset.0);
        let named = place.bytes(mapping.path.as_bytes());
        match &mapping.identity {
            MappedFile::Inode { major, minor, inode, generation } => {
                named.byte(1).number(*major).number(*minor).number(*inode).number(*generation)
            }
            MappedFile::BuildId(id) => named.byte(2).bytes(id.as_bytes()),
            // The others are of other systems.
            _ => named.byte(0),
        }
    }

    pub(super) fn facts(self, facts: &FileFacts) -> Self {
        let FileFacts { id, len, allocated, modified, changed, ownership } = facts;
        let sizes = self.number(id.device).number(id.number).number(*len).number(*allocated);
        let times = sizes.number(modified.0.cast_unsigned()).number(modified.1);
        let times = times.number(changed.0.cast_unsigned()).number(changed.1.cast_unsigned());
        let readable = u8::from(ownership.is_readable_by_all);
        times.number(ownership.user).byte(readable).number(ownership.links)
    }

    pub(super) fn denied(self, denied: &FileDenied) -> Self {
        match denied {
            FileDenied::Absent => self.byte(0),
            FileDenied::Link => self.byte(1),
            FileDenied::NotRegular => self.byte(2),
            FileDenied::Owner(user) => self.byte(3).number(*user),
            FileDenied::Writable => self.byte(4),
            FileDenied::Private => self.byte(5),
            FileDenied::Other => self.byte(6),
            FileDenied::Unreadable(error) => {
                self.byte(7).number(error.raw_os_error().unwrap_or_default().unsigned_abs())
            }
        }
    }
}

/// A number that may be left out: larger ones than any are none.
pub(super) fn known(number: u64) -> Option<u32> {
    u32::try_from(number).ok()
}

/// Reads a message. Anything that is not there or makes no sense is `None`.
#[derive(Debug)]
pub(super) struct MessageReader<'a>(pub(super) &'a [u8]);

impl<'a> MessageReader<'a> {
    pub(super) fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    pub(super) fn number(&mut self) -> Option<u64> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*number))
    }

    pub(super) fn short(&mut self) -> Option<u32> {
        u32::try_from(self.number()?).ok()
    }

    pub(super) fn pid(&mut self) -> Option<Pid> {
        self.short().map(Pid)
    }

    pub(super) fn bytes(&mut self) -> Option<&'a [u8]> {
        let len = usize::try_from(self.number()?).ok()?;
        let (bytes, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(bytes)
    }

    /// A number that may be left out, such as that of a user, in the inner form of [`known`].
    pub(super) fn user(&mut self) -> Option<u64> {
        self.number()
    }

    pub(super) fn view(&mut self) -> Option<MountView> {
        match self.byte()? {
            0 => Some(MountView::Ours),
            _ => Some(MountView::Other { mount: self.number()?, folder: self.number()? }),
        }
    }

    pub(super) fn mapping(&mut self, pid: Pid) -> Option<Mapping> {
        let (start, len) = (Avma(self.number()?), self.number()?);
        let offset = FileOffset(self.number()?);
        let path = String::from_utf8(self.bytes()?.to_vec()).ok()?;
        let identity = match self.byte()? {
            1 => MappedFile::Inode {
                major: self.short()?,
                minor: self.short()?,
                inode: self.number()?,
                generation: self.number()?,
            },
            2 => MappedFile::BuildId(BuildId::new(self.bytes()?)?),
            _ => MappedFile::Unknown,
        };
        Some(Mapping { pid: Some(pid), start, len, offset, path, identity })
    }

    pub(super) fn facts(&mut self) -> Option<FileFacts> {
        Some(FileFacts {
            id: FileId { device: self.number()?, number: self.number()? },
            len: self.number()?,
            allocated: self.number()?,
            modified: (self.number()?.cast_signed(), self.short()?),
            changed: (self.number()?.cast_signed(), self.number()?.cast_signed()),
            ownership: Ownership {
                user: self.short()?,
                is_readable_by_all: self.byte()? == 1,
                links: self.number()?,
            },
        })
    }

    pub(super) fn denied(&mut self) -> Option<FileDenied> {
        Some(match self.byte()? {
            1 => FileDenied::Link,
            2 => FileDenied::NotRegular,
            3 => FileDenied::Owner(self.short()?),
            4 => FileDenied::Writable,
            5 => FileDenied::Private,
            6 => FileDenied::Other,
            7 => FileDenied::Unreadable(io::Error::from_raw_os_error(i32::try_from(self.number()?).ok()?)),
            _ => FileDenied::Absent,
        })
    }
}
