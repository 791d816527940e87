//! The description of the events in a chunk of a JFR recording: classes and their fields.

use std::borrow::Cow;

use rustc_hash::FxHashMap;

use super::cursor::{ChunkCursor, TextOrConstant};

/// The maximum nesting of elements, which no recording exceeds: root, metadata, class, field, annotation.
const MAX_DEPTH: usize = 8;

/// The classes of a chunk.
#[derive(Default)]
pub(super) struct Metadata<'a> {
    strings: Vec<Cow<'a, str>>,
    classes: FxHashMap<u64, Class>,
}

/// A class of events or of values.
#[derive(Default)]
pub(super) struct Class {
    /// The index of its name among the strings.
    name: usize,
    pub(super) kind: Kind,
    pub(super) fields: Vec<Field>,
}

/// The storage of a value of a class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Kind {
    /// One byte.
    Byte,
    Short,
    Int,
    Long,
    Float,
    Double,
    Text,
    /// Its fields in sequence.
    #[default]
    Struct,
}

/// A field of a class.
#[derive(Clone, Copy, Default)]
pub(super) struct Field {
    name: usize,
    pub(super) class: u64,
    /// Whether it has the number of a constant instead of the value.
    pub(super) is_constant: bool,
    pub(super) is_array: bool,
    /// Whether it is a number of ticks of the chunk's clock.
    pub(super) is_ticks: bool,
}

impl<'a> Metadata<'a> {
    /// Reads the metadata after the head of its event. `None` if it is damaged.
    pub(super) fn read(cursor: &mut ChunkCursor<'a>) -> Option<Self> {
        let mut metadata = Self::default();
        for _ in 0..cursor.count()? {
            metadata.strings.push(match cursor.text()? {
                TextOrConstant::Here(text) => text,
                TextOrConstant::Null | TextOrConstant::Constant(_) => "".into(),
            });
        }
        metadata.element(cursor, &mut None, 0)?;
        Some(metadata)
    }

    /// The class with this number.
    pub(super) fn class(&self, id: u64) -> Option<&Class> {
        self.classes.get(&id)
    }

    /// The name of the class with this number.
    pub(super) fn name(&self, id: u64) -> &str {
        self.class(id).map_or("", |class| self.string(class.name))
    }

    /// The numbers of the classes with their names.
    pub(super) fn names(&self) -> impl Iterator<Item = (u64, &str)> {
        self.classes.iter().map(|(&id, class)| (id, self.string(class.name)))
    }

    /// The index of the field with this name among a class's fields.
    pub(super) fn field(&self, class: u64, name: &str) -> Option<(usize, Field)> {
        let fields = &self.class(class)?.fields;
        fields.iter().copied().enumerate().find(|(_, field)| self.string(field.name) == name)
    }

    fn string(&self, index: usize) -> &str {
        self.strings.get(index).map_or("", |string| string)
    }

    /// Reads an element with its children, and adds it to `class`, the class around it.
    fn element(
        &mut self,
        cursor: &mut ChunkCursor<'a>,
        class: &mut Option<Class>,
        depth: usize,
    ) -> Option<()> {
        let name = cursor.int()? as usize;
        let mut attributes = Vec::new();
        for _ in 0..cursor.count()? {
            attributes.push((cursor.int()? as usize, cursor.int()? as usize));
        }
        let attribute = |name: &str| {
            attributes.iter().find(|&&(key, _)| self.string(key) == name).map(|&(_, value)| value)
        };
        let text = |name: &str| attribute(name).map_or("", |value| self.string(value));
        let id = |name: &str| text(name).parse::<u64>().ok();
        match self.string(name) {
            "class" => {
                let kind = kind_of(text("name"));
                let mut own = Some(Class { name: attribute("name")?, kind, fields: Vec::new() });
                let id = id("id");
                self.children(cursor, &mut own, depth)?;
                if let (Some(id), Some(own)) = (id, own) {
                    self.classes.insert(id, own);
                }
                Some(())
            }
            "field" => {
                let field = Field {
                    name: attribute("name")?,
                    class: id("class")?,
                    is_constant: text("constantPool") == "true",
                    is_array: id("dimension").is_some_and(|dimension| dimension > 0),
                    is_ticks: false,
                };
                class.as_mut()?.fields.push(field);
                self.children(cursor, class, depth)
            }
            "annotation" => {
                let is_ticks = text("value") == "TICKS";
                if let Some(field) = class.as_mut().and_then(|class| class.fields.last_mut()) {
                    field.is_ticks |= is_ticks;
                }
                self.children(cursor, class, depth)
            }
            _ => self.children(cursor, class, depth),
        }
    }

    fn children(
        &mut self,
        cursor: &mut ChunkCursor<'a>,
        class: &mut Option<Class>,
        depth: usize,
    ) -> Option<()> {
        let count = cursor.count()?;
        if count > 0 && depth == MAX_DEPTH {
            return None;
        }
        (0..count).try_for_each(|_| self.element(cursor, class, depth + 1))
    }
}

fn kind_of(name: &str) -> Kind {
    match name {
        "boolean" | "byte" => Kind::Byte,
        "char" | "short" => Kind::Short,
        "int" => Kind::Int,
        "long" => Kind::Long,
        "float" => Kind::Float,
        "double" => Kind::Double,
        "java.lang.String" => Kind::Text,
        _ => Kind::Struct,
    }
}
