//! The programs that the tests need, and how they are installed on Debian.

use std::path::Path;
use std::process::Command;
use std::sync::Mutex;

use anyhow::{Context as _, Result, bail};

use crate::sys;

/// A program or a file that the tests need.
struct Need {
    /// The name of a program, which is looked up in PATH, or the absolute path of a file.
    what: &'static str,
    /// The Debian package that contains it.
    package: &'static str,
    /// The purpose of the package.
    purpose: &'static str,
}

const fn need(what: &'static str, package: &'static str, purpose: &'static str) -> Need {
    Need { what, package, purpose }
}

const NEEDS: &[Need] = &[
    need("gcc", "gcc", "builds the C workloads"),
    need("g++", "g++", "builds the C++ workloads"),
    need("/usr/include/stdio.h", "libc6-dev", "builds the C workloads"),
    need("/usr/lib/debug/.build-id", "libc6-dbg", "names the C library's own functions"),
    need("objcopy", "binutils", "strips workloads and cuts off their debug info"),
    need("gdb", "gdb", "the oracle of stacks"),
    need("valgrind", "valgrind", "counts instructions, and is the oracle of callgrind's format"),
    need("node", "nodejs", "runs the front end's own code, the oracle of profiles"),
    need("npm", "npm", "gets the front end's own code"),
    need("xz", "xz-utils", "compresses what is read again"),
    need("bzip2", "bzip2", "compresses what is read again"),
    need("zstd", "zstd", "compresses what is read again"),
    need("setpriv", "util-linux", "drops capabilities"),
    need("taskset", "util-linux", "restricts the CPUs"),
    need("prlimit", "util-linux", "restricts locked memory"),
    need("mkfifo", "coreutils", "makes named pipes"),
];

/// The packages for some of the oracles. An oracle is skipped if its package is missing.
const ORACLES: &[Need] = &[
    need("clang", "clang", "builds programs for other systems, and with other debug info than gcc's"),
    need("dwz", "dwz", "shares debug info between programs"),
    need("musl-gcc", "musl-tools", "builds programs with a C library that has no unwind information"),
    need("lld-link", "lld", "links programs of other systems"),
    need("llvm-symbolizer", "llvm", "the oracle of functions and lines"),
];

/// The packages that build nyquist for 64-bit ARM, and run it in a virtual machine.
const ARM: &[Need] = &[
    need("/usr/bin/cargo", "cargo-web", "builds nyquist for 64-bit ARM"),
    need("/usr/bin/rustc", "rustc-web", "the same, with the standard library's source that belongs to it"),
    need("/usr/lib/rustlib/src/rust/library/std/Cargo.toml", "rust-web-src", "is that source"),
    need("aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu", "links it, and builds workloads"),
    need("/usr/aarch64-linux-gnu/lib/libc.a", "libc6-dev-arm64-cross", "is its C library"),
    need("qemu-system-aarch64", "qemu-system-arm", "is the machine"),
    need("dpkg-deb", "dpkg", "unpacks the machine's kernel"),
    need("apt-get", "apt", "gets the machine's kernel"),
];

/// The packages that run programs of Windows.
const WINE: &[Need] =
    &[need("wine", "wine", "runs programs of Windows"), need("/usr/lib/wine/wine64", "wine64", "the same")];

/// The package that finds more in code than the compiler.
const LINTS: &[Need] = &[
    need("/usr/bin/clippy-driver", "rust-web-clippy", "lints for other systems"),
    need("llvm-lib", "llvm", "makes libraries in Microsoft's form"),
];

/// The packages that compile for other systems.
const COMPILER: &[Need] = &[
    need("/usr/bin/cargo", "cargo-web", "compiles for other systems"),
    need("/usr/bin/rustc", "rustc-web", "the same, with the standard library's source that belongs to it"),
    need("/usr/lib/rustlib/src/rust/library/std/Cargo.toml", "rust-web-src", "is that source"),
];

/// The packages that install zig, which links for Linux and macOS.
const ZIG: &[Need] = &[
    need("/usr/bin/python3", "python3", "installs zig"),
    need("/var/lib/dpkg/info/python3-venv.list", "python3-venv", "installs it into a folder of its own"),
];

/// The package that links programs of Windows.
const MINGW: &[Need] =
    &[need("x86_64-w64-mingw32-gcc", "gcc-mingw-w64-x86-64-win32", "links programs of Windows")];

/// The package that runs programs of other processors.
const EMULATOR: &[Need] =
    &[need("qemu-aarch64-static", "qemu-user-static", "runs programs of other processors")];

/// The package that makes Debian packages.
const DEBIAN: &[Need] = &[need("dpkg-deb", "dpkg", "makes Debian packages")];

/// The browser that the viewer is tested in.
const BROWSER: &[Need] = &[need("chromium", "chromium", "shows the viewer")];

/// Installs missing packages of the oracles, as root on Debian. Tests that still lack a package are skipped,
/// with the reason.
pub(crate) fn install_oracles() {
    install_if_root(ORACLES);
}

/// Installs a browser if there is none, as root on Debian. Tests that run in parallel call this, and apt-get
/// allows one call at a time.
pub(crate) fn install_browser() {
    static INSTALLING: Mutex<()> = Mutex::new(());
    let _alone = INSTALLING.lock();
    install_if_root(BROWSER);
}

/// Installs what builds nyquist for 64-bit ARM and runs it, as root on Debian. Returns the packages that are
/// still missing.
pub(crate) fn install_arm() -> Vec<&'static str> {
    install_if_root(ARM);
    packages_of(&missing(ARM))
}

/// Installs what builds for Windows and runs that, as root on Debian. Returns the packages that are still missing.
pub(crate) fn install_windows() -> Vec<&'static str> {
    install_all(&[COMPILER, MINGW, WINE])
}

/// Installs what builds for macOS, as root on Debian. Returns the packages that are still missing.
pub(crate) fn install_macos() -> Vec<&'static str> {
    install_all(&[COMPILER, ZIG])
}

/// Installs what lints for other systems, as root on Debian. Returns the packages that are still missing.
pub(crate) fn install_lints() -> Vec<&'static str> {
    install_all(&[COMPILER, LINTS, MINGW, ZIG])
}

/// Installs what runs programs of Windows, as root on Debian. Returns the packages that are still missing.
pub(crate) fn install_wine() -> Vec<&'static str> {
    install_all(&[MINGW, WINE])
}

/// Installs what builds releases for Windows, or for Linux and macOS, as root on Debian. Returns the packages that
/// are still missing.
pub(crate) fn install_release(for_windows: bool) -> Vec<&'static str> {
    install_all(&[COMPILER, if for_windows { MINGW } else { ZIG }])
}

/// Installs what runs programs of other processors, as root on Debian. Returns the packages that are still
/// missing.
pub(crate) fn install_emulator() -> Vec<&'static str> {
    install_if_root(EMULATOR);
    packages_of(&missing(EMULATOR))
}

/// Whether Debian packages can be made here. They are made on Debian and on systems like it.
pub(crate) fn can_make_debian_packages() -> bool {
    missing(DEBIAN).is_empty()
}

/// Installs these lists, as root on Debian. Returns the packages that are still missing.
fn install_all(lists: &[&'static [Need]]) -> Vec<&'static str> {
    for needs in lists {
        install_if_root(needs);
    }
    lists.iter().flat_map(|needs| packages_of(&missing(needs))).collect()
}

fn install_if_root(needs: &'static [Need]) {
    let packages = packages_of(&missing(needs));
    if !packages.is_empty()
        && sys::is_root()
        && is_there("apt-get")
        && let Err(error) = install(&packages)
    {
        println!("{error:#}");
    }
}

/// Installs missing packages, as root on Debian. Otherwise, prints which packages are missing and how to
/// install them, and fails.
pub(crate) fn ensure() -> Result<()> {
    let missing = missing(NEEDS);
    if missing.is_empty() {
        return Ok(());
    }
    let packages = packages_of(&missing);
    if sys::is_root() && is_there("apt-get") {
        return install(&packages);
    }
    for need in &missing {
        eprintln!("missing: {} ({}), in the Debian package {}", need.what, need.purpose, need.package);
    }
    bail!("programs are missing; get them with `sudo apt-get install {}`", packages.join(" "))
}

fn missing(needs: &'static [Need]) -> Vec<&'static Need> {
    needs.iter().filter(|need| !is_there(need.what)).collect()
}

fn packages_of(needs: &[&Need]) -> Vec<&'static str> {
    let mut packages: Vec<&str> = needs.iter().map(|need| need.package).collect();
    packages.sort_unstable();
    packages.dedup();
    packages
}

fn is_there(what: &str) -> bool {
    if what.starts_with('/') {
        return Path::new(what).exists();
    }
    std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|dir| dir.join(what).exists()))
}

fn install(packages: &[&str]) -> Result<()> {
    println!("installing {}", packages.join(" "));
    apt_get(&["update", "-qq"])?;
    apt_get(&[&["install", "-qq", "-y", "--no-install-recommends"], packages].concat())
}

fn apt_get(arguments: &[&str]) -> Result<()> {
    let status = Command::new("apt-get")
        .args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .status()
        .context("cannot start apt-get")?;
    if !status.success() {
        bail!("apt-get {} failed ({status})", arguments.join(" "));
    }
    Ok(())
}
