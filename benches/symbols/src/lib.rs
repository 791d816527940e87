//! What the benchmarks and the comparison share: building programs, and answers in a common form.

pub mod fixtures;
pub mod known;
pub mod oracle;
pub mod sys;

use std::fmt;

/// One frame as every engine can say it: the demangled function, the file, the line.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct PlainFrame {
    pub function: Option<String>,
    pub file: Option<String>,
    pub line: Option<u32>,
}

impl fmt::Display for PlainFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |text: &Option<String>| text.clone().unwrap_or_else(|| "?".to_owned());
        write!(f, "{} {}:{}", text(&self.function), text(&self.file), self.line.unwrap_or(0))
    }
}

/// The frames of one address, the innermost first.
pub type Chain = Vec<PlainFrame>;

/// What this project answers, in the common form.
pub fn own_chain(info: &nyquist_symbols::AddressInfo) -> Chain {
    let frames = info.frames.iter().map(|frame| PlainFrame {
        function: frame.function.as_deref().map(str::to_owned),
        file: frame.file.as_deref().map(plain_path),
        line: frame.line,
    });
    frames.collect()
}

/// A path without the parts that say nothing: engines differ in whether they keep `./` and `a/../`.
pub fn plain_path(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "." | "" => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    format!("{}{}", if path.starts_with('/') { "/" } else { "" }, parts.join("/"))
}
