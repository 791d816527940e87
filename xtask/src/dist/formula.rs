//! The formula for Homebrew: a template with the version and the checksums filled in.

use std::fs;

use anyhow::{Context as _, Result, ensure};

use super::checksums::Checksums;
use super::project::Project;
use super::target::TARGETS;

/// The name of the filled-in file.
pub(super) const NAME: &str = "nyquist.rb";

/// The template, below the project's root.
const TEMPLATE: &str = "packaging/homebrew/nyquist.rb";

/// Where a released file can be downloaded.
pub(super) fn address(project: &Project, file: &str) -> String {
    format!("{}/releases/download/v{}/{file}", project.repository, project.version)
}

/// The project's formula with these archives.
pub(super) fn make(project: &Project, sums: &Checksums) -> Result<String> {
    let path = crate::paths::root().join(TEMPLATE);
    let template = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    fill(&template, project, sums)
}

/// A template with all words filled in, and only the parts whose archives were made.
fn fill(template: &str, project: &Project, sums: &Checksums) -> Result<String> {
    let is_made = |triple: &str| {
        TARGETS
            .iter()
            .any(|target| target.triple == triple && sums.of(&target.archive(&project.version)).is_some())
    };
    // For each part that a line is in, whether it stays.
    let mut parts: Vec<bool> = Vec::new();
    let mut lines = vec!["# Made by `cargo xtask dist`."];
    // The first comment is about the template.
    for line in template.lines().skip_while(|line| line.starts_with('#')) {
        let comment = line.trim().strip_prefix("# ").unwrap_or_default();
        if let Some(triples) = comment.strip_prefix("part with ") {
            parts.push(triples.split(' ').any(is_made));
        } else if let Some(triples) = comment.strip_prefix("part without ") {
            parts.push(!triples.split(' ').any(is_made));
        } else if comment == "end part" {
            parts.pop().context("a part ends that did not begin")?;
        } else if parts.iter().all(|stays| *stays) && !(line.is_empty() && lines.last() == Some(&"")) {
            lines.push(line);
        }
    }
    ensure!(parts.is_empty(), "a part of {TEMPLATE} does not end");
    let mut text = lines.join("\n") + "\n";
    for (word, value) in [
        ("DESCRIPTION", &project.description),
        ("REPOSITORY", &project.repository),
        ("VERSION", &project.version),
    ] {
        text = text.replace(&format!("@{word}@"), value);
    }
    for target in TARGETS {
        let archive = target.archive(&project.version);
        text = text.replace(&format!("@URL {}@", target.triple), &address(project, &archive));
        if let Some(digits) = sums.of(&archive) {
            text = text.replace(&format!("@SHA256 {}@", target.triple), digits);
        }
    }
    ensure!(!text.contains('@'), "a word of {TEMPLATE} is not known: {text}");
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(triples: &[&str]) -> String {
        let project = Project {
            version: "1.2.3".to_owned(),
            repository: "https://example.org/nyquist".to_owned(),
            description: "A profiler".to_owned(),
            time: 0,
        };
        let mut sums = Checksums::default();
        for triple in triples {
            sums.add(&format!("nyquist-1.2.3-{triple}.tar.gz"), triple.as_bytes());
        }
        make(&project, &sums).unwrap()
    }

    #[test]
    fn only_archives_that_were_made_are_named() {
        let linux = made(&["x86_64-unknown-linux-musl"]);
        assert!(linux.contains("depends_on :linux") && !linux.contains("on_macos"), "{linux}");
        assert!(linux.contains("on_intel") && !linux.contains("on_arm"), "{linux}");
        let url = "https://example.org/nyquist/releases/download/v1.2.3/nyquist-1.2.3-x86_64-unknown-linux-musl.tar.gz";
        assert!(linux.contains(&format!("url \"{url}\"")), "{linux}");
        let both = made(&["x86_64-unknown-linux-musl", "aarch64-apple-darwin"]);
        assert!(both.contains("on_macos") && !both.contains("depends_on"), "{both}");
        assert_eq!(both.matches("sha256").count(), 2, "{both}");
    }

    #[test]
    fn parts_have_an_end() {
        let project = Project {
            version: String::new(),
            repository: String::new(),
            description: String::new(),
            time: 0,
        };
        for template in ["class A\n# part with x\n", "class A\n# end part\n", "class A\n@OTHER@\n"] {
            assert!(fill(template, &project, &Checksums::default()).is_err(), "{template}");
        }
    }
}
