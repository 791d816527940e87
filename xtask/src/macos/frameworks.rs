//! Stubs of the frameworks of macOS: they tell the linker which functions are in which library of the system.
//!
//! Listed is what nyquist's dependencies declare and refer to (core-foundation, security-framework,
//! rustls-platform-verifier), and nothing else, so the link fails for any other function. Whether the frameworks have
//! these is not checked. What is in no framework is in zig's own stub of `libSystem`. The form is that of text-based
//! stubs ("tbd", version 4).

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

/// A framework, and the functions and constants of it that are referred to, one a line.
struct Framework {
    name: &'static str,
    symbols: &'static str,
}

const FRAMEWORKS: [Framework; 2] = [
    Framework { name: "CoreFoundation", symbols: include_str!("core_foundation.txt") },
    Framework { name: "Security", symbols: include_str!("security.txt") },
];

/// The compiler's flag for a folder in which the linker looks for frameworks.
pub(crate) fn flag(folder: &Path) -> String {
    format!("-Lframework={}", folder.display())
}

/// Writes the stubs into a folder.
pub(crate) fn write_into(folder: &Path) -> Result<()> {
    for framework in &FRAMEWORKS {
        let name = framework.name;
        let own = folder.join(format!("{name}.framework"));
        fs::create_dir_all(&own).with_context(|| format!("cannot make {}", own.display()))?;
        let path = own.join(format!("{name}.tbd"));
        // The linker is not run again for a file that has not changed.
        if fs::read_to_string(&path).ok().is_none_or(|before| before != framework.text()) {
            fs::write(&path, framework.text()).with_context(|| format!("cannot write {}", path.display()))?;
        }
    }
    Ok(())
}

impl Framework {
    /// The stub's text. In C's way, the names begin with an underscore.
    fn text(&self) -> String {
        let (name, targets) = (self.name, "[ x86_64-macos, arm64-macos ]");
        let symbols: Vec<String> = self.symbols.lines().map(|symbol| format!("_{symbol}")).collect();
        format!(
            "--- !tapi-tbd
tbd-version: 4
targets: {targets}
install-name: '/System/Library/Frameworks/{name}.framework/Versions/A/{name}'
exports:
  - targets: {targets}
    symbols: [ {} ]
...
",
            symbols.join(", ")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::FRAMEWORKS;

    #[test]
    fn a_stub_names_its_library_and_its_functions() {
        let text = FRAMEWORKS[0].text();
        assert!(text.contains("/CoreFoundation.framework/Versions/A/CoreFoundation'"), "{text}");
        assert!(text.contains(" _CFRelease,") && !text.contains("_Sec"), "{text}");
    }
}
