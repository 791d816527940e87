//! The format of a file to write. It follows the name, so that no file has a name of another
//! format.

use crate::args::ExportFormat;
use crate::failure::Failure;
use std::path::Path;

/// Suffixes of compressed files.
const COMPRESSIONS: [&str; 7] = [".gz", ".zst", ".xz", ".bz2", ".zip", ".lz4", ".br"];

/// Suffixes of picture formats that are not supported.
const OTHER_PICTURES: [&str; 6] = ["png", "jpg", "jpeg", "gif", "webp", "pdf"];

/// A file's format by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FormatOfName {
    /// No known format.
    Nothing,
    /// An export format.
    Format(ExportFormat),
    /// A flame graph: .svg
    Picture,
    /// A format in a variant that is not supported; the name should have this suffix.
    NotSo(&'static str),
}

impl FormatOfName {
    /// Determines the format from the name's suffix.
    pub(crate) fn of(path: &Path) -> Self {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
        let plain = COMPRESSIONS.iter().find_map(|ending| Some((*ending, name.strip_suffix(ending)?)));
        match plain {
            // These two formats are compressed. Other formats have a different suffix before `.json`.
            Some((".gz", plain)) if has_ending(plain, "pb") => Self::Format(ExportFormat::Pprof),
            Some((compression, plain)) => match (ExportFormat::of_name(Path::new(plain)), compression) {
                (Some(ExportFormat::Firefox), ".gz") => Self::Format(ExportFormat::Firefox),
                (None, ".gz") if !has_ending(plain, "svg") => Self::Nothing,
                _ => Self::NotSo("leave out the last ending: the format is written as it is"),
            },
            None if has_ending(&name, "pb") => {
                Self::NotSo("pprof's files are written compressed, which .pb.gz says")
            }
            None if has_ending(&name, "svg") => Self::Picture,
            None if OTHER_PICTURES.iter().any(|ending| has_ending(&name, ending)) => {
                Self::NotSo("a flame graph is written as an SVG, which .svg says; the viewer saves PNGs, too")
            }
            None => ExportFormat::of_name(Path::new(&name)).map_or(Self::Nothing, Self::Format),
        }
    }

    /// Whether a format may have this name.
    pub(crate) fn fits(self, format: ExportFormat) -> bool {
        use ExportFormat::{Chrome, Dhat, Firefox, Html, Speedscope, Viewer};
        match self {
            Self::Nothing => true,
            // JSON of any format.
            Self::Format(Firefox) => [Firefox, Speedscope, Chrome, Dhat].contains(&format),
            // Both kinds of page are a single HTML file.
            Self::Format(Html) => [Html, Viewer].contains(&format),
            Self::Format(named) => named == format,
            Self::Picture | Self::NotSo(_) => false,
        }
    }
}

/// Whether a name has this suffix.
fn has_ending(name: &str, ending: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension == ending)
}

/// The form of a whole profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// The Firefox Profiler's format, which contains everything.
    Profile {
        /// Whether it is compressed.
        gzip: bool,
    },
    /// Another profiler's format.
    Export(ExportFormat),
    /// A flame graph.
    Picture,
}

impl Form {
    /// The format for the name of an output. A name without a known format means a profile.
    pub(crate) fn of(path: &Path) -> Result<Self, Failure> {
        match FormatOfName::of(path) {
            FormatOfName::Nothing => Ok(Self::Profile { gzip: true }),
            FormatOfName::Format(ExportFormat::Firefox) => Ok(Self::Profile { gzip: is_compressed(path) }),
            FormatOfName::Format(ExportFormat::PerfData) => Err(wrong_name(path).hint(
                "`nyquist record --perf-data FILE` also saves the kernel's records; `nyquist export` converts a profile to perf.data",
            )),
            FormatOfName::Format(format) => Ok(Self::Export(format)),
            FormatOfName::Picture => Ok(Self::Picture),
            FormatOfName::NotSo(instead) => Err(wrong_name(path).hint(instead)),
        }
    }

    /// Whether it is a complete profile, which the viewer can show.
    pub(crate) fn is_profile(self) -> bool {
        matches!(self, Self::Profile { .. })
    }
}

/// Fails if a flame graph may not have this name.
pub(crate) fn check_picture(path: &Path) -> Result<(), Failure> {
    match FormatOfName::of(path) {
        FormatOfName::Nothing | FormatOfName::Picture => Ok(()),
        FormatOfName::Format(ExportFormat::Html) => Err(wrong_name(path)
            .hint("a flame graph is an SVG; `nyquist export -o FILE.html` writes a page with one")),
        FormatOfName::Format(_) => {
            Err(wrong_name(path).hint("a flame graph is an SVG; `nyquist export` writes other formats"))
        }
        FormatOfName::NotSo(instead) => Err(wrong_name(path).hint(instead)),
    }
}

/// Whether a profile of this name is compressed.
pub(crate) fn is_compressed(path: &Path) -> bool {
    path.extension().is_none_or(|extension| !extension.eq_ignore_ascii_case("json"))
}

/// The failure to write a file that would have the name of another format.
pub(crate) fn wrong_name(path: &Path) -> Failure {
    Failure::new(format!("{} is the name of another format than what is written here", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(name: &str) -> Option<Form> {
        Form::of(Path::new(name)).ok()
    }

    #[test]
    fn the_name_of_an_output_decides_its_form() {
        let check = |name: &str, expected| assert_eq!(form(name), Some(expected), "{name}");
        check("p.json", Form::Profile { gzip: false });
        check("P.JSON", Form::Profile { gzip: false });
        for name in ["profile.json.gz", "p", "-", "/dev/stdout", "/dev/fd/63", "p.gz", "p.profile"] {
            check(name, Form::Profile { gzip: true });
        }
        check("p.svg", Form::Picture);
        check("p.html", Form::Export(ExportFormat::Html));
        check("p.pb.gz", Form::Export(ExportFormat::Pprof));
        check("p.speedscope.json", Form::Export(ExportFormat::Speedscope));
        check("p.trace.json", Form::Export(ExportFormat::Chrome));
        check("p.folded", Form::Export(ExportFormat::Folded));
        check("p.csv", Form::Export(ExportFormat::Csv));
    }

    #[test]
    fn what_is_not_written_so_is_refused() {
        for name in [
            "perf.data",
            "p.pb",
            "p.svg.gz",
            "p.html.gz",
            "p.speedscope.json.gz",
            "p.trace.json.gz",
            "p.json.zst",
            "p.zip",
            "perf.data.gz",
            "flames.png",
            "P.PDF",
        ] {
            let failure = Form::of(Path::new(name)).unwrap_err();
            assert!(failure.message.contains(name) && !failure.hints.is_empty(), "{failure:?}");
        }
    }

    #[test]
    fn a_flame_graph_has_the_name_of_a_picture() {
        let check =
            |name: &str, expected| assert_eq!(check_picture(Path::new(name)).is_ok(), expected, "{name}");
        for name in ["f.svg", "-", "flames", "/dev/stdout"] {
            check(name, true);
        }
        for name in ["f.html", "p.json.gz", "f.svg.gz", "perf.data", "f.png"] {
            check(name, false);
        }
    }

    #[test]
    fn a_requested_format_fits_the_name() {
        use ExportFormat::{Chrome, Firefox, Folded, Pprof, Speedscope};
        let check = |name: &str, format, expected| {
            assert_eq!(FormatOfName::of(Path::new(name)).fits(format), expected, "{name} {format:?}");
        };
        check("x.json", Speedscope, true);
        check("x.json", Chrome, true);
        check("x.txt", Folded, true);
        check("x.pb.gz", Pprof, true);
        check("x.pb.gz", Folded, false);
        check("x.json", Pprof, false);
        check("x.speedscope.json", Firefox, false);
        check("x.svg", Pprof, false);
        check("x.html", ExportFormat::Viewer, true);
        check("x.json", ExportFormat::Viewer, false);
    }
}
