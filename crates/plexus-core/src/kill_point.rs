//! Places between two steps at which a test can have the hub end as `kill -9` would. They are there in debug builds
//! only, and only for a hub whose environment names a file; a release build has none of it.

/// Ends the process if `PLEXUS_KILL_POINT_FILE` names a file that holds `what: step`. The file goes first, so that the
/// next hub lives.
pub(crate) fn kill_point(what: &str, step: &str) {
    #[cfg(debug_assertions)]
    if let Some(file) = file()
        && std::fs::read_to_string(file).is_ok_and(|wanted| wanted.split_once(": ") == Some((what, step)))
        && std::fs::remove_file(file).is_ok()
    {
        let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    }
    #[cfg(not(debug_assertions))]
    let _ = (what, step);
}

#[cfg(debug_assertions)]
fn file() -> Option<&'static std::path::Path> {
    static FILE: std::sync::OnceLock<Option<std::path::PathBuf>> = std::sync::OnceLock::new();
    FILE.get_or_init(|| std::env::var_os("PLEXUS_KILL_POINT_FILE").map(Into::into)).as_deref()
}
