//! The operators of C++ by the codes that the ABI has for them.

/// How an expression with an operator is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Prefix,
    Binary,
    /// An object's member.
    Member,
    Postfix,
    /// Before its operand and behind it; before it with an underscore behind the code.
    Step,
    Call,
    Index,
    Conditional,
    /// `new` and `new[]`.
    New,
    Delete,
    NamedCast,
    /// A word with a type in parentheses, or an expression.
    OfType,
    OfValue,
    /// Only the names of functions have it.
    NameOnly,
}

/// An operator: its code, how it is written, and the form of its expressions.
pub(super) type Operator = (&'static str, &'static str, Kind);

/// All operators, by their codes.
const OPERATORS: [Operator; 66] = [
    ("aN", "&=", Kind::Binary),
    ("aS", "=", Kind::Binary),
    ("aa", "&&", Kind::Binary),
    ("ad", "&", Kind::Prefix),
    ("an", "&", Kind::Binary),
    ("at", "alignof ", Kind::OfType),
    ("aw", "co_await ", Kind::Prefix),
    ("az", "alignof ", Kind::OfValue),
    ("cc", "const_cast", Kind::NamedCast),
    ("cl", "()", Kind::Call),
    ("cm", ",", Kind::Binary),
    ("co", "~", Kind::Prefix),
    ("dV", "/=", Kind::Binary),
    ("da", "delete[]", Kind::Delete),
    ("dc", "dynamic_cast", Kind::NamedCast),
    ("de", "*", Kind::Prefix),
    ("dl", "delete", Kind::Delete),
    ("ds", ".*", Kind::Member),
    ("dt", ".", Kind::Member),
    ("dv", "/", Kind::Binary),
    ("eO", "^=", Kind::Binary),
    ("eo", "^", Kind::Binary),
    ("eq", "==", Kind::Binary),
    ("ge", ">=", Kind::Binary),
    ("gt", ">", Kind::Binary),
    ("ix", "[]", Kind::Index),
    ("lS", "<<=", Kind::Binary),
    ("le", "<=", Kind::Binary),
    ("ls", "<<", Kind::Binary),
    ("lt", "<", Kind::Binary),
    ("mI", "-=", Kind::Binary),
    ("mL", "*=", Kind::Binary),
    ("mi", "-", Kind::Binary),
    ("ml", "*", Kind::Binary),
    ("mm", "--", Kind::Step),
    ("na", "new[]", Kind::New),
    ("ne", "!=", Kind::Binary),
    ("ng", "-", Kind::Prefix),
    ("nt", "!", Kind::Prefix),
    ("nw", "new", Kind::New),
    ("nx", "noexcept", Kind::OfValue),
    ("oR", "|=", Kind::Binary),
    ("oo", "||", Kind::Binary),
    ("or", "|", Kind::Binary),
    ("pL", "+=", Kind::Binary),
    ("pl", "+", Kind::Binary),
    ("pm", "->*", Kind::Member),
    ("pp", "++", Kind::Step),
    ("ps", "+", Kind::Prefix),
    ("pt", "->", Kind::Member),
    ("qu", "?", Kind::Conditional),
    ("rM", "%=", Kind::Binary),
    ("rS", ">>=", Kind::Binary),
    ("rc", "reinterpret_cast", Kind::NamedCast),
    ("rm", "%", Kind::Binary),
    ("rs", ">>", Kind::Binary),
    ("sP", "sizeof...", Kind::NameOnly),
    ("sZ", "sizeof...", Kind::NameOnly),
    ("sc", "static_cast", Kind::NamedCast),
    ("ss", "<=>", Kind::Binary),
    ("st", "sizeof ", Kind::OfType),
    ("sz", "sizeof ", Kind::OfValue),
    ("te", "typeid ", Kind::OfValue),
    ("ti", "typeid ", Kind::OfType),
    ("tr", "throw", Kind::Postfix),
    ("tw", "throw ", Kind::Prefix),
];

/// The operator with a code.
pub(super) fn find(code: &str) -> Option<Operator> {
    let at = OPERATORS.binary_search_by(|(known, ..)| (*known).cmp(code)).ok()?;
    OPERATORS.get(at).copied()
}

/// The builtin type with a letter.
pub(super) const fn builtin(letter: u8) -> Option<&'static str> {
    Some(match letter {
        b'v' => "void",
        b'w' => "wchar_t",
        b'b' => "bool",
        b'c' => "char",
        b'a' => "signed char",
        b'h' => "unsigned char",
        b's' => "short",
        b't' => "unsigned short",
        b'i' => "int",
        b'j' => "unsigned int",
        b'l' => "long",
        b'm' => "unsigned long",
        b'x' => "long long",
        b'y' => "unsigned long long",
        b'n' => "__int128",
        b'o' => "unsigned __int128",
        b'f' => "float",
        b'd' => "double",
        b'e' => "long double",
        b'g' => "__float128",
        b'z' => "...",
        _ => return None,
    })
}

/// The builtin type with a letter behind a `D`.
pub(super) const fn builtin_behind_d(letter: u8) -> Option<&'static str> {
    Some(match letter {
        b'a' => "auto",
        b'c' => "decltype(auto)",
        b'd' => "decimal64",
        b'e' => "decimal128",
        b'f' => "decimal32",
        b'h' => "half",
        b'i' => "char32_t",
        b'n' => "decltype(nullptr)",
        b's' => "char16_t",
        b'u' => "char8_t",
        _ => return None,
    })
}

/// The suffix of integers of a builtin type; `None` if it has no literals.
pub(super) fn suffix(builtin: &str) -> Option<&'static str> {
    Some(match builtin {
        "int" => "",
        "unsigned int" => "u",
        "long" => "l",
        "unsigned long" => "ul",
        "long long" => "ll",
        "unsigned long long" => "ull",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_are_in_the_order_of_their_codes() {
        assert!(OPERATORS.is_sorted_by(|a, b| a.0 < b.0));
        assert_eq!(find("ss").map(|it| it.1), Some("<=>"));
        assert_eq!(find("zz"), None);
    }
}
