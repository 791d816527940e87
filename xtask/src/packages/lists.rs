//! The Debian packages that tests, benchmarks and releases use.

/// A program or a file that the tests need.
pub(super) struct Need {
    /// The name of a program, which is looked up in PATH, or the absolute path of a file.
    pub(super) what: &'static str,
    /// The Debian package that contains it.
    pub(super) package: &'static str,
    /// The purpose of the package.
    pub(super) purpose: &'static str,
    /// The steps and topics of the tests that use it. If there are none, every run of tests needs it.
    pub(super) users: &'static [&'static str],
}

impl Need {
    const fn of(self, users: &'static [&'static str]) -> Self {
        Self { users, ..self }
    }
}

const fn need(what: &'static str, package: &'static str, purpose: &'static str) -> Need {
    Need { what, package, purpose, users: &[] }
}

const FRONT_END: &[&str] = &[
    "allocation_exports",
    "front_end",
    "jit",
    "markers",
    "options",
    "other_profilers",
    "viewer",
    "wait_functions",
    "workflows",
];

const NODE: &[&str] = &[
    "allocating_programs",
    "allocation_exports",
    "front_end",
    "jit",
    "markers",
    "options",
    "other_profilers",
    "viewer",
    "wait_functions",
    "workflows",
];

/// What the steps and live tests use.
pub(super) const TESTS: &[Need] = &[
    need("gcc", "gcc", "builds the C workloads"),
    need("g++", "g++", "builds the C++ workloads"),
    need("/usr/include/stdio.h", "libc6-dev", "builds the C workloads"),
    need("objcopy", "binutils", "strips workloads and cuts off their debug info"),
    need("/usr/lib/debug/.build-id", "libc6-dbg", "names the C library's own functions"),
    need("gdb", "gdb", "the oracle of stacks").of(&["attach", "oracle"]),
    need("valgrind", "valgrind", "counts instructions, and is the oracle of callgrind's format").of(&[
        "allocation_exports",
        "allocation_views",
        "formats",
        "instructions",
        "other_profilers",
    ]),
    need("heaptrack", "heaptrack", "records allocations, whose file is read")
        .of(&["allocation_exports", "allocation_views"]),
    need("node", "nodejs", "runs the front end's own code, the oracle of profiles").of(NODE),
    need("npm", "npm", "gets the front end's own code").of(FRONT_END),
    need("xz", "xz-utils", "compresses what is read again").of(&["formats", "side_files"]),
    need("bzip2", "bzip2", "compresses what is read again").of(&["formats"]),
    need("zstd", "zstd", "compresses what is read again").of(&["formats"]),
    need("setpriv", "util-linux", "drops capabilities").of(&["hostile_modules", "permissions", "privileges"]),
    need("taskset", "util-linux", "restricts the CPUs").of(&[
        "chosen_cpus",
        "losses",
        "ptrace",
        "recording",
        "whole_machine",
    ]),
    need("prlimit", "util-linux", "restricts locked memory").of(&[
        "attach",
        "hostile_mappings",
        "hostile_modules",
        "output_forms",
        "permissions",
        "whole_machine",
    ]),
    need("mkfifo", "coreutils", "makes named pipes").of(&[
        "output_files",
        "output_safety",
        "side_files",
        "suspended",
        "swapped_files",
    ]),
    need("openssl", "openssl", "makes certificates").of(&["agent_failures"]),
    need("clang", "clang", "builds programs for other systems, and with other debug info than gcc's")
        .of(&["macos", "oracle", "windows"]),
    need("go", "golang-go", "builds programs of its runtime, and is the oracle of pprof's format").of(&[
        "agent",
        "agent_allocations",
        "allocation_exports",
        "formats",
        "go",
        "oracle",
        "other_profilers",
        "unwind_info",
        "wait_functions",
    ]),
    need("/usr/lib/x86_64-linux-gnu/libjemalloc.so.2", "libjemalloc2", "is another allocator")
        .of(&["allocation_operators", "allocations"]),
    need("/usr/lib/x86_64-linux-gnu/libtcmalloc.so.4", "libgoogle-perftools4", "is another allocator")
        .of(&["allocation_operators"]),
    need("/usr/lib/x86_64-linux-gnu/libmimalloc.so.2.0", "libmimalloc2.0", "is another allocator")
        .of(&["allocation_operators"]),
    need("dwz", "dwz", "shares debug info between programs").of(&["oracle"]),
    need("musl-gcc", "musl-tools", "builds programs with a C library that has no unwind information")
        .of(&["allocations", "stacks"]),
    need("lld-link", "lld", "links programs of other systems").of(&["macos", "oracle", "windows"]),
    need("llvm-symbolizer", "llvm", "the oracle of functions and lines").of(&["macos", "oracle", "windows"]),
];

/// The packages that build nyquist for 64-bit ARM, and run it in a virtual machine.
pub(super) const ARM: &[Need] = &[
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
pub(super) const WINE: &[Need] =
    &[need("wine", "wine", "runs programs of Windows"), need("/usr/lib/wine/wine64", "wine64", "the same")];

/// The package that finds more in code than the compiler.
pub(super) const LINTS: &[Need] = &[
    need("/usr/bin/clippy-driver", "rust-web-clippy", "lints for other systems"),
    need("llvm-lib", "llvm", "makes libraries in Microsoft's form"),
];

/// The packages that compile for other systems.
pub(super) const COMPILER: &[Need] = &[
    need("/usr/bin/cargo", "cargo-web", "compiles for other systems"),
    need("/usr/bin/rustc", "rustc-web", "the same, with the standard library's source that belongs to it"),
    need("/usr/lib/rustlib/src/rust/library/std/Cargo.toml", "rust-web-src", "is that source"),
];

/// The packages that install zig, which links for Linux and macOS.
pub(super) const ZIG: &[Need] = &[
    need("/usr/bin/python3", "python3", "installs zig"),
    need("/var/lib/dpkg/info/python3-venv.list", "python3-venv", "installs it into a folder of its own"),
];

/// The package that links programs of Windows.
pub(super) const MINGW: &[Need] =
    &[need("x86_64-w64-mingw32-gcc", "gcc-mingw-w64-x86-64-win32", "links programs of Windows")];

/// The package that runs programs of other processors.
pub(super) const EMULATOR: &[Need] =
    &[need("qemu-aarch64-static", "qemu-user-static", "runs programs of other processors")];

/// The package that makes Debian packages.
pub(super) const DEBIAN: &[Need] = &[need("dpkg-deb", "dpkg", "makes Debian packages")];

/// The browser that the viewer is tested in.
pub(super) const BROWSER: &[Need] = &[need("chromium", "chromium", "shows the viewer")];
