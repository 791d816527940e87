//! `nyquist cache`: shows or removes the caches on the disk.

use crate::args::{CacheAction, CacheArgs};
use crate::failure::Failure;
use crate::finder::answer_cache;
use crate::folders::UserFolders;
use crate::identity;
use crate::number::counted;
use crate::page;
use crate::text::one_line;
use indicatif::DecimalBytes;
use nyquist_download::{Debuginfod, Usage, clear, usage};
use nyquist_symbols::{AnswerCache, CachedModule};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// The number of modules that are listed by default.
const MODULES_LISTED: usize = 10;

/// Runs the subcommand.
pub(crate) fn run(args: &CacheArgs) -> Result<(), Failure> {
    identity::give_up_privileges()?;
    let folders = UserFolders::of_user();
    let (Some(answers), Some(downloads), Some(archives)) =
        (answer_cache(&folders), folders.downloads(), folders.archives())
    else {
        return Err(Failure::new("this user has no home folder, so nothing is cached")
            .hint("set HOME or XDG_CACHE_HOME"));
    };
    let debuginfod = Debuginfod::cache_folder(|name| folders.var_for_caches(name));
    let caches = Caches { answers, downloads, archives, debuginfod };
    match args.action {
        None if args.json => page::print_json(&caches.contents()?.json(&caches)),
        None => page::print(caches.contents()?.text(&caches, args.verbosity.verbose)),
        Some(CacheAction::Clear { symbols, downloads }) => {
            let all = symbols == downloads;
            caches.clear(all || symbols, all || downloads, args.json)
        }
    }
}

/// The paths of all caches.
struct Caches {
    answers: AnswerCache,
    downloads: PathBuf,
    /// Unpacked archives, kept while they are used.
    archives: PathBuf,
    /// Shared with other programs.
    debuginfod: Option<PathBuf>,
}

/// The contents of the caches.
struct Contents {
    modules: Vec<CachedModule>,
    /// Decompressed debug info.
    inflated: Usage,
    /// Sorted symbol tables of large files.
    tables: Usage,
    downloads: Usage,
    archives: Usage,
    debuginfod: Usage,
}

impl Caches {
    fn contents(&self) -> Result<Contents, Failure> {
        let debuginfod = self.debuginfod.as_deref();
        let unreadable_answers = |error: io::Error| unreadable(self.answers.folder(), &error);
        let usage_of = |(files, bytes)| Usage { files: files as u64, bytes };
        Ok(Contents {
            modules: self.answers.modules().map_err(unreadable_answers)?,
            inflated: self.answers.inflated_files().map(usage_of).map_err(unreadable_answers)?,
            tables: self.answers.table_files().map(usage_of).map_err(unreadable_answers)?,
            downloads: usage(&self.downloads).map_err(|error| unreadable(&self.downloads, &error))?,
            archives: usage(&self.archives).map_err(|error| unreadable(&self.archives, &error))?,
            // Files of other programs there are not touched.
            debuginfod: debuginfod.and_then(|folder| usage(folder).ok()).unwrap_or_default(),
        })
    }

    fn clear(&self, symbols: bool, downloads: bool, json: bool) -> Result<(), Failure> {
        let cannot_remove = |error: io::Error| Failure::io("cannot remove all that is kept", &error);
        let answers = if symbols { self.answers.clear().map_err(cannot_remove)? } else { 0 };
        let folders = [&self.downloads, &self.archives];
        let removed = folders.iter().filter(|_| downloads).map(|folder| Ok(clear(folder)?.bytes));
        let downloaded: u64 = removed.sum::<io::Result<u64>>().map_err(cannot_remove)?;
        if json {
            return page::print_json(&json!({
                "schema": "nyquist-cache/1",
                "removed_bytes": answers + downloaded,
            }));
        }
        let mut text = format!("Removed {}.\n", DecimalBytes(answers + downloaded));
        if let Some(folder) = self.debuginfod.as_ref().filter(|folder| downloads && folder.exists()) {
            let _ = writeln!(
                text,
                "What debuginfod has downloaded is in {}: other programs use it too, so it is left alone.",
                folder.display()
            );
        }
        page::print(&text)
    }
}

fn unreadable(folder: &Path, error: &io::Error) -> Failure {
    Failure::io(format_args!("cannot read {}", folder.display()), error)
}

impl Contents {
    fn bytes(&self) -> u64 {
        let of_modules: u64 = self.modules.iter().map(|module| module.bytes).sum();
        of_modules + self.inflated.bytes + self.tables.bytes
    }

    fn address_count(&self) -> u64 {
        self.modules.iter().map(|module| module.answers as u64).sum()
    }

    fn text(&self, caches: &Caches, is_verbose: bool) -> String {
        let mut text = format!(
            "Names that were looked up: {} of at most {} in {}\n  {} of {}\n",
            DecimalBytes(self.bytes()),
            DecimalBytes(caches.answers.quota()),
            caches.answers.folder().display(),
            counted(self.address_count(), "answer"),
            counted(self.modules.len() as u64, "module"),
        );
        let listed = if is_verbose { self.modules.len() } else { MODULES_LISTED };
        for module in self.modules.iter().take(listed) {
            let path = module.path.as_ref().map_or("(damaged)".into(), |path| path.to_string_lossy());
            let size = DecimalBytes(module.bytes).to_string();
            let _ = writeln!(text, "  {size:>10}  {}", one_line(&path));
        }
        if let Some(more) = self.modules.len().checked_sub(listed).filter(|more| *more > 0) {
            let _ = writeln!(text, "  and {more} more (-v lists them)");
        }
        for (Usage { files, bytes }, what, why) in [
            (self.inflated, "debug info", "that had to be inflated"),
            (self.tables, "functions", "with large symbol tables"),
        ] {
            if files > 0 {
                let (size, files) = (DecimalBytes(bytes).to_string(), counted(files, "file"));
                let _ = writeln!(text, "  {size:>10}  {what} of {files} {why}");
            }
        }
        let _ = writeln!(text, "{}", downloaded("From symbol servers", self.downloads, &caches.downloads));
        let _ = writeln!(text, "{}", downloaded("Archives of recordings", self.archives, &caches.archives));
        if let Some(folder) = &caches.debuginfod {
            let _ =
                writeln!(text, "{}", downloaded("By debuginfod, for all programs", self.debuginfod, folder));
        }
        text
    }

    fn json(&self, caches: &Caches) -> Value {
        let module = |module: &CachedModule| {
            let used = module.used.and_then(|used| used.duration_since(UNIX_EPOCH).ok());
            json!({
                "path": module.path.as_ref().map(|path| path.to_string_lossy()),
                "bytes": module.bytes,
                "answers": module.answers,
                "used_s": used.map(|used| used.as_secs()),
            })
        };
        json!({
            "schema": "nyquist-cache/1",
            "answers": {
                "folder": caches.answers.folder().to_string_lossy(),
                "bytes": self.bytes(),
                "quota_bytes": caches.answers.quota(),
                "answers": self.address_count(),
                "inflated": { "files": self.inflated.files, "bytes": self.inflated.bytes },
                "tables": { "files": self.tables.files, "bytes": self.tables.bytes },
                "modules": self.modules.iter().map(module).collect::<Vec<_>>(),
            },
            "downloads": downloads_json(self.downloads, Some(&caches.downloads)),
            "archives": downloads_json(self.archives, Some(&caches.archives)),
            "debuginfod": downloads_json(self.debuginfod, caches.debuginfod.as_ref()),
        })
    }
}

fn downloaded(what: &str, Usage { files, bytes }: Usage, folder: &Path) -> String {
    let files = counted(files, "file");
    format!("{what}: {files}, {} in {}", DecimalBytes(bytes), folder.display())
}

fn downloads_json(usage: Usage, folder: Option<&PathBuf>) -> Value {
    let folder = folder.map(|folder| folder.to_string_lossy());
    json!({ "folder": folder, "files": usage.files, "bytes": usage.bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contents(modules: usize) -> (Contents, Caches) {
        let module = |n: usize| CachedModule {
            path: (n > 0).then(|| PathBuf::from(format!("/lib/{n}.so"))),
            bytes: 1_500_000,
            answers: 1000,
            used: None,
        };
        let contents = Contents {
            modules: (0..modules).map(module).collect(),
            inflated: Usage { files: 2, bytes: 9_500_000 },
            tables: Usage { files: 1, bytes: 3_250_000 },
            downloads: Usage { files: 1, bytes: 2_000_000_000 },
            archives: Usage::default(),
            debuginfod: Usage::default(),
        };
        let answers = AnswerCache::new("/c/nyquist/answers");
        (
            contents,
            Caches {
                answers,
                downloads: "/c/nyquist/downloads".into(),
                archives: "/c/nyquist/archives".into(),
                debuginfod: None,
            },
        )
    }

    #[test]
    fn contents_are_counted_and_a_long_list_is_cut() {
        let (contents, caches) = contents(12);
        let text = contents.text(&caches, false);
        assert!(text.contains("30.75 MB of at most 268.44 MB in /c/nyquist/answers"), "{text}");
        assert!(text.contains("12,000 answers of 12 modules"), "{text}");
        assert!(text.contains("1.50 MB  (damaged)") && text.contains("1.50 MB  /lib/9.so"), "{text}");
        assert!(text.contains("and 2 more"), "{text}");
        assert!(text.contains("9.50 MB  debug info of 2 files that had to be inflated"), "{text}");
        assert!(text.contains("3.25 MB  functions of 1 file with large symbol tables"), "{text}");
        assert!(text.contains("From symbol servers: 1 file, 2.00 GB in /c/nyquist/downloads"), "{text}");
        assert!(contents.text(&caches, true).contains("/lib/11.so"));
    }
}
