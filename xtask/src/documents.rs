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

/// The longest page of a crate that the registry shows. It is to be read in a minute.
#[cfg(test)]
const MAX_README_LINES: usize = 60;

/// The faults of the page of a published library.
#[cfg(test)]
fn readme_faults(crate_folder: &Path) -> Vec<String> {
    let read = |file: &str| std::fs::read_to_string(crate_folder.join(file)).unwrap_or_default();
    let (readme, lib) = (read("README.md"), read("src/lib.rs"));
    let name = crate_folder.file_name().unwrap_or_default().display();
    let checks = [
        (readme.starts_with(&format!("# {name}\n")), "has no README.md with its name"),
        (readme.contains("```rust"), "has no example"),
        (readme.lines().count() <= MAX_README_LINES, "has a page that is too long"),
        (lib.contains("include_str!(\"../README.md\")"), "does not compile its example"),
    ];
    checks.into_iter().filter(|(holds, _)| !holds).map(|(_, fault)| format!("{name} {fault}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_library_has_a_page_with_an_example() {
        let crates = crate::paths::root().join("crates");
        let folders = std::fs::read_dir(crates).unwrap().map(|entry| entry.unwrap().path());
        let libraries: Vec<_> = folders.filter(|folder| folder.join("src/lib.rs").exists()).collect();
        assert!(libraries.len() >= 19, "{libraries:?}");
        let faults: Vec<_> = libraries.iter().flat_map(|folder| readme_faults(folder)).collect();
        assert_eq!(faults, Vec::<String>::new());
        assert_eq!(readme_faults(&crate::paths::root().join("docs")).len(), 3);
    }

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
