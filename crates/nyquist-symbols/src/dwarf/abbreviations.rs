//! Abbreviations, compiled for scanning: how to skip an entry, and where its attributes are.

use super::die_skip_table::{DieSkipTable, StopsAt};
use super::form::{Encoding, SkipStep, Specification, step};
use super::role::{Qualifier, Role};
use super::scope_layout::ScopeLayout;
use gimli::constants::{self, DwAt, DwForm, DwTag};
use nyquist_object::Cursor;
use rustc_hash::FxHashMap;

/// The most attributes of one abbreviation. Compilers write some thirty; attributes without bytes would let a
/// small file cause endless work.
const MAX_ATTRIBUTES: usize = 128;

/// One abbreviation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Abbreviation {
    pub(crate) role: Role,
    pub(crate) has_children: bool,
    /// Whether its entries state where their code is.
    pub(crate) has_code: bool,
    /// How it qualifies the names of the functions in it.
    pub(crate) qualifier: Option<Qualifier>,
    attributes: (u32, u32),
    /// The size of an entry's attributes if it is always the same, otherwise [`VARIES`].
    size: u32,
    steps: (u32, u32),
    /// The index of its layout, if it is a function or an inlined call that has one.
    layout: Option<u32>,
}

impl Abbreviation {
    /// The searches that stop at its entries. Functions without code contain no address. Calls that are
    /// inlined into them are only looked for if all calls are.
    fn stops_at(&self) -> StopsAt {
        StopsAt {
            calls: self.role != Role::Other,
            functions: self.role == Role::Function && self.has_code,
            qualifiers: self.qualifier.is_some(),
        }
    }
}

/// Marks attributes whose size is only known by their steps.
const VARIES: u32 = u32::MAX;

/// The abbreviations of a unit.
#[derive(Debug, Default)]
pub(crate) struct Abbreviations {
    /// The abbreviations with the codes 1, 2, 3 and so on, as every compiler numbers them.
    dense: Vec<Abbreviation>,
    /// The abbreviations with any other code.
    sparse: FxHashMap<u64, Abbreviation>,
    attributes: Vec<Specification>,
    steps: Vec<SkipStep>,
    layouts: Vec<ScopeLayout>,
    /// How entries of the dense abbreviations are skipped, by their code.
    pub(crate) skip_table: DieSkipTable,
}

impl Abbreviations {
    /// Reads the declarations up to the one with code 0. `None` if the bytes end before it.
    pub(crate) fn parse(cursor: &mut Cursor<'_>, encoding: Encoding) -> Option<Self> {
        let mut all = Self::default();
        loop {
            let code = cursor.uleb()?;
            if code == 0 {
                all.skip_table.finish();
                return Some(all);
            }
            let abbreviation = all.parse_one(cursor, encoding)?;
            if code == all.dense.len() as u64 + 1 {
                all.dense.push(abbreviation);
                let steps = &all.steps[abbreviation.steps.0 as usize..];
                all.skip_table.push(abbreviation.stops_at(), steps, abbreviation.has_children);
            } else {
                all.sparse.entry(code).or_insert(abbreviation);
            }
        }
    }

    /// As [`Abbreviations::parse`], but only keeps the abbreviation with the code `requested`.
    pub(crate) fn parse_single(cursor: &mut Cursor<'_>, encoding: Encoding, requested: u64) -> Option<Self> {
        let mut all = Self::default();
        loop {
            let code = cursor.uleb()?;
            if code == requested {
                let abbreviation = all.parse_one(cursor, encoding)?;
                all.sparse.insert(code, abbreviation);
            }
            if code == requested || code == 0 {
                return Some(all);
            }
            skip_declaration(cursor)?;
        }
    }

    fn parse_one(&mut self, cursor: &mut Cursor<'_>, encoding: Encoding) -> Option<Abbreviation> {
        let tag = DwTag(cursor.uleb()?.try_into().unwrap_or(0));
        let has_children = cursor.u8()? != 0;
        let (first, first_step) = (self.attributes.len(), self.steps.len());
        loop {
            let name = DwAt(cursor.uleb()?.try_into().unwrap_or(0));
            let form = DwForm(cursor.uleb()?.try_into().ok()?);
            if name.0 == 0 && form.0 == 0 {
                break;
            }
            if self.attributes.len() - first >= MAX_ATTRIBUTES {
                return None;
            }
            let implicit = if form == constants::DW_FORM_implicit_const { cursor.sleb()? } else { 0 };
            self.attributes.push(Specification { name, form, implicit });
            self.push_step(step(form, encoding)?, first_step);
        }
        let size = match self.steps[first_step..] {
            [] => 0,
            [SkipStep::Bytes(bytes)] => bytes,
            _ => VARIES,
        };
        let role = match tag {
            constants::DW_TAG_subprogram => Role::Function,
            constants::DW_TAG_inlined_subroutine => Role::Inlined,
            _ => Role::Other,
        };
        let says_code =
            |of: &Specification| matches!(of.name, constants::DW_AT_low_pc | constants::DW_AT_ranges);
        let layout =
            (role != Role::Other).then(|| ScopeLayout::of(&self.attributes[first..], role, encoding));
        let layout = layout.flatten().map(|layout| {
            self.layouts.push(layout);
            self.layouts.len() as u32 - 1
        });
        Some(Abbreviation {
            role,
            has_children,
            has_code: self.attributes[first..].iter().any(says_code),
            qualifier: Qualifier::of(tag).filter(|_| has_children),
            size,
            attributes: (first as u32, self.attributes.len() as u32),
            steps: (first_step as u32, self.steps.len() as u32),
            layout,
        })
    }

    /// Adds a step, merged with the previous one if both are plain bytes.
    fn push_step(&mut self, step: SkipStep, first: usize) {
        if let SkipStep::Bytes(more) = step {
            if more == 0 {
                return;
            }
            if let Some(SkipStep::Bytes(bytes)) = self.steps[first..].last_mut() {
                *bytes += more;
                return;
            }
        }
        self.steps.push(step);
    }

    #[inline]
    pub(crate) fn get(&self, code: u64) -> Option<&Abbreviation> {
        match self.dense.get((code as usize).wrapping_sub(1)) {
            Some(abbreviation) => Some(abbreviation),
            None => self.sparse.get(&code),
        }
    }

    #[inline]
    pub(crate) fn attributes(&self, of: &Abbreviation) -> &[Specification] {
        &self.attributes[of.attributes.0 as usize..of.attributes.1 as usize]
    }

    /// Moves `cursor` from an entry's first attribute to the next entry.
    #[inline]
    pub(crate) fn skip_entry(
        &self,
        of: &Abbreviation,
        cursor: &mut Cursor<'_>,
        encoding: Encoding,
    ) -> Option<()> {
        if of.size != VARIES {
            return cursor.skip(u64::from(of.size));
        }
        self.steps_of(of).iter().try_for_each(|step| step.skip(cursor, encoding))
    }

    fn steps_of(&self, of: &Abbreviation) -> &[SkipStep] {
        &self.steps[of.steps.0 as usize..of.steps.1 as usize]
    }

    /// The layout of the attributes of a function or an inlined call, if it is the same in every entry.
    #[inline]
    pub(crate) fn layout(&self, of: &Abbreviation) -> Option<&ScopeLayout> {
        self.layouts.get(of.layout? as usize)
    }
}

/// Skips a declaration after its code (DWARF 5, 7.5.3).
fn skip_declaration(cursor: &mut Cursor<'_>) -> Option<()> {
    cursor.skip_leb()?;
    cursor.skip(1)?;
    loop {
        let (name, form) = (cursor.uleb()?, cursor.uleb()?);
        if (name, form) == (0, 0) {
            return Some(());
        }
        if form == u64::from(constants::DW_FORM_implicit_const.0) {
            cursor.skip_leb()?;
        }
    }
}
