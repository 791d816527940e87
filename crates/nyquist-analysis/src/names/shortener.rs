//! One pass over a Rust or C++ name that leaves out its arguments, its parameters and its return type.

use super::brackets::{OPERATORS, closing, split_outside};

/// The maximum depth of nested qualified types (`<<A as B>::C as D>::e`). The rest is left unchanged.
const MAX_DEPTH: usize = 8;

/// Goes once over a name and copies what stays.
pub(super) struct Shortener<'a> {
    rest: &'a str,
    out: String,
    depth: usize,
    has_parameters: bool,
}

impl<'a> Shortener<'a> {
    pub(super) fn new(name: &'a str, depth: usize) -> Self {
        Self { rest: name, out: String::new(), depth, has_parameters: name.contains('(') }
    }

    /// `None` if the brackets do not match.
    pub(super) fn run(mut self) -> Option<String> {
        while let Some(next) = self.rest.chars().next() {
            match next {
                'o' if self.operator() => {}
                '<' => self.angle()?,
                '(' => self.parenthesis()?,
                '{' => self.brace()?,
                ' ' => self.blank(),
                _ => self.copy(next.len_utf8()),
            }
        }
        Some(self.out)
    }

    fn copy(&mut self, len: usize) {
        let (copied, rest) = self.rest.split_at(len);
        self.out.push_str(copied);
        self.rest = rest;
    }

    /// The text in the brackets at which the rest begins, and the text after them.
    fn group(&self) -> Option<(&'a str, &'a str)> {
        let end = closing(self.rest)?;
        Some((&self.rest[1..end], &self.rest[end + 1..]))
    }

    fn begins_segment(&self) -> bool {
        self.out.is_empty() || self.out.ends_with("::")
    }

    /// Copies `operator<<` and similar names, whose angle signs are no brackets. Returns whether there was
    /// one.
    fn operator(&mut self) -> bool {
        let is_new_word = !self.out.ends_with(|char: char| char.is_alphanumeric() || char == '_');
        let Some(after) = self.rest.strip_prefix("operator").filter(|_| is_new_word) else { return false };
        if let Some(sign) = OPERATORS.iter().find(|sign| after.starts_with(**sign)) {
            self.copy("operator".len() + sign.len());
            // Demanglers separate the template's brackets from the sign.
            if self.rest.starts_with(" <") {
                self.rest = &self.rest[1..];
            }
            return true;
        }
        // `operator new[]`, and conversion operators: the type up to the parameters.
        let Some(kind) = after.strip_prefix(' ') else { return false };
        let len = kind.find(['(', '<']).unwrap_or(kind.len());
        self.copy("operator ".len() + len);
        true
    }

    fn angle(&mut self) -> Option<()> {
        let (inner, after) = self.group()?;
        if !self.begins_segment() {
            self.rest = after;
            return Some(());
        }
        let is_implementation = inner.starts_with("impl ");
        if self.out.ends_with("::") && !is_implementation {
            // `collect::<Vec<_>>`
            self.out.truncate(self.out.len() - 2);
        } else if self.out.is_empty() && !after.starts_with("::") {
            // `<module>` and other names that are no path.
            return None;
        } else {
            let qualified = self.qualified(inner);
            self.out.push_str(&qualified);
        }
        self.rest = after;
        Some(())
    }

    /// `<Type as Trait>`, `<impl Trait for Type>` and `<Type>`, each with the last part of its paths.
    fn qualified(&self, inner: &str) -> String {
        if self.depth >= MAX_DEPTH {
            return format!("<{inner}>");
        }
        let last = |path: &str| self.last_part(path);
        if let Some((of, name)) = split_outside(inner, " as ") {
            return format!("<{} as {}>", last(of), last(name));
        }
        if let Some((name, of)) = inner.strip_prefix("impl ").and_then(|inner| split_outside(inner, " for "))
        {
            return format!("<impl {} for {}>", last(name), last(of));
        }
        let short = Shortener::new(inner, self.depth + 1).run().unwrap_or_else(|| inner.to_owned());
        let is_path = short.chars().all(|char| char.is_alphanumeric() || "_:<>{}#".contains(char));
        if is_path { short } else { format!("<{}>", types_shortened(inner, self.depth)) }
    }

    /// A type without its arguments and the modules that it is in.
    fn last_part(&self, path: &str) -> String {
        let signs = path.len() - path.trim_start_matches(['&', '*']).len();
        let (signs, path) = path.split_at(signs);
        let is_plain = path.starts_with(|char: char| char.is_alphanumeric() || char == '_' || char == '<');
        let words = ["dyn ", "mut ", "const ", "fn(", "unsafe ", "impl "];
        if !is_plain || words.iter().any(|word| path.starts_with(word)) {
            return format!("{signs}{}", types_shortened(path, self.depth));
        }
        let short = Shortener::new(path, self.depth + 1).run().unwrap_or_else(|| path.to_owned());
        let short = match short.strip_prefix('<') {
            Some(_) => short.as_str(),
            None => short.rsplit("::").next().unwrap_or_default(),
        };
        format!("{signs}{short}")
    }

    fn parenthesis(&mut self) -> Option<()> {
        let (inner, after) = self.group()?;
        if self.begins_segment() {
            // `(anonymous namespace)`
            self.copy(inner.len() + 2);
            return Some(());
        }
        self.rest = after;
        if !after.starts_with("::") {
            self.qualifiers();
        }
        Some(())
    }

    /// Leaves out C++'s qualifiers after the parameters; the compiler's suffixes of clones stay.
    fn qualifiers(&mut self) {
        let known = [" const", " volatile", " noexcept", " &&", " &", "&&", "&"];
        while let Some(rest) = known.iter().find_map(|word| self.rest.strip_prefix(word)) {
            self.rest = rest;
        }
        if !self.rest.starts_with("::") {
            let len = self.rest.len();
            self.copy(len);
        }
    }

    /// `{{closure}}`, `{closure#0}`, `{impl#0}`, `{lambda(int)#1}`, `{shim:vtable#0}`.
    fn brace(&mut self) -> Option<()> {
        let (mut inner, after) = self.group()?;
        while let Some(doubled) = inner.strip_prefix('{').and_then(|inner| inner.strip_suffix('}')) {
            inner = doubled;
        }
        let inner = match (inner.find('('), inner.rfind(')')) {
            (Some(open), Some(close)) if open < close => format!("{}{}", &inner[..open], &inner[close + 1..]),
            _ => inner.to_owned(),
        };
        self.out.push('{');
        self.out.push_str(&inner);
        self.out.push('}');
        self.rest = after;
        Some(())
    }

    /// Outside of brackets, a space separates the return type from the name, or the name from its qualifiers.
    fn blank(&mut self) {
        let is_note = self.rest.starts_with(" [") || self.rest.starts_with(" (.");
        if is_note || !self.has_parameters {
            let len = self.rest.len();
            self.copy(len);
            return;
        }
        self.out.clear();
        self.rest = self.rest[1..].trim_start_matches(['&', '*', ' ']);
    }
}

/// A type that is more than a path, without the modules of the paths in it: `&[alloc::string::String]`.
fn types_shortened(text: &str, depth: usize) -> String {
    let is_path = |char: char| char.is_alphanumeric() || char == '_' || char == ':';
    let mut out = String::new();
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        if is_path(next) {
            let len = rest.find(|char| !is_path(char)).unwrap_or(rest.len());
            out.push_str(rest[..len].rsplit("::").next().unwrap_or_default());
            rest = &rest[len..];
        } else if next == '<' && depth < MAX_DEPTH {
            let Some(end) = closing(rest) else { return text.to_owned() };
            rest = &rest[end + 1..];
        } else {
            out.push(next);
            rest = &rest[next.len_utf8()..];
        }
    }
    out
}
