//! The programs that are compared: each source by each compiler in each way of writing debug info.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A program to build.
#[derive(Clone, Debug)]
pub struct Fixture {
    /// Compiler, options: also the name of its folder.
    pub name: String,
    /// The commands that build it in an empty folder, `$SRC` standing for the folder of the sources; the last
    /// one leaves `program`.
    pub commands: Vec<String>,
}

/// All programs whose compilers are there, and the names of the compilers that are not.
pub fn all() -> (Vec<Fixture>, Vec<&'static str>) {
    let mut fixtures = Vec::new();
    let mut missing = Vec::new();
    let mut add = |tool: &'static str, more: Vec<Fixture>| {
        if has(tool) { fixtures.extend(more) } else { missing.push(tool) }
    };
    add("g++", gcc());
    add("clang++", clang());
    add("rustc", rust());
    add("dwz", dwz());
    add("dwp", dwp());
    (fixtures, missing)
}

/// Whether a program is installed.
pub fn has(tool: &str) -> bool {
    Command::new(tool).arg("--version").output().is_ok_and(|output| output.status.success())
}

fn cc(compiler: &str, plus: &str, name: &str, options: &str, after: &[&str]) -> Fixture {
    let name = format!("{compiler}-{name}");
    let mut commands = vec![
        format!("{compiler} {options} -c $SRC/plain.c -o plain.o"),
        format!("{plus} {options} -c $SRC/inlines.cc -o inlines.o"),
        format!("{plus} {options} inlines.o plain.o -o program"),
    ];
    commands.extend(after.iter().map(ToString::to_string));
    Fixture { name, commands }
}

fn gcc() -> Vec<Fixture> {
    let cc = |name: &str, options: &str, after: &[&str]| cc("gcc", "g++", name, options, after);
    let mut all = Vec::new();
    for level in 0..=3 {
        for version in 2..=5 {
            all.push(cc(&format!("O{level}-dwarf{version}"), &format!("-O{level} -gdwarf-{version}"), &[]));
        }
    }
    all.push(cc("lto", "-O2 -g -flto", &[]));
    all.push(cc("types-dwarf4", "-O2 -gdwarf-4 -fdebug-types-section", &[]));
    all.push(cc("types-dwarf5", "-O2 -gdwarf-5 -fdebug-types-section", &[]));
    all.push(cc("zlib", "-O2 -g -gz=zlib", &[]));
    all.push(cc("zstd", "-O2 -g", &["objcopy --compress-debug-sections=zstd program"]));
    all.push(cc("zdebug", "-O2 -gdwarf-4", &["objcopy --compress-debug-sections=zlib-gnu program"]));
    all.push(cc("static-pie", "-O2 -g -static-pie -fPIE", &[]));
    all.push(cc("fixed", "-O2 -g -no-pie", &[]));
    all.push(cc("sections", "-O2 -g -ffunction-sections -Wl,--gc-sections", &[]));
    all.push(cc("split-dwarf4", "-O2 -gdwarf-4 -gsplit-dwarf", &[]));
    all.push(cc("split-dwarf5", "-O2 -gdwarf-5 -gsplit-dwarf", &[]));
    all.push(cc("no-aranges", "-O2 -g", &["objcopy --remove-section=.debug_aranges program"]));
    let link = "objcopy --only-keep-debug program program.debug && objcopy --strip-debug \
                --add-gnu-debuglink=program.debug program";
    all.push(cc("debug-link", "-O2 -g", &[link]));
    all
}

fn clang() -> Vec<Fixture> {
    let cc = |name: &str, options: &str| cc("clang", "clang++", name, options, &[]);
    let mut all = Vec::new();
    for level in 0..=3 {
        for version in 2..=5 {
            all.push(cc(&format!("O{level}-dwarf{version}"), &format!("-O{level} -gdwarf-{version}")));
        }
    }
    all.push(cc("aranges", "-O2 -g -gdwarf-aranges"));
    all.push(cc("lines", "-O2 -gline-tables-only"));
    all.push(cc("types", "-O2 -gdwarf-5 -fdebug-types-section"));
    all.push(cc("types-dwarf4", "-O2 -gdwarf-4 -fdebug-types-section"));
    all.push(cc("split-dwarf4", "-O2 -gdwarf-4 -gsplit-dwarf"));
    all.push(cc("split-dwarf5", "-O2 -gdwarf-5 -gsplit-dwarf"));
    all.push(cc("sections", "-O2 -g -ffunction-sections -Wl,--gc-sections"));
    all
}

fn rust() -> Vec<Fixture> {
    let rustc = |name: &str, options: &str| Fixture {
        name: format!("rustc-{name}"),
        commands: vec![format!("rustc --edition 2021 {options} $SRC/inlines.rs -o program")],
    };
    let mut all = Vec::new();
    for level in 0..=3 {
        all.push(rustc(&format!("O{level}"), &format!("-g -Copt-level={level}")));
    }
    for version in [2, 3, 4, 5] {
        all.push(rustc(&format!("dwarf{version}"), &format!("-g -O -Cdwarf-version={version}")));
    }
    all.push(rustc("lto-thin", "-g -O -Clto=thin"));
    all.push(rustc("lto-fat", "-g -O -Clto=fat"));
    all.push(rustc("lines", "-O -Cdebuginfo=line-tables-only"));
    all.push(rustc("limited", "-O -Cdebuginfo=1"));
    all.push(rustc("v0", "-g -O -Csymbol-mangling-version=v0"));
    all.push(rustc("split-packed", "-g -O -Csplit-debuginfo=packed"));
    all.push(rustc("split-unpacked", "-g -O -Csplit-debuginfo=unpacked -Csave-temps"));
    all
}

fn dwz() -> Vec<Fixture> {
    let two = "cp program second && dwz -m shared.dwz -M shared.dwz program second";
    vec![
        cc("gcc", "g++", "dwz", "-O2 -gdwarf-4", &["dwz program"]),
        cc("gcc", "g++", "dwz-shared-dwarf4", "-O2 -gdwarf-4", &[two]),
        cc("gcc", "g++", "dwz-shared-dwarf5", "-O2 -gdwarf-5", &[two]),
    ]
}

fn dwp() -> Vec<Fixture> {
    let pack = "dwp -e program -o program.dwp && rm -f *.dwo";
    vec![cc("gcc", "g++", "package-dwarf4", "-O2 -gdwarf-4 -gsplit-dwarf", &[pack])]
}

impl Fixture {
    /// Builds the program below `folder`, unless it is there; its path.
    pub fn build(&self, sources: &Path, folder: &Path) -> Result<PathBuf, String> {
        let folder = folder.join(&self.name);
        let program = folder.join("program");
        let done = folder.join("done");
        if done.exists() {
            return Ok(program);
        }
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
        for command in &self.commands {
            let mut shell = Command::new("sh");
            shell.args(["-ec", command]).env("SRC", sources).current_dir(&folder);
            let output = shell.output().map_err(|error| error.to_string())?;
            if !output.status.success() {
                return Err(format!("{command}: {}", String::from_utf8_lossy(&output.stderr)));
            }
        }
        std::fs::write(done, "").map_err(|error| error.to_string())?;
        Ok(program)
    }
}
