//! Selects the environment variables that the hub started by a verb, and the agent created by `plexus run`, inherit from the
//! shell. It is a list of names, because shells hold secrets that are not meant for agents.

/// Names of inherited variables.
const NAMES: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "TERM",
    "COLORTERM",
    "NO_COLOR",
    "TZ",
    "TMPDIR",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "AWS_REGION",
    "AWS_PROFILE",
    "CLOUD_ML_REGION",
];

/// Prefixes of inherited variables.
const PREFIXES: &[&str] =
    &["LC_", "XDG_", "ANTHROPIC_", "CLAUDE_CODE_USE_", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CONFIG_DIR"];

/// Whether a variable is inherited by default.
fn is_inherited(name: &str) -> bool {
    NAMES.contains(&name) || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// The inherited variables of this environment and the ones in `named`. The error is a named variable that is not set or not
/// UTF-8.
pub(crate) fn chosen(
    environment: impl IntoIterator<Item = (std::ffi::OsString, std::ffi::OsString)>,
    named: &[String],
) -> Result<Vec<(String, String)>, String> {
    let texts: Vec<(String, String)> = environment
        .into_iter()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    if let Some(missing) = named.iter().find(|name| !texts.iter().any(|(set, _)| set == *name)) {
        return Err(missing.clone());
    }
    Ok(texts.into_iter().filter(|(name, _)| is_inherited(name) || named.contains(name)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_inherited_only_if_it_is_named() {
        let shell = || {
            [
                ("PATH", "/bin"),
                ("LC_ALL", "C"),
                ("ANTHROPIC_API_KEY", "k"),
                ("GITHUB_TOKEN", "g"),
                ("PLEXUS_TOKEN", "p"),
            ]
            .map(|(name, value)| (name.into(), value.into()))
        };
        let names = |named: &[String]| -> Vec<String> {
            chosen(shell(), named).unwrap().into_iter().map(|(name, _)| name).collect()
        };
        assert_eq!(names(&[]), ["PATH", "LC_ALL", "ANTHROPIC_API_KEY"]);
        assert_eq!(names(&["GITHUB_TOKEN".to_owned()]).last().map(String::as_str), Some("GITHUB_TOKEN"));
        assert_eq!(chosen(shell(), &["NOT_SET".to_owned()]), Err("NOT_SET".to_owned()));
    }
}
