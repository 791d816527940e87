//! Parses the names of functions and classes, with their scopes.

use super::operators::{self, Kind};
use super::parser::Parser;
use super::tree::{ABBREVIATIONS, Node, NodeId, Qualifiers};

/// What the form of a function's name says of the function.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct NameFacts {
    /// Whether it ends with the arguments of a template.
    pub(super) is_template: bool,
    /// Whether it is a constructor, a destructor or an operator that converts: these have no result's type.
    pub(super) has_no_result: bool,
    pub(super) qualifiers: Qualifiers,
}

impl Parser<'_> {
    /// A name. `facts` are collected of the name of a function or a variable, and not of that of a class.
    pub(super) fn name(&mut self, facts: Option<&mut NameFacts>) -> Option<NodeId> {
        match self.peek() {
            b'N' => self.nested(|parser| parser.nested_name(facts)),
            b'Z' => self.nested(|parser| parser.local_name(facts)),
            _ => self.unscoped_name(facts),
        }
    }

    fn unscoped_name(&mut self, mut facts: Option<&mut NameFacts>) -> Option<NodeId> {
        let name = if self.peek() == b'S' && self.peek_at(1) != b't' {
            let name = self.substitution()?;
            if self.peek() != b'I' {
                return None;
            }
            name
        } else {
            let in_std = self.take("St");
            let name = self.unqualified_name(facts.as_deref_mut(), None)?;
            let name = if in_std { self.in_std(name) } else { name };
            if self.peek() != b'I' {
                return Some(name);
            }
            self.add_substitution(name)
        };
        self.with_arguments(name, facts)
    }

    fn in_std(&mut self, name: NodeId) -> NodeId {
        let scope = self.text_node("std");
        self.add(Node::Nested(scope, name))
    }

    /// A template with the arguments that come next.
    pub(super) fn with_arguments(&mut self, name: NodeId, facts: Option<&mut NameFacts>) -> Option<NodeId> {
        let is_function = facts.is_some();
        let had = std::mem::replace(&mut self.parameters_have_arguments, true);
        let arguments = self.nested(|parser| parser.template_arguments(is_function))?;
        self.parameters_have_arguments = had;
        if let Some(facts) = facts {
            facts.is_template = true;
        }
        Some(self.add(Node::Template(name, arguments)))
    }

    fn nested_name(&mut self, mut facts: Option<&mut NameFacts>) -> Option<NodeId> {
        self.expect("N")?;
        self.take("H");
        let mut qualifiers = self.cv_qualifiers();
        qualifiers.reference = self.reference_qualifier();
        if let Some(facts) = facts.as_deref_mut() {
            facts.qualifiers = qualifiers;
        }
        let mut scope = None;
        let mut is_substitution = false;
        while !self.take("E") {
            self.take("L");
            if let Some(facts) = facts.as_deref_mut() {
                facts.is_template = false;
            }
            let (next, is_new) = self.nested_part(scope, facts.as_deref_mut())?;
            scope = Some(next);
            is_substitution = is_new;
            if is_new {
                self.add_substitution(next);
            }
            // The initial value of a member, in which a lambda is.
            self.take("M");
        }
        // The whole name is none; as a type it becomes one again.
        if is_substitution {
            self.substitutions.pop();
        }
        scope
    }

    pub(super) fn reference_qualifier(&mut self) -> &'static str {
        match (self.take("R"), self.peek()) {
            (true, _) => "&",
            (false, b'O') => {
                self.at += 1;
                "&&"
            }
            _ => "",
        }
    }

    /// The next part of a nested name with what came before it, and whether it can be referred to.
    fn nested_part(
        &mut self,
        scope: Option<NodeId>,
        facts: Option<&mut NameFacts>,
    ) -> Option<(NodeId, bool)> {
        match (self.peek(), self.peek_at(1)) {
            (b'T', _) if scope.is_none() => Some((self.template_parameter()?, true)),
            (b'I', _) => Some((self.with_arguments(scope?, facts)?, true)),
            (b'D', b't' | b'T') if scope.is_none() => Some((self.decltype()?, true)),
            (b'S', b't') if scope.is_none() => {
                self.at += 2;
                Some((self.text_node("std"), false))
            }
            (b'S', _) if scope.is_none() => Some((self.substitution()?, false)),
            _ => {
                let name = self.unqualified_name(facts, scope)?;
                let Some(scope) = scope else { return Some((name, true)) };
                let scope = if self.is_structor(name) { self.whole(scope) } else { scope };
                Some((self.add(Node::Nested(scope, name)), true))
            }
        }
    }

    fn is_structor(&self, name: NodeId) -> bool {
        match self.tree.get(name) {
            Node::Constructor(_) | Node::Destructor(_) => true,
            Node::Tagged(name, _) => self.is_structor(name),
            _ => false,
        }
    }

    /// The class of a constructor, whose name is not abbreviated.
    fn whole(&mut self, class: NodeId) -> NodeId {
        match self.tree.get(class) {
            Node::Abbreviated(which, _) => self.add(Node::Abbreviated(which, true)),
            _ => class,
        }
    }

    /// A name in a scope, or in none, with its tags.
    pub(super) fn unqualified_name(
        &mut self,
        facts: Option<&mut NameFacts>,
        scope: Option<NodeId>,
    ) -> Option<NodeId> {
        self.take("L");
        let letter = self.peek();
        let mut name = match (letter, self.peek_at(1)) {
            (b'0'..=b'9', _) => {
                let name = self.source_name()?;
                self.text_node(name)
            }
            (b'U', _) => self.nested(Self::unnamed)?,
            (b'D', b'C') => {
                self.at += 2;
                let names = self.list_to_end(|parser| {
                    let name = parser.source_name()?;
                    Some(parser.text_node(name))
                })?;
                self.add(Node::StructuredBinding(names))
            }
            (b'C' | b'D', _) => return self.structor(facts, scope?).and_then(|name| self.tagged(name)),
            (b'a'..=b'z', _) => self.operator_name(facts)?,
            _ => return None,
        };
        // The number of a name that only its file knows.
        if letter == b'L' && self.take("_") {
            self.take_while(|letter| letter.is_ascii_digit());
        }
        name = self.tagged(name)?;
        Some(name)
    }

    fn tagged(&mut self, mut name: NodeId) -> Option<NodeId> {
        while self.take("B") {
            let tag = self.source_name()?;
            name = self.add(Node::Tagged(name, tag));
        }
        Some(name)
    }

    fn structor(&mut self, facts: Option<&mut NameFacts>, scope: NodeId) -> Option<NodeId> {
        if let Some(facts) = facts {
            facts.has_no_result = true;
        }
        let name = match self.tree.get(self.tree.base_name(scope)) {
            Node::Abbreviated(which, _) => {
                let (.., base) = ABBREVIATIONS.get(usize::from(which))?;
                self.text_node(base)
            }
            _ => self.tree.base_name(scope),
        };
        if self.take("C") {
            let inherits = self.take("I");
            self.kind_of_structor(1)?;
            if inherits {
                self.ty()?;
            }
            return Some(self.add(Node::Constructor(name)));
        }
        self.expect("D")?;
        self.kind_of_structor(0)?;
        Some(self.add(Node::Destructor(name)))
    }

    fn kind_of_structor(&mut self, least: u8) -> Option<()> {
        let is_kind = (b'0' + least..=b'9').contains(&self.peek());
        self.at += usize::from(is_kind);
        is_kind.then_some(())
    }

    fn unnamed(&mut self) -> Option<NodeId> {
        if self.take("Ut") {
            let number = self.sequence_number()?;
            return Some(self.add(Node::UnnamedType(number.checked_add(1)?)));
        }
        self.expect("Ul")?;
        let parameters = self.parameters()?;
        self.expect("E")?;
        let number = self.sequence_number()?.checked_add(1)?;
        Some(self.add(Node::Lambda(parameters, number)))
    }

    pub(super) fn operator_name(&mut self, facts: Option<&mut NameFacts>) -> Option<NodeId> {
        if self.take("cv") {
            return self.nested(|parser| parser.conversion(facts));
        }
        if self.take("li") {
            let name = self.source_name()?;
            let name = self.text_node(name);
            return Some(self.add(Node::LiteralOperator(name)));
        }
        let code = self.rest().get(..2)?;
        let (_, text, kind) = operators::find(code)?;
        self.at += 2;
        let is_name = !matches!(kind, Kind::NamedCast | Kind::OfType | Kind::OfValue | Kind::NameOnly);
        is_name.then(|| self.add(Node::Operator(text.trim_end())))
    }

    fn conversion(&mut self, facts: Option<&mut NameFacts>) -> Option<NodeId> {
        // The arguments behind a template parameter are those of the operator.
        let may_have = facts.is_none() && self.parameters_have_arguments;
        let had = std::mem::replace(&mut self.parameters_have_arguments, may_have);
        if let Some(facts) = facts {
            facts.has_no_result = true;
        }
        let to = self.ty()?;
        self.parameters_have_arguments = had;
        Some(self.add(Node::Conversion(to)))
    }

    fn local_name(&mut self, facts: Option<&mut NameFacts>) -> Option<NodeId> {
        self.expect("Z")?;
        let mut function = self.encoding(false)?;
        self.expect("E")?;
        if self.take("s") {
            self.discriminator();
            let literal = self.text_node("string literal");
            return Some(self.add(Node::Local(function, literal)));
        }
        if self.take("d") {
            let number = self.sequence_number()?.checked_add(1)?;
            let argument = self.add(Node::DefaultArgument(number));
            function = self.add(Node::Local(function, argument));
        }
        let name = self.name(facts)?;
        self.discriminator();
        Some(self.add(Node::Local(function, name)))
    }

    /// Which of equal names in a function it is. That is not printed.
    fn discriminator(&mut self) {
        let start = self.at;
        let is_long = self.take("__");
        if !is_long && !self.take("_") {
            return;
        }
        let digits = self.take_while(|letter| letter.is_ascii_digit());
        let is_one = if is_long { !digits.is_empty() && self.take("_") } else { digits.len() == 1 };
        if !is_one {
            self.at = start;
        }
    }

    /// What an `S` with a number or a letter stands for.
    pub(super) fn substitution(&mut self) -> Option<NodeId> {
        self.expect("S")?;
        let letter = self.peek();
        if letter.is_ascii_lowercase() {
            let which = ABBREVIATIONS.iter().position(|(known, ..)| *known == letter)?;
            self.at += 1;
            let class = self.add(Node::Abbreviated(which as u8, false));
            return if self.peek() == b'B' {
                let class = self.tagged(class)?;
                Some(self.add_substitution(class))
            } else {
                Some(class)
            };
        }
        let number = self.sequence_id()?;
        self.substitutions.get(number).copied()
    }
}
