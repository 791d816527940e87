//! The names of processes.

/// The name of the file of a path.
pub(crate) fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Whether a process has a requested name: that of its program's file, or the one that it goes by.
pub(crate) fn has_requested_name(
    path: Option<&str>,
    name: impl FnOnce() -> Option<String>,
    is_requested: impl Fn(&str) -> bool,
) -> bool {
    path.map(file_name).is_some_and(&is_requested) || name().is_some_and(|name| is_requested(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_its_files_or_its_own_name() {
        let check = |path: Option<&str>, name: Option<&str>, expected| {
            let name = || name.map(str::to_owned);
            assert_eq!(has_requested_name(path, name, |name| name == "app"), expected, "{path:?}");
        };
        check(Some("/a b/app"), None, true);
        check(Some("app"), None, true);
        check(Some("/app/x"), Some("other"), false);
        check(Some("/bin/x"), Some("app"), true);
        check(None, Some("app"), true);
        check(None, None, false);
    }
}
