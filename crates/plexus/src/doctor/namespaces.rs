//! Explains how to make user namespaces available, which the sandbox of agents needs. Different systems switch them off in
//! different places.

use std::path::Path;

/// What agents can do without a sandbox.
pub(super) const UNPROTECTED: &str = "agents run without a sandbox: a command of an agent can read the hub's token and allow its own calls, and can \
    signal your other processes";

/// What to do about missing user namespaces on this system.
pub(super) fn advice() -> String {
    advice_for(|name| std::fs::read_to_string(Path::new("/proc/sys").join(name)).ok())
}

/// The same, for the system whose kernel settings `read` returns.
fn advice_for(read: impl Fn(&str) -> Option<String>) -> String {
    let value = |name: &str| read(name).and_then(|text| text.trim().parse::<u64>().ok());
    let cause = if value("user/max_user_namespaces") == Some(0) {
        "allow user namespaces: `sudo sysctl user.max_user_namespaces=15000`"
    } else if value("kernel/unprivileged_userns_clone") == Some(0) {
        "allow user namespaces: `sudo sysctl kernel.unprivileged_userns_clone=1`"
    } else if value("kernel/apparmor_restrict_unprivileged_userns") == Some(1) {
        "allow user namespaces with an AppArmor profile for plexus, or for all programs: `sudo sysctl \
         kernel.apparmor_restrict_unprivileged_userns=0`"
    } else {
        "in a container, allow `unshare` and `mount` (for Docker: --security-opt seccomp=unconfined), or run the hub outside the container"
    };
    format!(
        "{cause}. Until then, run only agents whose every command you review. See \"The sandbox\" in docs/configuration.md"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_advice_names_the_setting_that_denies_namespaces() {
        let with = |name: &'static str, text: &'static str| {
            advice_for(move |asked| (asked == name).then(|| text.to_owned()))
        };
        assert!(with("user/max_user_namespaces", "0\n").contains("user.max_user_namespaces=15000"));
        assert!(with("kernel/unprivileged_userns_clone", "0\n").contains("unprivileged_userns_clone=1"));
        assert!(with("kernel/apparmor_restrict_unprivileged_userns", "1\n").contains("AppArmor profile"));
        assert!(with("user/max_user_namespaces", "15000\n").contains("seccomp=unconfined"));
    }
}
