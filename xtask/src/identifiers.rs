//! A check of all source files: identifiers use the words of the field, in place of words that only this project used.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context as _, Result};
use proc_macro2::{TokenStream, TokenTree};

use crate::sources::sources;

/// The folders with source files, below the root.
const FOLDERS: [&str; 4] = ["crates", "fuzz", "test-support", "xtask"];

/// Words that are no identifiers, with what the field says.
const REPLACED: [(&str, &str); 7] = [
    ("kept", "retained, cached or saved"),
    ("living", "live"),
    ("make_last", "move_to_end"),
    ("refusal", "error or denied"),
    ("said", "printed, output or message"),
    ("stated", "provided or declared"),
    ("wanted", "requested, selected or expected"),
];

/// The identifiers of a source file, outside of comments and texts.
fn identifiers(tokens: TokenStream, found: &mut BTreeSet<String>) {
    for token in tokens {
        match token {
            TokenTree::Ident(name) => {
                found.insert(name.to_string());
            }
            TokenTree::Group(group) => identifiers(group.stream(), found),
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
}

/// What to call the identifiers of a source file that have other names.
fn faults_of(text: &str) -> Result<Vec<String>> {
    let tokens: TokenStream = text.parse().ok().context("is not Rust")?;
    let mut found = BTreeSet::new();
    identifiers(tokens, &mut found);
    let replaced = REPLACED.iter().filter(|(word, _)| found.contains(*word));
    Ok(replaced.map(|(word, better)| format!("`{word}` is called {better}")).collect())
}

/// The faults of all source files, one on each line.
fn faults(root: &Path) -> Result<Vec<String>> {
    let mut faults = Vec::new();
    for folder in FOLDERS {
        for path in sources(&root.join(folder))? {
            let place = path.strip_prefix(root).unwrap_or(&path).display().to_string();
            let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {place}"))?;
            let found = faults_of(&text).with_context(|| place.clone())?;
            faults.extend(found.into_iter().map(|fault| format!("{place}: {fault}")));
        }
    }
    Ok(faults)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_use_the_words_of_the_field() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        assert_eq!(faults(root).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn only_identifiers_are_looked_at() {
        let found = |text: &str| faults_of(text).unwrap();
        assert_eq!(found("fn f(kept: u8) { [kept] }"), ["`kept` is called retained, cached or saved"]);
        assert_eq!(found("// It is kept.\nconst A: &str = \"wanted\"; fn unkept() {}"), Vec::<String>::new());
    }
}
