//! The reason why a place cannot be written to, with hints.

use crate::failure::{Failure, io_reason};
use crate::identity::{FileDenied, RightsError};
use std::io;
use std::path::{Path, PathBuf};

/// The reason why a file cannot be written at the requested place.
#[derive(Debug)]
#[allow(dead_code, reason = "some reasons are found on Linux alone")]
pub(crate) enum OutputError {
    /// The operating system's error.
    Io(io::Error),
    /// A link in the path, in a folder where others can create links, or one that another user created.
    Link {
        /// The path of the link.
        link: PathBuf,
        /// Its owner.
        owner: u32,
    },
    /// A FIFO, a socket or a device of another user.
    Special {
        /// Its owner.
        owner: u32,
    },
    /// A file in a sticky folder, which only its owner may replace.
    OthersFile {
        /// Its owner.
        owner: u32,
    },
    /// The folder that belongs to the file has another owner.
    OthersFolder {
        /// Its owner.
        owner: u32,
    },
    /// The folder does not exist.
    NoFolder(PathBuf),
    /// The path names a folder.
    IsFolder,
    /// The output there cannot seek, which this format needs.
    Stream,
    /// A descriptor that is not open for writing.
    NotWritable,
    /// A terminal, which can show only text.
    Terminal,
}

impl OutputError {
    /// The reason, as the second half of a sentence.
    pub(crate) fn reason(&self) -> String {
        match self {
            Self::Io(error) => io_reason(error),
            Self::Link { link, owner } => {
                format!("{} is a link of user {owner}, who may not choose what is written", link.display())
            }
            Self::Special { owner } => {
                format!("it is not a regular file, and its owner, user {owner}, may not choose who reads it")
            }
            Self::OthersFile { owner } => {
                format!("it is a file of user {owner} in a sticky folder, and only that user may replace it")
            }
            Self::OthersFolder { owner } => {
                format!("the folder with this name and .symbols appended belongs to user {owner}")
            }
            Self::NoFolder(folder) => format!("there is no folder {}", folder.display()),
            Self::IsFolder => "it is a folder".to_owned(),
            Self::Stream => "this format needs a file that can be written in any order".to_owned(),
            Self::Terminal => {
                "a profile cannot be written to a terminal; redirect it to a file or a pipe".to_owned()
            }
            Self::NotWritable => "this descriptor is not open for writing".to_owned(),
        }
    }

    /// The hint, unless the only remedy is another place.
    fn hint(&self) -> Option<String> {
        match self {
            Self::Link { .. } => Some(
                "a link is followed if you own it, or if the folder's owner does and only that user may write there; name the file itself"
                    .to_owned(),
            ),
            Self::NoFolder(folder) => Some(format!("mkdir -p {}", folder.display())),
            _ => None,
        }
    }

    /// The failure to write there; `option` is the option that sets another place.
    pub(crate) fn failure(&self, path: &Path, option: &str) -> Failure {
        let failure = self.failure_at(path);
        if failure.hints.is_empty() {
            failure.hint(format!("choose another place with {option} FILE"))
        } else {
            failure
        }
    }

    /// The failure to write there, where no option sets another place.
    pub(crate) fn failure_at(&self, path: &Path) -> Failure {
        let failure = Failure::new(format!("cannot write {}: {}", path.display(), self.reason()));
        let failure = match self {
            Self::Io(error) => failure.limited_by(error),
            _ => failure,
        };
        match self.hint().filter(|_| failure.hints.is_empty()) {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}

impl FileDenied for OutputError {
    fn takes_rights(&self) -> bool {
        match self {
            Self::Io(error) => error.takes_rights(),
            // Root may replace it, and trusts root's links.
            Self::OthersFile { .. } | Self::Link { .. } | Self::Special { .. } => true,
            _ => false,
        }
    }
}

impl From<RightsError> for OutputError {
    fn from(error: RightsError) -> Self {
        Self::Io(error.into())
    }
}

impl From<io::Error> for OutputError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}
