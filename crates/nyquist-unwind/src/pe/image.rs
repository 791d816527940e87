//! The bytes of an image by their addresses. Each section is read when it is first needed.

use nyquist_object::pe::PeSection;
use nyquist_object::{ByteSource, Pe};

/// An image whose unwind information is being read.
pub(crate) struct PeImage<'a, S> {
    pe: &'a Pe<S>,
    sections: Vec<SectionContent>,
    /// How many bytes may still be read. Sections do not overlap, so all of them together are at most as long
    /// as the file.
    budget: u64,
    /// The section that was used last.
    last: usize,
}

enum SectionContent {
    Unread,
    Read(Vec<u8>),
}

impl<'a, S: ByteSource> PeImage<'a, S> {
    pub(crate) fn new(pe: &'a Pe<S>) -> Self {
        let sections = pe.sections().iter().map(|_| SectionContent::Unread).collect();
        Self { pe, sections, budget: pe.source().len(), last: 0 }
    }

    /// The `len` bytes at an address.
    pub(crate) fn get(&mut self, address: u32, len: u32) -> Option<&[u8]> {
        if len == 0 {
            return Some(&[]);
        }
        let sections = self.pe.sections();
        let offset = |section: &PeSection| {
            address.checked_sub(section.address.0).filter(|offset| *offset < section.size())
        };
        let number = match sections.get(self.last).and_then(offset) {
            Some(_) => self.last,
            None => sections.iter().position(|section| offset(section).is_some())?,
        };
        self.last = number;
        let offset = offset(sections.get(number)?)? as usize;
        self.section(number)?.get(offset..offset.checked_add(len as usize)?)
    }

    /// The number at an address.
    pub(crate) fn u32(&mut self, address: u32) -> Option<u32> {
        self.get(address, 4)?.first_chunk().copied().map(u32::from_le_bytes)
    }

    /// The contents of a section; empty for one that cannot be read.
    fn section(&mut self, number: usize) -> Option<&[u8]> {
        let section = self.pe.sections().get(number)?;
        let content = self.sections.get_mut(number)?;
        if matches!(content, SectionContent::Unread) {
            let rest = self.budget.checked_sub(section.size().into());
            self.budget = rest.unwrap_or(self.budget);
            *content =
                SectionContent::Read(rest.and_then(|_| self.pe.data(section).ok()).unwrap_or_default());
        }
        match content {
            SectionContent::Unread => None,
            SectionContent::Read(bytes) => Some(bytes),
        }
    }
}
