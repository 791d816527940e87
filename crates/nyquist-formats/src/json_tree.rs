//! Reads trees in JSON with nested nodes. It uses no recursion, because they are as deep as stacks.

use rustc_hash::FxHashMap;

/// The place of the tree in a document, and the requested members of its nodes.
pub(crate) struct TreeShape {
    /// The member of the document that is the outermost node, or an array of these.
    pub root: &'static str,
    /// The member of a node that is an array of nodes.
    pub children: &'static str,
    /// The requested members of a node. `a.b` is the member `b` of the member `a`.
    pub members: &'static [&'static str],
}

/// A text or a number.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Scalar {
    #[default]
    Missing,
    Text(String),
    Number(f64),
}

impl Scalar {
    pub(crate) fn text(&self) -> &str {
        if let Self::Text(text) = self { text } else { "" }
    }

    pub(crate) fn number(&self) -> Option<f64> {
        if let Self::Number(number) = self { Some(*number) } else { None }
    }
}

/// A node: its parent, which precedes it, and its members in the order of the shape.
#[derive(Debug, PartialEq)]
pub(crate) struct JsonNode {
    pub parent: Option<usize>,
    pub members: Vec<Scalar>,
}

/// The data that is read from a document.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct JsonTree {
    /// The texts and numbers that are members of the document.
    pub top: FxHashMap<String, Scalar>,
    pub nodes: Vec<JsonNode>,
}

/// Reads the tree of a document. Unused parts are not checked to be valid JSON. `None` if the document is
/// truncated or is no JSON. O(length).
pub(crate) fn read(bytes: &[u8], shape: &TreeShape) -> Option<JsonTree> {
    let mut reader = JsonTreeReader { shape, document: JsonTree::default(), open: Vec::new() };
    let mut tokens = Tokens { bytes, at: 0 };
    while let Some(token) = tokens.next()? {
        reader.take(token)?;
        if reader.open.is_empty() {
            return Some(reader.document);
        }
    }
    None
}

/// The role of an object or array.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ContainerRole {
    Document,
    Node(usize),
    /// A member of a node that is an object.
    Member(usize),
    /// An array of nodes, with their parent.
    Nodes(Option<usize>),
    Other,
}

struct OpenContainer {
    role: ContainerRole,
    /// The last key.
    key: String,
    is_array: bool,
}

struct JsonTreeReader<'a> {
    shape: &'a TreeShape,
    document: JsonTree,
    open: Vec<OpenContainer>,
}

impl JsonTreeReader<'_> {
    fn take(&mut self, token: Token) -> Option<()> {
        match token {
            Token::OpenContainer { is_array } => {
                let role = self.role(is_array);
                self.open.push(OpenContainer { role, key: String::new(), is_array });
            }
            Token::Close { is_array } => {
                let open = self.open.pop()?;
                return (open.is_array == is_array).then_some(());
            }
            Token::Key(key) => self.open.last_mut().filter(|open| !open.is_array)?.key = key,
            Token::Scalar(scalar) => self.add(scalar),
        }
        Some(())
    }

    /// The role of the object or array that begins.
    fn role(&mut self, is_array: bool) -> ContainerRole {
        let Some(open) = self.open.last() else { return ContainerRole::Document };
        match open.role {
            ContainerRole::Document if open.key == self.shape.root => {
                if is_array {
                    ContainerRole::Nodes(None)
                } else {
                    self.add_node(None)
                }
            }
            ContainerRole::Nodes(parent) if !is_array => self.add_node(parent),
            ContainerRole::Node(node) if is_array && open.key == self.shape.children => {
                ContainerRole::Nodes(Some(node))
            }
            ContainerRole::Node(node) if !is_array => ContainerRole::Member(node),
            _ => ContainerRole::Other,
        }
    }

    fn add_node(&mut self, parent: Option<usize>) -> ContainerRole {
        let members = vec![Scalar::Missing; self.shape.members.len()];
        self.document.nodes.push(JsonNode { parent, members });
        ContainerRole::Node(self.document.nodes.len() - 1)
    }

    fn add(&mut self, scalar: Scalar) {
        let Some((open, outer)) = self.open.split_last() else { return };
        let is_requested = |member: &&str| match open.role {
            ContainerRole::Node(_) => **member == open.key,
            _ => member.split_once('.').is_some_and(|(object, key)| {
                key == open.key && outer.last().is_some_and(|outer| outer.key == object)
            }),
        };
        match open.role {
            ContainerRole::Document => drop(self.document.top.insert(open.key.clone(), scalar)),
            ContainerRole::Node(node) | ContainerRole::Member(node) => {
                if let Some(at) = self.shape.members.iter().position(is_requested) {
                    self.document.nodes[node].members[at] = scalar;
                }
            }
            ContainerRole::Nodes(_) | ContainerRole::Other => {}
        }
    }
}

enum Token {
    OpenContainer { is_array: bool },
    Close { is_array: bool },
    Key(String),
    Scalar(Scalar),
}

struct Tokens<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Tokens<'_> {
    /// The next token. `Some(None)` at the end, and `None` if it is invalid.
    #[expect(clippy::option_option, reason = "an end and an error are not the same")]
    fn next(&mut self) -> Option<Option<Token>> {
        let is_space = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b',' | b':');
        self.at += self.bytes[self.at..].iter().take_while(|byte| is_space(byte)).count();
        let Some(&byte) = self.bytes.get(self.at) else { return Some(None) };
        let token = match byte {
            b'{' | b'[' => Token::OpenContainer { is_array: byte == b'[' },
            b'}' | b']' => Token::Close { is_array: byte == b']' },
            b'"' => return self.text().map(Some),
            _ => return self.word().map(Some),
        };
        self.at += 1;
        Some(Some(token))
    }

    fn text(&mut self) -> Option<Token> {
        let start = self.at;
        let mut end = start + 1;
        loop {
            match self.bytes.get(end)? {
                b'"' => break,
                b'\\' => end += 2,
                _ => end += 1,
            }
        }
        self.at = end + 1;
        let text: String = serde_json::from_slice(self.bytes.get(start..=end)?).ok()?;
        let spaces = self.bytes[self.at..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        let is_key = self.bytes.get(self.at + spaces) == Some(&b':');
        Some(if is_key { Token::Key(text) } else { Token::Scalar(Scalar::Text(text)) })
    }

    /// A number, or one of `true`, `false` and `null`, which are not used.
    fn word(&mut self) -> Option<Token> {
        let rest = &self.bytes[self.at..];
        let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
        let length = rest.iter().take_while(|byte| is_word(byte)).count();
        self.at += length;
        let word = std::str::from_utf8(&rest[..length]).ok().filter(|word| !word.is_empty())?;
        let number = word.parse().ok().filter(|number: &f64| number.is_finite());
        Some(Token::Scalar(number.map_or(Scalar::Missing, Scalar::Number)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: TreeShape =
        TreeShape { root: "head", children: "children", members: &["size", "frame.name"] };

    #[test]
    fn nodes_have_parents_and_members_in_any_order() {
        let text = r#"{"a":1.5,"head":{"children":[{"frame":{"x":{"name":"no"},"name":"\u0062\"c"},"size":3}],"size":2,
            "frame":{"name":"a"},"other":[{"size":9}]},"head2":[{"size":7}]}"#;
        let document = read(text.as_bytes(), &SHAPE).unwrap();
        let node = |parent, size, name: &str| JsonNode {
            parent,
            members: vec![Scalar::Number(size), Scalar::Text(name.into())],
        };
        assert_eq!(document.nodes, [node(None, 2.0, "a"), node(Some(0), 3.0, "b\"c")]);
        assert_eq!(document.top["a"], Scalar::Number(1.5));
    }

    #[test]
    fn any_depth_is_read_and_a_cut_is_reported() {
        let deep = 200_000;
        let open = r#"{"size":1,"children":["#;
        let text = format!(r#"{{"head":{}{}}}"#, open.repeat(deep), "]}".repeat(deep));
        assert_eq!(read(text.as_bytes(), &SHAPE).unwrap().nodes.len(), deep);
        for text in ["", "{", r#"{"head":{"#, "]", r#"{"a":"\"#, r#"{"head":[}"#, "{?}", r#"{"a":"x\"#] {
            assert_eq!(read(text.as_bytes(), &SHAPE), None, "{text}");
        }
    }
}
