//! A document without its counters. The front end shows each as a track above the threads.

use std::io::{self, Read};

use flate2::read::MultiGzDecoder;

use super::gzip;

/// The size of the pieces in which a document is read.
const PIECE: usize = 256 * 1024;

/// The maximum length of what is before the end of the counters, which is kept in memory.
const MAX_HEAD: usize = 64 << 20;

/// The document, compressed with gzip, without its counters. `None` if it has none, or is no document of
/// this form. O(document), with the memory of its compressed form.
///
/// # Errors
/// If it cannot be decompressed.
pub fn without_counters(document: &[u8]) -> io::Result<Option<Vec<u8>>> {
    if document.starts_with(&[0x1f, 0x8b]) {
        rewrite(MultiGzDecoder::new(document))
    } else {
        rewrite(document)
    }
}

fn rewrite(mut text: impl Read) -> io::Result<Option<Vec<u8>>> {
    let (mut head, mut search) = (Vec::new(), CountersSearch::default());
    let found = loop {
        let begin = head.len();
        let read = text.by_ref().take(PIECE as u64).read_to_end(&mut head)?;
        match search.look_at(&head, begin) {
            SearchState::Found(start, end) => break start..end,
            SearchState::Ended => return Ok(None),
            SearchState::Looking if read == 0 || head.len() > MAX_HEAD => return Ok(None),
            SearchState::Looking => {}
        }
    };
    if head[found.clone()].iter().filter(|byte| !byte.is_ascii_whitespace()).eq(b"[]") {
        return Ok(None);
    }
    let document = gzip::compress(Vec::new(), |out| {
        out.write_all(&head[..found.start])?;
        out.write_all(b"[]")?;
        out.write_all(&head[found.end..])?;
        io::copy(&mut text, out).map(drop)
    })?;
    Ok(Some(document))
}

#[derive(Debug, PartialEq)]
enum SearchState {
    Looking,
    /// The begin and the end of the array of counters.
    Found(usize, usize),
    /// The document has none.
    Ended,
}

/// Finds the member `counters` of the outermost object.
#[derive(Default)]
struct CountersSearch {
    depth: usize,
    in_string: bool,
    is_escaped: bool,
    /// The begin of the last string of the outermost object, and its end.
    string: (usize, usize),
    /// The begin of the array.
    start: Option<usize>,
}

impl CountersSearch {
    /// Goes on from a position of the text.
    fn look_at(&mut self, text: &[u8], from: usize) -> SearchState {
        for (position, &byte) in text.iter().enumerate().skip(from) {
            if self.in_string {
                self.pass_string(position, byte);
                continue;
            }
            match byte {
                b'"' => {
                    self.in_string = true;
                    if self.depth == 1 {
                        self.string = (position, position);
                    }
                }
                b':' if self.depth == 1 && &text[self.string.0..self.string.1] == b"\"counters" => {
                    self.start = Some(position + 1);
                }
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    match (self.depth, self.start) {
                        (0, _) => return SearchState::Ended,
                        (1, Some(start)) => return SearchState::Found(start, position + 1),
                        _ => {}
                    }
                }
                // The member is no array.
                b',' if self.depth == 1 && self.start.is_some() => return SearchState::Ended,
                _ => {}
            }
        }
        SearchState::Looking
    }

    fn pass_string(&mut self, position: usize, byte: u8) {
        if self.is_escaped {
            self.is_escaped = false;
        } else if byte == b'\\' {
            self.is_escaped = true;
        } else if byte == b'"' {
            self.in_string = false;
            if self.depth == 1 {
                self.string.1 = position;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(text: &str) -> Option<String> {
        let changed = without_counters(text.as_bytes()).unwrap()?;
        let compressed = gzip::compress(Vec::new(), |out| out.write_all(text.as_bytes())).unwrap();
        assert_eq!(without_counters(&compressed).unwrap().as_ref(), Some(&changed));
        let mut document = String::new();
        MultiGzDecoder::new(&changed[..]).read_to_string(&mut document).unwrap();
        Some(document)
    }

    #[test]
    fn the_counters_of_the_document_are_removed() {
        let text = r#"{"meta":{"counters":[1],"a\"":"]}"}, "counters" : [{"x":"]"},[2]] ,"threads":[{}]}"#;
        let expected = r#"{"meta":{"counters":[1],"a\"":"]}"}, "counters" :[] ,"threads":[{}]}"#;
        assert_eq!(rewritten(text).as_deref(), Some(expected));
        let long =
            format!(r#"{{"meta":"{}","counters":[3],"b":"{}"}}"#, "x".repeat(600_000), "y".repeat(600_000));
        assert_eq!(rewritten(&long), Some(long.replace("[3]", "[]")));
    }

    #[test]
    fn other_documents_stay() {
        for text in [
            "",
            "{",
            r#"{"counters":[]}"#,
            r#"{"counters":null,"a":[]}"#,
            r#"{"a":{"counters":[1]}}"#,
            "[[1]]",
            "]]",
            "\"counters\":[1]",
        ] {
            assert_eq!(rewritten(text), None, "{text}");
        }
        assert!(without_counters(&[0x1f, 0x8b, 1, 2]).is_err());
    }
}
