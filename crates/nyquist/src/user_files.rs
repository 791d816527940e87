//! `nyquist setup --user`: completions and man pages below the user's home folder, and what the shell needs to find
//! them.

use crate::completions::{self, CARGO_BASH, CARGO_FISH, Program};
use crate::failure::Failure;
use crate::folders::UserFolders;
use crate::identity::as_invoking_user;
use crate::shell::quoted;
use crate::system::folders::HOME;
use crate::{man, output, page};
use clap_complete::Shell;
use nyquist_system::open_regular;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// Writes the files, unless it is only asked what they would be, and prints what to do next.
pub(crate) fn install(dry_run: bool) -> Result<(), Failure> {
    let places = Places::of_user()?;
    let done = as_invoking_user(|| {
        let cargo_bash = places.takes_cargo_bash();
        if !dry_run {
            places.write(cargo_bash)?;
        }
        page::print(places.report(dry_run, cargo_bash))
    });
    done.map_err(|error| Failure::because("cannot write files for you", &std::io::Error::from(error)))?
}

/// Where the files of a user are, and what decides whether the shell finds them.
struct Places {
    data: PathBuf,
    config: PathBuf,
    /// The folder of this program.
    programs: Option<PathBuf>,
    path: Vec<PathBuf>,
    man_path: Option<Vec<PathBuf>>,
    shell: String,
}

impl Places {
    fn of_user() -> Result<Self, Failure> {
        let user = UserFolders::of_user();
        let home = user.home().ok_or_else(|| {
            Failure::new(format!("there is no home folder to install to: {HOME} is not set"))
                .hint("`nyquist completions` and `nyquist man` write to any place")
        })?;
        let folder = |variable: &str, below_home: &str| {
            let own = user.var(variable).map(PathBuf::from).filter(|folder| folder.is_absolute());
            own.unwrap_or_else(|| home.join(below_home))
        };
        let list = |variable: &str| user.var(variable).map(|value| std::env::split_paths(&value).collect());
        let shell = user.var("SHELL").map(PathBuf::from);
        let shell = shell.and_then(|shell| Some(shell.file_name()?.to_string_lossy().into_owned()));
        Ok(Self {
            data: folder("XDG_DATA_HOME", ".local/share"),
            config: folder("XDG_CONFIG_HOME", ".config"),
            programs: std::env::current_exe().ok().and_then(|program| Some(program.parent()?.to_owned())),
            path: list("PATH").unwrap_or_default(),
            man_path: list("MANPATH"),
            shell: shell.unwrap_or_default(),
        })
    }

    fn bash(&self) -> PathBuf {
        self.data.join("bash-completion/completions")
    }

    fn zsh(&self) -> PathBuf {
        self.data.join("zsh/site-functions")
    }

    fn man(&self) -> PathBuf {
        self.data.join("man")
    }

    /// Whether the file that completes cargo in bash is missing, or this program's own.
    fn takes_cargo_bash(&self) -> bool {
        let first_line = |text: &str| text.lines().next().map(str::to_owned);
        let Ok(file) = open_regular(&self.bash().join("cargo")) else { return true };
        let mut text = String::new();
        let read = file.take(CARGO_BASH.len() as u64).read_to_string(&mut text);
        read.is_ok() && first_line(&text) == first_line(CARGO_BASH)
    }

    /// The completions, and where each is written.
    fn completions(&self, cargo_bash: bool) -> Vec<(PathBuf, String)> {
        let of = |program: Program| {
            let (name, script) = (program.name(), |shell| completions::script(shell, program));
            [
                (self.bash().join(name), script(Shell::Bash)),
                (self.zsh().join(format!("_{name}")), script(Shell::Zsh)),
                (self.config.join(format!("fish/completions/{name}.fish")), script(Shell::Fish)),
            ]
        };
        let fish = (self.config.join("fish/conf.d/cargo-nyquist.fish"), CARGO_FISH.to_owned());
        let bash = cargo_bash.then(|| (self.bash().join("cargo"), CARGO_BASH.to_owned()));
        let programs = [Program::Nyquist, Program::CargoNyquist].into_iter().flat_map(of);
        programs.chain([fish]).chain(bash).collect()
    }

    fn write(&self, cargo_bash: bool) -> Result<(), Failure> {
        for (path, script) in self.completions(cargo_bash) {
            let folder = path.parent().unwrap_or(&path);
            output::create_folders(folder).map_err(|denied| denied.failure_at(folder))?;
            output::replace(&path, script.as_bytes()).map_err(|denied| denied.failure_at(&path))?;
        }
        man::write_pages(&self.man().join("man1"))
    }

    fn report(&self, dry_run: bool, cargo_bash: bool) -> String {
        let heading = if dry_run { "These files would be written:\n" } else { "Written:\n" };
        let files =
            self.completions(cargo_bash).into_iter().map(|(path, _)| format!("  {}\n", path.display()));
        let pages = format!("  {}/man1/: the man pages\n", self.man().display());
        let other = if cargo_bash { String::new() } else { self.advice_on_cargo() };
        let lines = self.lines();
        let lines = match lines.as_slice() {
            [] => String::new(),
            lines => format!("\nAdd to {}:\n  {}\n", self.start_file(), lines.join("\n  ")),
        };
        format!("{heading}{}{pages}{other}{lines}", files.collect::<String>())
    }

    /// What to add to the file of somebody else that completes cargo in bash.
    fn advice_on_cargo(&self) -> String {
        format!(
            "\n{} is not from nyquist and stays as it is. For `cargo nyquist`, add to its end:\n  . {} && _complete_cargo_nyquist\n",
            self.bash().join("cargo").display(),
            quoted(self.bash().join("cargo-nyquist").as_os_str())
        )
    }

    /// The file that the user's shell reads when it starts.
    fn start_file(&self) -> &'static str {
        match &*self.shell {
            "zsh" => "~/.zshrc, before compinit",
            "fish" => "~/.config/fish/config.fish",
            _ => "~/.bashrc",
        }
    }

    /// What the shell has to be told so that the program, its pages and its completions are found.
    fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let is_fish = self.shell == "fish";
        if let Some(programs) = self.programs.as_ref().filter(|folder| !self.path.contains(folder)) {
            let folder = quoted(programs.as_os_str());
            lines.push(if is_fish {
                format!("fish_add_path {folder}")
            } else {
                format!("export PATH={folder}:\"$PATH\"")
            });
        }
        if !self.finds_man() {
            let (folder, others) = (quoted(self.man().as_os_str()), self.man_path.is_some());
            lines.push(if is_fish {
                format!("set -gx MANPATH {folder} {}", if others { "$MANPATH" } else { "''" })
            } else {
                format!("export MANPATH={folder}:{}", if others { "\"$MANPATH\"" } else { "" })
            });
        }
        if self.shell == "zsh" {
            lines.push(format!("fpath=({} $fpath)", quoted(self.zsh().as_os_str())));
        }
        lines
    }

    /// Whether `man` looks into the folder of the pages. Without MANPATH, it looks into the `share/man` beside each
    /// `bin` of PATH.
    fn finds_man(&self) -> bool {
        let man = self.man();
        let is_beside = |folder: &Path| folder.parent().is_some_and(|above| above.join("share/man") == man);
        match &self.man_path {
            Some(folders) => folders.contains(&man),
            None => self.path.iter().any(|folder| is_beside(folder)),
        }
    }
}

// Paths are those of the shells of Unix.
#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn places(shell: &str, path: &[&str], man_path: Option<&[&str]>) -> Places {
        let paths = |list: &[&str]| list.iter().map(PathBuf::from).collect::<Vec<_>>();
        Places {
            data: "/h/.local/share".into(),
            config: "/h/.config".into(),
            programs: Some("/h/.cargo/bin".into()),
            path: paths(path),
            man_path: man_path.map(paths),
            shell: shell.to_owned(),
        }
    }

    #[test]
    fn what_the_shell_lacks_is_said() {
        let all = places("bash", &["/usr/bin"], None).lines();
        assert_eq!(all, ["export PATH=/h/.cargo/bin:\"$PATH\"", "export MANPATH=/h/.local/share/man:"]);
        // man looks beside ~/.local/bin.
        assert!(places("bash", &["/h/.local/bin", "/h/.cargo/bin"], None).lines().is_empty());
        let other = places("bash", &["/h/.local/bin", "/h/.cargo/bin"], Some(&["/usr/share/man"])).lines();
        assert_eq!(other, ["export MANPATH=/h/.local/share/man:\"$MANPATH\""]);
        let zsh = places("zsh", &["/h/.cargo/bin"], Some(&["/h/.local/share/man"])).lines();
        assert_eq!(zsh, ["fpath=(/h/.local/share/zsh/site-functions $fpath)"]);
        let fish = places("fish", &[], None).lines();
        assert_eq!(fish, ["fish_add_path /h/.cargo/bin", "set -gx MANPATH /h/.local/share/man ''"]);
    }

    #[test]
    fn a_file_that_completes_cargo_already_is_said() {
        let report = places("bash", &[], None).report(false, false);
        assert!(report.contains("/completions/cargo-nyquist && _complete_cargo_nyquist"), "{report}");
        let report = places("bash", &[], None).report(true, true);
        assert!(report.contains("would be") && !report.contains("_complete_cargo_nyquist"), "{report}");
    }
}
