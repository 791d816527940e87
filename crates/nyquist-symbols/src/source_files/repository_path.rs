//! The Firefox Profiler's special paths of source files in any repository.

/// The path in the repository, for a special path of any repository. `None` for all other paths.
pub(super) fn path_in_repository(file: &str) -> Option<&str> {
    let path = if let Some(rest) = file.strip_prefix("hg:").or_else(|| file.strip_prefix("git:")) {
        rest.split_once(':')?.1.split_once(':')?.0
    } else {
        let (digest, path) = file.strip_prefix("s3:")?.split_once(':')?.1.split_once('/')?;
        let is_digest = digest.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
        path.strip_suffix(':').filter(|path| is_digest && !path.contains(':'))?
    };
    (!path.is_empty()).then_some(path)
}
