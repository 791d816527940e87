//! The declarations of functions, with the types of their arguments (Microsoft's `cvinfo.h`, "LEAF_ENUM_e").

use super::msf::Msf;
use super::types::{FIRST_RECORD, TypeRecord, TypeRecords};
use nyquist_object::Cursor;

/// The streams that have fixed numbers.
const TYPE_STREAM: usize = 2;
const ID_STREAM: usize = 4;

/// Kinds of records.
const LF_MODIFIER: u16 = 0x1001;
const LF_POINTER: u16 = 0x1002;
const LF_PROCEDURE: u16 = 0x1008;
const LF_MFUNCTION: u16 = 0x1009;
const LF_ARGLIST: u16 = 0x1201;
const LF_ARRAY: u16 = 0x1503;
const LF_CLASS: u16 = 0x1504;
const LF_STRUCTURE: u16 = 0x1505;
const LF_UNION: u16 = 0x1506;
const LF_ENUM: u16 = 0x1507;
const LF_INTERFACE: u16 = 0x1519;
const LF_FUNC_ID: u16 = 0x1601;
const LF_MFUNC_ID: u16 = 0x1602;
const LF_STRING_ID: u16 = 0x1605;

/// The nesting depth of types beyond which the rest of a type is left out.
const MAX_DEPTH: u32 = 24;

/// The most records for one name, and its greatest length.
const MAX_RECORDS: u32 = 2048;
const MAX_NAME: usize = 64 << 10;

/// The types and ids of a program.
pub(super) struct TypeNames {
    types: TypeRecords,
    ids: TypeRecords,
}

/// A name that is being written.
struct TypeNameWriter<'a> {
    names: &'a TypeNames,
    msf: &'a Msf,
    text: String,
    records: u32,
}

impl TypeNames {
    pub(super) fn new(msf: &Msf) -> Self {
        Self { types: TypeRecords::new(msf, TYPE_STREAM), ids: TypeRecords::new(msf, ID_STREAM) }
    }

    /// A function's name with the types of its arguments, given the number of its type. Only the name if it
    /// has no type.
    pub(super) fn function(&self, msf: &Msf, name: &str, kind: u32) -> String {
        let mut writer = self.writer(msf);
        writer.push(name);
        writer.arguments(kind);
        writer.text
    }

    /// The whole name of an inlined function, by its number among the ids.
    pub(super) fn inlinee(&self, msf: &Msf, id: u32) -> Option<String> {
        let mut writer = self.writer(msf);
        let record = self.ids.find(msf, id)?;
        let mut cursor = record.cursor(0);
        let (scope, kind) = (cursor.u32()?, cursor.u32()?);
        let name = String::from_utf8_lossy(cursor.string()?).into_owned();
        match record.kind {
            LF_FUNC_ID => writer.scope_of_id(scope),
            LF_MFUNC_ID => {
                writer.kind(scope, MAX_DEPTH);
                writer.push("::");
            }
            _ => return None,
        }
        writer.push(&name);
        writer.arguments(kind);
        Some(writer.text)
    }

    fn writer<'a>(&'a self, msf: &'a Msf) -> TypeNameWriter<'a> {
        TypeNameWriter { names: self, msf, text: String::new(), records: MAX_RECORDS }
    }
}

impl TypeNameWriter<'_> {
    fn push(&mut self, text: &str) {
        if self.text.len() + text.len() <= MAX_NAME {
            self.text.push_str(text);
        }
    }

    fn record(&mut self, number: u32) -> Option<TypeRecord> {
        self.records = self.records.checked_sub(1)?;
        self.names.types.find(self.msf, number)
    }

    /// The namespace that contains an id.
    fn scope_of_id(&mut self, scope: u32) {
        let Some(record) = self.names.ids.find(self.msf, scope).filter(|record| record.kind == LF_STRING_ID)
        else {
            return;
        };
        if let Some(name) = record.cursor(4).string() {
            self.push(&String::from_utf8_lossy(name));
            self.push("::");
        }
    }

    /// The arguments of a function type, and whether it is `const`.
    fn arguments(&mut self, kind: u32) {
        let Some(record) = self.record(kind) else { return };
        match record.kind {
            LF_PROCEDURE => {
                let list = record.cursor(8).u32().unwrap_or(0);
                self.list(list, None, MAX_DEPTH);
            }
            LF_MFUNCTION => {
                self.method(&record);
            }
            _ => {}
        }
    }

    /// As for [`TypeNameWriter::arguments`]. A first argument that is not a pointer to the class is treated like the
    /// others, because Rust's methods can take `self` in other ways.
    fn method(&mut self, record: &TypeRecord) -> Option<()> {
        let mut cursor = record.cursor(4);
        let (class, this) = (cursor.u32()?, cursor.u32()?);
        cursor.seek(16);
        let list = cursor.u32()?;
        let pointee =
            self.record(this).filter(|this| this.kind == LF_POINTER).and_then(|this| this.cursor(0).u32());
        let modified =
            pointee.and_then(|pointee| self.record(pointee)).filter(|record| record.kind == LF_MODIFIER);
        let is_constant = modified.as_ref().is_some_and(is_constant);
        let object = modified.and_then(|record| record.cursor(0).u32()).or(pointee);
        let is_own = this == 0 || object.is_none_or(|object| self.is_same_class(object, class));
        let first = Some(this).filter(|_| this != 0 && (!is_own || pointee.is_none()));
        self.list(list, first, MAX_DEPTH);
        if is_own && is_constant {
            self.push(" const");
        }
        Some(())
    }

    /// Whether two numbers are of the same class. One of them can be that of a forward declaration.
    fn is_same_class(&mut self, one: u32, other: u32) -> bool {
        if one == other {
            return true;
        }
        let mut named = |number| self.record(number).and_then(|record| Some((record.kind, named(&record)?)));
        let (one, other) = (named(one), named(other));
        one.is_some() && one == other
    }

    /// A list of arguments in parentheses.
    fn list(&mut self, list: u32, first: Option<u32>, depth: u32) {
        let record = self.record(list).filter(|record| record.kind == LF_ARGLIST);
        let count = record.as_ref().and_then(|record| record.cursor(0).u32()).unwrap_or(0);
        let numbers =
            record.as_ref().map(|record| record.bytes().get(4..).unwrap_or_default()).unwrap_or_default();
        let numbers =
            numbers.as_chunks().0.iter().take(count as usize).map(|number| u32::from_le_bytes(*number));
        self.push("(");
        for (position, argument) in first.into_iter().chain(numbers).enumerate() {
            if self.records == 0 {
                break;
            }
            if position > 0 {
                self.push(", ");
            }
            // A missing type means a variable number of further arguments.
            if argument == 0 { self.push("...") } else { self.kind(argument, depth) }
        }
        self.push(")");
    }

    /// The name of a type.
    fn kind(&mut self, number: u32, depth: u32) {
        if number < FIRST_RECORD {
            return self.primitive(number);
        }
        let Some(depth) = depth.checked_sub(1) else { return self.push("...") };
        let Some(record) = self.record(number) else { return self.push("?") };
        match record.kind {
            LF_MODIFIER => self.modified(&record, depth),
            LF_POINTER => {
                self.pointer(&record, depth);
            }
            LF_PROCEDURE | LF_MFUNCTION => self.function_type(&record, "", depth),
            LF_ARRAY => self.array(&record, depth),
            _ => match named(&record) {
                Some(name) => self.push(&String::from_utf8_lossy(&name)),
                None => self.push("?"),
            },
        }
    }

    /// `const` is before a plain type and after a pointer.
    fn modified(&mut self, record: &TypeRecord, depth: u32) {
        let underlying = record.cursor(0).u32().unwrap_or(0);
        let is_pointer = self.record(underlying).is_some_and(|record| record.kind == LF_POINTER);
        let is_constant = is_constant(record);
        if is_constant && !is_pointer {
            self.push("const ");
        }
        self.kind(underlying, depth);
        if is_constant && is_pointer {
            self.push(" const");
        }
    }

    fn pointer(&mut self, record: &TypeRecord, depth: u32) -> Option<()> {
        let mut cursor = record.cursor(0);
        let (mut underlying, attributes) = (cursor.u32()?, cursor.u32()?);
        let sigil = match attributes >> 5 & 7 {
            1 => "&",
            2 | 3 => "::*",
            4 => "&&",
            _ => "*",
        };
        let pointee = self.record(underlying);
        if let Some(function) =
            pointee.as_ref().filter(|record| matches!(record.kind, LF_PROCEDURE | LF_MFUNCTION))
        {
            self.function_type(function, sigil, depth);
            return Some(());
        }
        let constant = pointee.filter(|record| record.kind == LF_MODIFIER && is_constant(record));
        if let Some(modifier) = &constant {
            underlying = modifier.cursor(0).u32()?;
        }
        self.kind(underlying, depth);
        if constant.is_some() {
            self.push(" const");
        }
        self.push(sigil);
        if attributes >> 10 & 1 != 0 {
            self.push(" const");
        }
        Some(())
    }

    /// A function type, or with a sigil a pointer to one: `int (*)(char)`.
    fn function_type(&mut self, record: &TypeRecord, sigil: &str, depth: u32) {
        let result = record.cursor(0).u32().unwrap_or(0);
        let list_at = if record.kind == LF_PROCEDURE { 8 } else { 16 };
        let list = record.cursor(list_at).u32().unwrap_or(0);
        self.kind(result, depth);
        if !sigil.is_empty() {
            self.push(" (");
            if record.kind == LF_MFUNCTION {
                self.kind(record.cursor(4).u32().unwrap_or(0), depth);
            }
            self.push(sigil);
            self.push(")");
        }
        self.list(list, None, depth);
    }

    fn array(&mut self, record: &TypeRecord, depth: u32) {
        let element = record.cursor(0).u32().unwrap_or(0);
        self.kind(element, depth);
        let size = number(&mut record.cursor(8));
        let count = size.zip(self.size(element)).and_then(|(size, element)| size.checked_div(element));
        self.push(&count.map_or_else(|| "[]".to_owned(), |count| format!("[{count}]")));
    }

    /// The size of a type in bytes, if its record or its number states it.
    fn size(&mut self, number_of: u32) -> Option<u64> {
        if number_of < FIRST_RECORD {
            return primitive_size(number_of);
        }
        let mut record = self.record(number_of)?;
        if record.kind == LF_MODIFIER {
            let underlying = record.cursor(0).u32()?;
            if underlying < FIRST_RECORD {
                return primitive_size(underlying);
            }
            record = self.record(underlying)?;
        }
        match record.kind {
            LF_CLASS | LF_STRUCTURE | LF_INTERFACE => number(&mut record.cursor(16)),
            LF_ARRAY | LF_UNION => number(&mut record.cursor(8)),
            LF_ENUM => primitive_size(record.cursor(4).u32()?),
            LF_POINTER => Some(u64::from(record.cursor(4).u32()? >> 13 & 0x3f)),
            _ => None,
        }
    }

    /// A built-in type. The lowest byte of its number is the type, and the next four bits show whether it is
    /// a pointer to it.
    fn primitive(&mut self, number: u32) {
        self.push(primitive_name(number as u8));
        if number >> 8 & 0xf != 0 {
            self.push("*");
        }
    }
}

fn is_constant(modifier: &TypeRecord) -> bool {
    modifier.cursor(4).u16().is_some_and(|flags| flags & 1 != 0)
}

/// The name of a class, a union or an enumeration.
fn named(record: &TypeRecord) -> Option<Vec<u8>> {
    let name_at = match record.kind {
        LF_CLASS | LF_STRUCTURE | LF_INTERFACE => 16,
        LF_UNION => 8,
        LF_ENUM => return record.cursor(12).string().map(<[u8]>::to_vec),
        _ => return None,
    };
    let mut cursor = record.cursor(name_at);
    number(&mut cursor)?;
    cursor.string().map(<[u8]>::to_vec)
}

/// A number that is stored directly, or after a marker of its size.
fn number(cursor: &mut Cursor<'_>) -> Option<u64> {
    Some(match cursor.u16()? {
        0x8000 => cursor.u8()?.into(),
        0x8001 | 0x8002 => cursor.u16()?.into(),
        0x8003 | 0x8004 => cursor.u32()?.into(),
        0x8009 | 0x800a => cursor.u64()?,
        small @ 0..0x8000 => small.into(),
        _ => return None,
    })
}

fn primitive_name(kind: u8) -> &'static str {
    match kind {
        0x03 => "void",
        0x08 => "HRESULT",
        0x10 => "signed char",
        0x11 => "short",
        0x12 => "long",
        0x13 => "long long",
        0x14 | 0x78 => "int128_t",
        0x20 => "unsigned char",
        0x21 => "unsigned short",
        0x22 => "unsigned long",
        0x23 => "unsigned long long",
        0x24 | 0x79 => "uint128_t",
        0x30 => "bool",
        0x31 => "bool16_t",
        0x32 => "bool32_t",
        0x33 => "bool64_t",
        0x40 | 0x45 => "float",
        0x41 => "double",
        0x42 | 0x43 => "long double",
        0x44 => "float48_t",
        0x46 => "float16_t",
        0x50 => "complex<float>",
        0x51 => "complex<double>",
        0x52 | 0x53 => "complex<long double>",
        0x68 => "int8_t",
        0x69 => "uint8_t",
        0x70 => "char",
        0x71 => "wchar_t",
        0x72 => "int16_t",
        0x73 => "uint16_t",
        0x74 => "int",
        0x75 => "unsigned int",
        0x76 => "int64_t",
        0x77 => "uint64_t",
        0x7a => "char16_t",
        0x7b => "char32_t",
        0x7c => "char8_t",
        _ => "?",
    }
}

fn primitive_size(number: u32) -> Option<u64> {
    match (number >> 8 & 0xf, number & 0xff) {
        (6, _) => Some(8),
        (_, 0x10 | 0x20 | 0x30 | 0x68..=0x70 | 0x7c) => Some(1),
        (_, 0x11 | 0x21 | 0x31 | 0x46 | 0x71..=0x73 | 0x7a) => Some(2),
        (4 | 5, _) | (_, 0x08 | 0x12 | 0x22 | 0x32 | 0x40 | 0x45 | 0x74 | 0x75 | 0x7b) => Some(4),
        (_, 0x13 | 0x23 | 0x33 | 0x41 | 0x76 | 0x77) => Some(8),
        (_, 0x14 | 0x24 | 0x43 | 0x78 | 0x79) => Some(16),
        _ => None,
    }
}
