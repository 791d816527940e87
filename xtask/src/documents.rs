//! Checks of all documents: their links to each other are valid, and the first ones to read are short.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

use crate::documented::documents;

/// The documents to read first, and how many bytes each may have.
const SHORT: &[(&str, usize)] =
    &[("ARCHITECTURE.md", 17_000), ("docs/guide.md", 12_000), ("README.md", 8_000)];

/// The errors in the documents below a folder, one on each line.
fn faults(root: &Path) -> Result<Vec<String>> {
    let mut faults = Vec::new();
    for document in documents(root)? {
        let text = read(&document)?;
        for link in links(&text) {
            if let Some(fault) = fault(&document, &link)? {
                faults.push(format!("{}: {link}: {fault}", document.display()));
            }
        }
    }
    for (name, most) in SHORT {
        let size = read(&root.join(name))?.len();
        if size > *most {
            faults.push(format!("{name} has {size} bytes, more than {most}"));
        }
    }
    Ok(faults)
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

/// The targets of a text's links, without links to the web.
fn links(text: &str) -> Vec<String> {
    let (mut links, mut is_code) = (Vec::new(), false);
    for line in text.lines() {
        is_code ^= line.trim_start().starts_with("```");
        let targets = line.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(link, _)| link);
        let is_own = |link: &&str| !link.contains("://") && !link.contains(' ') && !is_code;
        links.extend(targets.filter(is_own).map(str::to_owned));
    }
    links
}

/// The error of a link in a document.
fn fault(document: &Path, link: &str) -> Result<Option<&'static str>> {
    let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
    let target = if path.is_empty() { document.to_owned() } else { document.with_file_name(path) };
    if !target.exists() {
        return Ok(Some("there is no such file"));
    }
    if anchor.is_empty() || target.extension().is_none_or(|ending| ending != "md") {
        return Ok(None);
    }
    let has_heading = read(&target)?.lines().any(|line| line.starts_with('#') && anchor_of(line) == anchor);
    Ok((!has_heading).then_some("there is no such heading"))
}

/// The anchor by which a heading is linked.
fn anchor_of(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    let retained = text.chars().filter(|letter| letter.is_alphanumeric() || " _-".contains(*letter));
    retained.map(|letter| if letter == ' ' { '-' } else { letter }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_in_order() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        assert_eq!(faults(root).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn links_are_found_outside_of_code() {
        let text = "[a](b.md#c-d) [web](https://x.org/y)\n```\n[no](no.md)\n```\n[e](#f)";
        assert_eq!(links(text), ["b.md#c-d", "#f"]);
        assert_eq!(anchor_of("### What is `kept`, and where"), "what-is-kept-and-where");
        let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("../README.md");
        assert_eq!(fault(&here, "docs/nothing.md").unwrap(), Some("there is no such file"));
        assert_eq!(fault(&here, "docs/guide.md#nothing").unwrap(), Some("there is no such heading"));
        assert_eq!(fault(&here, "docs/guide.md#record").unwrap(), None);
    }
}
