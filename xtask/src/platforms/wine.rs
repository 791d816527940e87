//! A Wine that can run programs of Rust.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

/// A library of Windows that Wine 8 lacks and that each program of Rust needs (`ProcessPrng`).
const RANDOM: &str = "int __stdcall SystemFunction036(void *, unsigned long);
__declspec(dllexport) int ProcessPrng(unsigned char *bytes, unsigned long long len) {
    return SystemFunction036(bytes, len);
}
";

/// A Wine of its own that can run programs of Rust, as environment variables of cargo.
pub(crate) fn environment(folder: &Path) -> Result<[(&'static str, PathBuf); 3]> {
    let prefix = folder.join("wine");
    let system = prefix.join("drive_c/windows/system32");
    let library = system.join("bcryptprimitives.dll");
    if !library.exists() {
        fs::create_dir_all(&prefix)?;
        succeed(Command::new("wineboot").arg("--init").env("WINEPREFIX", &prefix).env("WINEDEBUG", "-all"))?;
        let source = folder.join("random.c");
        fs::write(&source, RANDOM)?;
        let mut compiler = Command::new("x86_64-w64-mingw32-gcc");
        succeed(compiler.arg("-shared").arg("-o").arg(&library).arg(&source).arg("-ladvapi32"))?;
    }
    Ok([
        ("CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER", "wine".into()),
        ("WINEPREFIX", prefix),
        ("WINEDEBUG", "-all".into()),
    ])
}

pub(super) fn succeed(command: &mut Command) -> Result<()> {
    let output = command.output().with_context(|| format!("cannot start {command:?}"))?;
    ensure!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}
