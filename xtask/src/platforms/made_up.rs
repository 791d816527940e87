//! A link for macOS proves that its functions exist only if a link with a made-up function fails.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};

use crate::macos::frameworks;
use crate::zig::Zig;

/// A package of small programs. Its profile is the project's, so that the standard library is not built anew.
const MANIFEST: &str = r#"[package]
name = "made-up"
version = "0.0.0"
edition = "2024"

[profile.dev]
opt-level = 1
debug = "line-tables-only"

[workspace]
"#;

const LOCK: &str = r#"version = 4

[[package]]
name = "made-up"
version = "0.0.0"
"#;

/// Programs that call one function each: the name, where the function is, the function, and whether there is one.
const PROGRAMS: [(&str, &str, &str, bool); 4] = [
    ("system", "", "task_threads", true),
    ("framework", "CoreFoundation", "CFRelease", true),
    ("no-system", "", "nyquist_no_such_function", false),
    ("no-framework", "CoreFoundation", "CFNoSuchFunction", false),
];

/// Links the programs as the command is linked. Fails unless those with a made-up function are refused, and only
/// those.
pub(super) fn is_refused(zig: &Zig, target: &str, stubs: &Path, folder: &Path) -> Result<()> {
    let package = folder.join("made-up");
    let programs = package.join("src/bin");
    fs::create_dir_all(&programs).with_context(|| format!("cannot make {}", programs.display()))?;
    fs::write(package.join("Cargo.toml"), MANIFEST)?;
    fs::write(package.join("Cargo.lock"), LOCK)?;
    for (name, framework, function, _) in PROGRAMS {
        fs::write(programs.join(format!("{name}.rs")), program(framework, function))?;
    }
    for (name, _, function, exists) in PROGRAMS {
        let mut link = zig.cargo(&["rustc", "--bin", name], target, folder);
        link.arg("--manifest-path").arg(package.join("Cargo.toml")).arg("--").arg(frameworks::flag(stubs));
        let linked = link.output().with_context(|| format!("cannot start {link:?}"))?;
        let messages = String::from_utf8_lossy(&linked.stderr);
        ensure!(linked.status.success() == exists, "the link with {function} for {target}: {messages}");
        ensure!(exists || messages.contains(function), "it is not for {function} that it fails: {messages}");
    }
    println!("A function that macOS does not have fails the link.");
    Ok(())
}

/// A program that calls a function.
fn program(framework: &str, function: &str) -> String {
    let library = if framework.is_empty() {
        String::new()
    } else {
        format!("#[link(name = \"{framework}\", kind = \"framework\")]\n")
    };
    format!(
        "{library}unsafe extern \"C\" {{\n    fn {function}(argument: usize);\n}}\n\nfn main() {{\n    \
         unsafe {{ {function}(0) }}\n}}\n"
    )
}
