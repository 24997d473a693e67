//! Kill points: steps at which a test can end the hub as `kill -9` would. They exist in debug builds only, and only in a hub
//! whose environment names a file; a release build has none.

/// Ends the process if `PLEXUS_KILL_POINT_FILE` names a file that contains `operation: step`. The file is removed first, so
/// that the next hub continues past this point.
#[cfg(not(feature = "explore"))]
pub fn kill_point(operation: &str, step: &str) {
    #[cfg(debug_assertions)]
    if let Some(file) = file()
        && std::fs::read_to_string(file)
            .is_ok_and(|wanted| wanted.split_once(": ") == Some((operation, step)))
        && std::fs::remove_file(file).is_ok()
    {
        let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    }
    #[cfg(not(debug_assertions))]
    let _ = (operation, step);
}

#[cfg(all(debug_assertions, not(feature = "explore")))]
fn file() -> Option<&'static std::path::Path> {
    static FILE: std::sync::OnceLock<Option<std::path::PathBuf>> = std::sync::OnceLock::new();
    FILE.get_or_init(|| std::env::var_os("PLEXUS_KILL_POINT_FILE").map(Into::into)).as_deref()
}

/// The scheduler may end the hub here.
#[cfg(feature = "explore")]
pub fn kill_point(_operation: &str, _step: &str) {
    shuttle::thread::yield_now();
}
