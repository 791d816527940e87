//! What template parameters stand for, and the packs in patterns that are expanded.

use super::tree::{List, Node, NodeId, Tree};

/// The function in whose name or type something is printed.
#[derive(Clone, Copy)]
pub(super) struct Scope {
    /// The arguments of its template; `None` for a lambda, whose parameters are of types without names.
    arguments: Option<List>,
    /// The one in which its arguments are printed.
    outer: Option<usize>,
}

/// A part in a scope.
pub(super) type Placed = (NodeId, Option<usize>);

/// The scopes that surround what is printed, and the argument that packs stand for.
pub(super) struct Scopes<'t, 'a> {
    pub(super) tree: &'t Tree<'a>,
    entered: Vec<Scope>,
    pub(super) current: Option<usize>,
    /// The argument that packs stand for.
    pub(super) which: Option<usize>,
    /// How many parts may still be looked at. Parts are shared, so there can be far more ways than parts.
    pub(super) steps: u32,
}

impl<'t, 'a> Scopes<'t, 'a> {
    pub(super) fn new(tree: &'t Tree<'a>, steps: u32) -> Self {
        Self { tree, entered: Vec::new(), current: None, which: None, steps }
    }

    /// Enters the scope of a function. Returns what [`Scopes::leave`] needs.
    pub(super) fn enter(&mut self, arguments: Option<List>) -> Option<usize> {
        let outer = self.current;
        self.entered.push(Scope { arguments, outer });
        self.current = Some(self.entered.len() - 1);
        outer
    }

    pub(super) fn leave(&mut self, outer: Option<usize>) {
        self.entered.pop();
        self.current = outer;
    }

    /// Whether template parameters are those of a lambda.
    pub(super) fn in_lambda(&self) -> bool {
        self.scope(self.current).is_some_and(|scope| scope.arguments.is_none())
    }

    fn scope(&self, at: Option<usize>) -> Option<Scope> {
        self.entered.get(at?).copied()
    }

    /// The argument that a template parameter stands for in a scope, which may be a pack.
    fn argument(&self, number: u64, scope: Option<usize>) -> Option<Placed> {
        let scope = self.scope(scope)?;
        let argument = self.tree.list(scope.arguments?).get(usize::try_from(number).ok()?)?;
        Some((*argument, scope.outer))
    }

    /// The same in the current scope. Of a pack it is one argument, if packs stand for one.
    pub(super) fn meaning(&self, number: u64) -> Option<Placed> {
        self.meaning_in(number, self.current)
    }

    fn meaning_in(&self, number: u64, scope: Option<usize>) -> Option<Placed> {
        let (argument, outer) = self.argument(number, scope)?;
        match (self.tree.get(argument), self.which) {
            (Node::Pack(list), Some(which)) => Some((*self.tree.list(list).get(which)?, outer)),
            _ => Some((argument, outer)),
        }
    }

    /// What a part stands for if it is a template parameter.
    pub(super) fn resolved(&self, placed: Placed) -> Placed {
        let mut placed = placed;
        // Each step leads to an outer scope.
        while let Node::Parameter(number) = self.tree.get(placed.0)
            && let Some(next) = self.meaning_in(number, placed.1)
        {
            placed = next;
        }
        placed
    }

    /// How many arguments the first pack in a pattern has.
    pub(super) fn len_in(&mut self, id: NodeId) -> Option<usize> {
        self.steps = self.steps.checked_sub(1)?;
        match self.tree.get(id) {
            Node::Parameter(number) => match self.tree.get(self.argument(number, self.current)?.0) {
                Node::Pack(list) => Some(self.tree.list(list).len()),
                _ => None,
            },
            Node::Nested(a, b)
            | Node::Local(a, b)
            | Node::VendorQualified(a, b)
            | Node::Vector(a, b)
            | Node::MemberPointer(a, b)
            | Node::Binary(_, a, b)
            | Node::Joined(a, _, b)
            | Node::Index(a, b)
            | Node::NamedCast(_, a, b) => self.len_in(a).or_else(|| self.len_in(b)),
            Node::Tagged(a, _)
            | Node::Conversion(a)
            | Node::Constructor(a)
            | Node::Destructor(a)
            | Node::Qualified(a, _)
            | Node::Pointer(a)
            | Node::Reference(a)
            | Node::RvalueReference(a)
            | Node::Suffixed(a, _)
            | Node::Decltype(a)
            | Node::Value(a, ..)
            | Node::Unary(_, a)
            | Node::Postfix(a, _)
            | Node::Prefixed(_, a)
            | Node::Word(_, a) => self.len_in(a),
            Node::Template(a, list) | Node::Call(a, list) | Node::Cast(a, list) => {
                self.len_in(a).or_else(|| self.len_in_list(list))
            }
            Node::Function { result, parameters, .. } => {
                self.len_in(result).or_else(|| self.len_in_list(parameters))
            }
            Node::Array(a, len) => self.len_in(a).or_else(|| self.len_in(len?)),
            Node::Conditional(parts) => parts.into_iter().find_map(|id| self.len_in(id)),
            Node::Braced(ty, list) => ty.and_then(|id| self.len_in(id)).or_else(|| self.len_in_list(list)),
            Node::New(_, a, list) => self.len_in(a).or_else(|| self.len_in_list(list?)),
            Node::Pack(list) => self.len_in_list(list),
            _ => None,
        }
    }

    fn len_in_list(&mut self, list: List) -> Option<usize> {
        let tree = self.tree;
        tree.list(list).iter().find_map(|id| self.len_in(*id))
    }

    /// Whether a part is printed as nothing: a pack without arguments.
    pub(super) fn is_empty(&mut self, id: NodeId) -> bool {
        let Some(steps) = self.steps.checked_sub(1) else { return false };
        self.steps = steps;
        let tree = self.tree;
        match tree.get(id) {
            Node::Pack(list) => tree.list(list).iter().all(|id| self.is_empty(*id)),
            Node::Parameter(_) => {
                let (argument, _) = self.resolved((id, self.current));
                matches!(tree.get(argument), Node::Pack(list) if tree.list(list).is_empty())
            }
            Node::Expansion(pattern) => self.len_in(pattern) == Some(0),
            _ => false,
        }
    }
}
