//! Prints a C++ name that was parsed, as `c++filt --no-verbose` of GNU does.

use std::fmt::{self, Write as _};

use super::packs::{Placed, Scopes};
use super::tree::{ABBREVIATIONS, Exceptions, List, Node, NodeId, Qualifiers, Tree};
use crate::demangle::bounded_string::BoundedString;

/// How deeply parts may nest. References from later to earlier parts nest them more deeply than they were parsed.
const MAX_DEPTH: u32 = 256;
/// How many parts are printed or searched at most.
const MAX_STEPS: u32 = 1 << 18;

/// The state of printing.
pub(super) struct Printer<'t, 'a> {
    scopes: Scopes<'t, 'a>,
    out: BoundedString,
    /// The last letter. What is not printed of a list that ends with an empty pack counts as a blank.
    last: u8,
    depth: u32,
}

/// Prints a name; `None` if it is too long or nests too deeply.
pub(super) fn print(tree: &Tree<'_>, id: NodeId) -> Option<String> {
    let scopes = Scopes::new(tree, MAX_STEPS);
    let mut printer = Printer { scopes, out: BoundedString::default(), last: 0, depth: 0 };
    printer.whole(id).ok()?;
    Some(printer.out.text)
}

impl<'a> Printer<'_, 'a> {
    pub(super) fn text(&mut self, text: &str) -> fmt::Result {
        self.last = text.as_bytes().last().copied().unwrap_or(self.last);
        self.out.write_str(text)
    }

    pub(super) fn number(&mut self, number: u64) -> fmt::Result {
        self.last = b'0';
        write!(self.out, "{number}")
    }

    pub(super) fn get(&self, id: NodeId) -> Node<'a> {
        self.scopes.tree.get(id)
    }

    /// Prints a part inside of another one.
    fn nested(&mut self, print: impl FnOnce(&mut Self) -> fmt::Result) -> fmt::Result {
        self.scopes.steps = self.scopes.steps.checked_sub(1).ok_or(fmt::Error)?;
        if self.depth >= MAX_DEPTH {
            return Err(fmt::Error);
        }
        self.depth += 1;
        print(self)?;
        self.depth -= 1;
        Ok(())
    }

    pub(super) fn whole(&mut self, id: NodeId) -> fmt::Result {
        self.left(id)?;
        self.right(id)
    }

    /// Prints parts with commas between them. Empty packs have none.
    pub(super) fn list(&mut self, list: List) -> fmt::Result {
        let tree = self.scopes.tree;
        self.parts(tree.list(list))
    }

    fn parts(&mut self, parts: &[NodeId]) -> fmt::Result {
        let mut is_first = true;
        for part in parts {
            if self.scopes.is_empty(*part) {
                self.last = if is_first { self.last } else { b' ' };
                continue;
            }
            if !is_first {
                self.text(", ")?;
            }
            is_first = false;
            self.whole(*part)?;
        }
        Ok(())
    }

    /// Prints within a function: template parameters are its own. Within a function that is made of no template, they
    /// stay those of the function around it.
    pub(super) fn in_scope(
        &mut self,
        arguments: Option<List>,
        print: impl FnOnce(&mut Self) -> fmt::Result,
    ) -> fmt::Result {
        if arguments == Some(List::default()) {
            return print(self);
        }
        let outer = self.scopes.enter(arguments);
        print(self)?;
        self.scopes.leave(outer);
        Ok(())
    }

    /// Prints the argument that a template parameter stands for.
    fn argument(&mut self, number: u64, print: impl FnOnce(&mut Self, NodeId) -> fmt::Result) -> fmt::Result {
        let Some((argument, scope)) = self.scopes.meaning(number) else { return Err(fmt::Error) };
        let which = self.scopes.which.take();
        self.placed(scope, |printer| print(printer, argument))?;
        self.scopes.which = which;
        Ok(())
    }

    /// Prints in another scope.
    fn placed(&mut self, scope: Option<usize>, print: impl FnOnce(&mut Self) -> fmt::Result) -> fmt::Result {
        let current = std::mem::replace(&mut self.scopes.current, scope);
        print(self)?;
        self.scopes.current = current;
        Ok(())
    }

    fn resolved(&self, id: NodeId) -> NodeId {
        self.scopes.resolved((id, self.scopes.current)).0
    }

    /// What comes before the name of a variable with this type, or all of another part.
    pub(super) fn left(&mut self, id: NodeId) -> fmt::Result {
        self.nested(|printer| match printer.get(id) {
            Node::Pointer(to) => printer.left_of_pointer(to, "*"),
            Node::Reference(to) => printer.left_of_reference(to, true),
            Node::RvalueReference(to) => printer.left_of_reference(to, false),
            Node::MemberPointer(class, ty) => printer.left_of_member(class, ty),
            Node::Qualified(ty, qualifiers) => {
                printer.left(ty)?;
                printer.qualifiers(printer.additional(qualifiers, ty))
            }
            Node::VendorQualified(ty, qualifier) => {
                printer.left(ty)?;
                printer.text(" ")?;
                printer.whole(qualifier)
            }
            Node::Suffixed(ty, suffix) => {
                printer.left(ty)?;
                printer.text(suffix)
            }
            Node::Function { result, .. } => {
                printer.left(result)?;
                printer.text(if printer.has_right(result) { "" } else { " " })
            }
            Node::Array(ty, _) => printer.left(ty),
            Node::Parameter(number) if printer.scopes.in_lambda() => {
                printer.text("auto:")?;
                printer.number(number.saturating_add(1))
            }
            Node::Parameter(number) => printer.argument(number, Self::left),
            node => printer.other(node),
        })
    }

    /// What comes behind the name of a variable with this type.
    pub(super) fn right(&mut self, id: NodeId) -> fmt::Result {
        self.nested(|printer| match printer.get(id) {
            Node::Reference(to) | Node::RvalueReference(to) => printer.right_of_reference(to),
            Node::Pointer(to) | Node::MemberPointer(_, to) => printer.right_of_pointer(to),
            Node::Qualified(ty, _) | Node::VendorQualified(ty, _) | Node::Suffixed(ty, _) => {
                printer.right(ty)
            }
            Node::Function { result, parameters, qualifiers, exceptions } => {
                printer.text("(")?;
                printer.list(parameters)?;
                printer.text(")")?;
                printer.qualifiers(qualifiers)?;
                printer.exceptions(exceptions)?;
                printer.right(result)
            }
            Node::Array(ty, len) => {
                if printer.last != b']' {
                    printer.text(" ")?;
                }
                printer.text("[")?;
                len.map_or(Ok(()), |len| printer.whole(len))?;
                printer.text("]")?;
                printer.right(ty)
            }
            Node::Parameter(_) if printer.scopes.in_lambda() => Ok(()),
            Node::Parameter(number) => printer.argument(number, Self::right),
            _ => Ok(()),
        })
    }

    /// What a reference refers to if that may be a reference itself, and whether the result is one to an lvalue.
    fn referred(&self, to: NodeId) -> (Placed, bool) {
        let mut to = (to, self.scopes.current);
        let mut is_lvalue = false;
        for _ in 0..MAX_DEPTH {
            let resolved = self.scopes.resolved(to);
            match self.get(resolved.0) {
                Node::Reference(further) => (to, is_lvalue) = ((further, resolved.1), true),
                Node::RvalueReference(further) => to = (further, resolved.1),
                _ => break,
            }
        }
        (to, is_lvalue)
    }

    fn left_of_reference(&mut self, to: NodeId, is_lvalue: bool) -> fmt::Result {
        let ((to, scope), is_one) = self.referred(to);
        let sign = if is_lvalue || is_one { "&" } else { "&&" };
        self.placed(scope, |printer| printer.left_of_pointer(to, sign))
    }

    fn right_of_reference(&mut self, to: NodeId) -> fmt::Result {
        let ((to, scope), _) = self.referred(to);
        self.placed(scope, |printer| printer.right_of_pointer(to))
    }

    /// Whether something is behind the name of a variable with this type.
    pub(super) fn has_right(&self, id: NodeId) -> bool {
        let mut placed = (id, self.scopes.current);
        for _ in 0..MAX_DEPTH {
            placed = self.scopes.resolved(placed);
            match self.get(placed.0) {
                Node::Pointer(to)
                | Node::Reference(to)
                | Node::RvalueReference(to)
                | Node::MemberPointer(_, to)
                | Node::Qualified(to, _) => placed.0 = to,
                Node::Function { .. } | Node::Array(..) => return true,
                _ => break,
            }
        }
        false
    }

    fn left_of_pointer(&mut self, to: NodeId, sign: &str) -> fmt::Result {
        self.left(to)?;
        self.open(to)?;
        self.text(sign)
    }

    /// The parenthesis before the sign of a pointer to an array or a function.
    fn open(&mut self, to: NodeId) -> fmt::Result {
        match self.pointed(to) {
            Node::Array(..) => self.text(" ("),
            Node::Function { .. } => self.text("("),
            _ => Ok(()),
        }
    }

    fn pointed(&self, to: NodeId) -> Node<'a> {
        match self.get(self.resolved(to)) {
            Node::Qualified(ty, _) if matches!(self.get(self.resolved(ty)), Node::Array(..)) => {
                self.get(self.resolved(ty))
            }
            node => node,
        }
    }

    fn left_of_member(&mut self, class: NodeId, ty: NodeId) -> fmt::Result {
        self.left(ty)?;
        self.open(ty)?;
        if !matches!(self.pointed(ty), Node::Array(..) | Node::Function { .. }) {
            self.text(" ")?;
        }
        self.whole(class)?;
        self.text("::*")
    }

    fn right_of_pointer(&mut self, to: NodeId) -> fmt::Result {
        if matches!(self.pointed(to), Node::Array(..) | Node::Function { .. }) {
            self.text(")")?;
        }
        self.right(to)
    }

    pub(super) fn qualifiers(&mut self, qualifiers: Qualifiers) -> fmt::Result {
        for (is_there, text) in [
            (qualifiers.is_const, " const"),
            (qualifiers.is_volatile, " volatile"),
            (qualifiers.is_restrict, " restrict"),
        ] {
            if is_there {
                self.text(text)?;
            }
        }
        if qualifiers.reference.is_empty() {
            return Ok(());
        }
        self.text(" ")?;
        self.text(qualifiers.reference)
    }

    /// The qualifiers that a type does not have already: an argument may be qualified as its parameter is.
    fn additional(&self, qualifiers: Qualifiers, ty: NodeId) -> Qualifiers {
        let Node::Qualified(_, known) = self.get(self.resolved(ty)) else { return qualifiers };
        Qualifiers {
            is_const: qualifiers.is_const && !known.is_const,
            is_volatile: qualifiers.is_volatile && !known.is_volatile,
            is_restrict: qualifiers.is_restrict && !known.is_restrict,
            ..qualifiers
        }
    }

    fn exceptions(&mut self, exceptions: Exceptions) -> fmt::Result {
        match exceptions {
            Exceptions::Any => Ok(()),
            Exceptions::Noexcept(None) => self.text(" noexcept"),
            Exceptions::Noexcept(Some(condition)) => {
                self.text(" noexcept(")?;
                self.whole(condition)?;
                self.text(")")
            }
            Exceptions::Throw(types) => {
                self.text(" throw(")?;
                self.list(types)?;
                self.text(")")
            }
        }
    }

    /// Prints a pattern for each argument of the packs in it.
    pub(super) fn expansion(&mut self, pattern: NodeId) -> fmt::Result {
        let Some(len) = self.scopes.len_in(pattern) else {
            self.operand(pattern)?;
            return self.text("...");
        };
        let outer = self.scopes.which;
        for which in 0..len {
            if which > 0 {
                self.text(", ")?;
            }
            self.scopes.which = Some(which);
            self.whole(pattern)?;
        }
        self.scopes.which = outer;
        Ok(())
    }

    pub(super) fn pack_len(&mut self, id: NodeId) -> Option<usize> {
        match self.get(id) {
            Node::Pack(list) => Some(self.scopes.tree.list(list).len()),
            _ => self.scopes.len_in(id),
        }
    }

    pub(super) fn abbreviated(&mut self, which: u8, is_whole: bool) -> fmt::Result {
        let (_, short, whole, _) = ABBREVIATIONS.get(usize::from(which)).ok_or(fmt::Error)?;
        self.text(if is_whole { whole } else { short })
    }

    pub(super) fn last(&self) -> u8 {
        self.last
    }
}
