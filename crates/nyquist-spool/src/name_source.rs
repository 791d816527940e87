//! Where the names of a lib come from, as far as that can be used by another process, or after a restart of the
//! machine.

use crate::batch::Batch;
use crate::fields::{Fields, put_bytes, put_number, put_option, put_optional_text};
use crate::identity::{identity, put_identity};
use crate::kind::Kind;
use nyquist_object::ModuleId;

/// Where the names of a lib come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NameSource {
    /// A file.
    File {
        /// The bytes of the path under which it was mapped.
        path: Vec<u8>,
        /// The name of its debug info; empty if it is not known.
        debug_name: String,
        /// Its identity. Another file at the path is not used.
        id: Option<ModuleId>,
    },
    /// An image that is in no file.
    Image(Vec<u8>),
    /// The kernel that ran.
    Kernel {
        /// The base of its relative addresses. It differs after a restart.
        base: u64,
    },
    /// Code that was generated at run time. The functions that were used are [`GeneratedCode`].
    Generated {
        /// Whether names are plain, and not in the form of a compiler that ran in the process.
        is_plain: bool,
        /// The base of its relative addresses in the process; 0 if that is not known.
        base: u64,
    },
    /// None is known.
    Unknown,
}

/// A piece of code that was generated at run time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GeneratedCode {
    /// The relative address of its first byte.
    pub start: u32,
    /// Its size in bytes.
    pub size: u32,
    /// Its name as the compiler wrote it.
    pub name: String,
    /// The file and the line of a relative address in it.
    pub line: Option<(u32, String, u32)>,
}

const UNKNOWN: u8 = 0;
const FILE: u8 = 1;
const IMAGE: u8 = 2;
const KERNEL: u8 = 3;
const GENERATED: u8 = 4;

impl NameSource {
    /// Adds the source of a lib to a batch, given the lib's index.
    pub fn add_to(&self, batch: &mut Batch, lib: usize) {
        batch.add(Kind::NameSource, |out| {
            put_number(out, lib as u64);
            match self {
                Self::Unknown => out.push(UNKNOWN),
                Self::File { path, debug_name, id } => {
                    out.push(FILE);
                    put_bytes(out, path);
                    put_bytes(out, debug_name.as_bytes());
                    put_identity(out, id.as_ref());
                }
                Self::Image(image) => {
                    out.push(IMAGE);
                    put_bytes(out, image);
                }
                Self::Kernel { base } => {
                    out.push(KERNEL);
                    put_number(out, *base);
                }
                Self::Generated { is_plain, base } => {
                    out.extend([GENERATED, u8::from(*is_plain)]);
                    put_number(out, *base);
                }
            }
        });
    }

    /// The lib's index and its source.
    pub(crate) fn read(fields: &mut Fields<'_>) -> Option<(usize, Self)> {
        let lib = fields.small()?;
        let source = match fields.byte()? {
            UNKNOWN => Self::Unknown,
            FILE => Self::File {
                path: fields.bytes()?.to_vec(),
                debug_name: fields.owned()?,
                id: identity(fields)?,
            },
            IMAGE => Self::Image(fields.bytes()?.to_vec()),
            KERNEL => Self::Kernel { base: fields.number()? },
            GENERATED => Self::Generated { is_plain: fields.flag()?, base: fields.number()? },
            _ => return None,
        };
        Some((lib, source))
    }
}

impl GeneratedCode {
    /// Adds a piece of a lib's code to a batch, given the lib's index.
    pub fn add_to(&self, batch: &mut Batch, lib: usize) {
        batch.add(Kind::GeneratedCode, |out| {
            for number in [lib as u64, self.start.into(), self.size.into()] {
                put_number(out, number);
            }
            put_bytes(out, self.name.as_bytes());
            let line = self.line.as_ref();
            put_optional_text(out, line.map(|(_, file, _)| file.as_str()));
            put_option(out, line.map(|(address, ..)| u64::from(*address)));
            put_option(out, line.map(|(.., number)| u64::from(*number)));
        });
    }

    /// The lib's index and the code.
    pub(crate) fn read(fields: &mut Fields<'_>) -> Option<(usize, Self)> {
        let lib = fields.small()?;
        let [start, size] = [fields.small()?, fields.small()?];
        let name = fields.owned()?;
        let file = fields.optional_text()?;
        let [address, number] = [fields.option()?, fields.option()?];
        let small = |number: u64| u32::try_from(number).ok();
        let line = match (address.map(small), file, number.map(small)) {
            (Some(address), Some(file), Some(number)) => Some((address?, file, number?)),
            _ => None,
        };
        Some((lib, Self { start, size, name, line }))
    }
}
