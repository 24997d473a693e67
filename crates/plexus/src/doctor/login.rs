//! Checks whether Claude Code is logged in: by a variable, a credentials file or a setting. It never contacts a server and shows no
//! secret, so it finds a missing login and not a revoked one.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{Finding, ok, problem};
use crate::terminal::now;

const WHAT: &str = "login";
/// Variables that give access to a model. Agents inherit them.
const VARIABLES: [&str; 6] = [
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CLAUDE_CODE_USE_BEDROCK",
    "CLAUDE_CODE_USE_VERTEX",
    "CLAUDE_CODE_USE_FOUNDRY",
];
/// The settings of an administrator.
const MANAGED: &str = "/etc/claude-code/managed-settings.json";

/// Looks for a login in this environment, and in the user's settings if agents get them.
pub(super) fn check(variable: impl Fn(&str) -> Option<OsString>, user_settings: Option<&Path>) -> Finding {
    let given = |name: &str| variable(name).filter(|value| !value.is_empty());
    if let Some(name) = VARIABLES.into_iter().find(|name| given(name).is_some()) {
        return ok(WHAT, format!("{name} is set"));
    }
    let config = given("CLAUDE_CONFIG_DIR").map(PathBuf::from);
    let Some(home) = config.clone().or_else(|| given("HOME").map(PathBuf::from)) else {
        return problem(WHAT, "HOME is not set", "set HOME, so that Claude Code finds its credentials");
    };
    let folder = config.unwrap_or_else(|| home.join(".claude"));
    let credentials = folder.join(".credentials.json");
    let state = home.join(".claude.json");
    // As Claude Code does, a key is preferred to a login.
    let found = setting_in(user_settings.into_iter().chain([Path::new(MANAGED)]))
        .or_else(|| key_in(&read(&state)).map(|login| (login, state)))
        .or_else(|| credentials_in(&read(&credentials)).map(|login| (login, credentials.clone())));
    match found {
        Some((Login::Usable(what), path)) => ok(WHAT, format!("{what} in {}", path.display())),
        Some((Login::Expired, path)) => {
            problem(WHAT, format!("the login in {} has expired", path.display()), how_to_log_in())
        }
        None => problem(
            WHAT,
            format!(
                "Claude Code is not logged in: no {}, and no API key in the environment",
                credentials.display()
            ),
            how_to_log_in(),
        ),
    }
}

/// A login that was found.
#[derive(Debug, PartialEq, Eq)]
enum Login {
    Usable(&'static str),
    /// It cannot be refreshed.
    Expired,
}

fn how_to_log_in() -> String {
    "run `claude` and type /login, or set ANTHROPIC_API_KEY; without a browser, `claude setup-token` on another machine prints a token for \
     CLAUDE_CODE_OAUTH_TOKEN"
        .to_owned()
}

fn read(path: &Path) -> Value {
    std::fs::read(path).ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default()
}

fn is_text(value: &Value) -> bool {
    value.as_str().is_some_and(|text| !text.is_empty())
}

fn credentials_in(file: &Value) -> Option<Login> {
    let login = &file["claudeAiOauth"];
    if is_text(&login["refreshToken"]) {
        return Some(Login::Usable("credentials"));
    }
    if !is_text(&login["accessToken"]) {
        return None;
    }
    // In milliseconds.
    let expired = login["expiresAt"].as_u64().is_some_and(|end| end / 1000 <= now());
    Some(if expired { Login::Expired } else { Login::Usable("credentials") })
}

fn setting_in<'a>(mut files: impl Iterator<Item = &'a Path>) -> Option<(Login, PathBuf)> {
    files.find_map(|path| {
        let settings = read(path);
        let what = if is_text(&settings["apiKeyHelper"]) {
            "`apiKeyHelper`"
        } else {
            VARIABLES.into_iter().find(|name| is_text(&settings["env"][name]))?
        };
        Some((Login::Usable(what), path.to_owned()))
    })
}

/// The API key that Claude Code stores after a login to the developer console.
fn key_in(state: &Value) -> Option<Login> {
    is_text(&state["primaryApiKey"]).then_some(Login::Usable("an API key"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::Health;
    use super::*;

    fn found(home: &Path, more: &[(&str, &str)]) -> Finding {
        let variable = |name: &str| match name {
            "HOME" => Some(home.into()),
            _ => more.iter().find(|(given, _)| *given == name).map(|(_, value)| value.into()),
        };
        check(variable, Some(&home.join(".claude/settings.json")))
    }

    #[test]
    fn a_variable_a_credentials_file_or_a_setting_is_a_login() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path();
        let none = found(home, &[("ANTHROPIC_API_KEY", "")]);
        assert_eq!(none.health, Health::Problem);
        assert!(none.fix.unwrap().contains("/login"));
        let set = found(home, &[("ANTHROPIC_API_KEY", "sk-fake")]);
        assert_eq!((set.health, set.found.as_str()), (Health::Ok, "ANTHROPIC_API_KEY is set"));

        std::fs::create_dir(home.join(".claude")).unwrap();
        let write =
            |name: &str, content: Value| std::fs::write(home.join(name), content.to_string()).unwrap();
        write(".claude/.credentials.json", json!({"claudeAiOauth": {"accessToken": "fake", "expiresAt": 1}}));
        let expired = found(home, &[]);
        assert_eq!(expired.health, Health::Problem);
        assert!(expired.found.contains("expired"));
        let fresh = json!({"claudeAiOauth": {"accessToken": "fake", "refreshToken": "fake", "expiresAt": 1}});
        write(".claude/.credentials.json", fresh);
        let fresh = found(home, &[]);
        assert_eq!(fresh.health, Health::Ok);
        assert!(!fresh.found.contains("fake"), "no secret is shown");
        let other = home.join("other");
        assert_eq!(found(home, &[("CLAUDE_CONFIG_DIR", other.to_str().unwrap())]).health, Health::Problem);

        write(".claude.json", json!({"primaryApiKey": "fake"}));
        assert!(found(home, &[]).found.contains("an API key in "));
        write(".claude/settings.json", json!({"apiKeyHelper": "print-key"}));
        assert!(found(home, &[]).found.contains("`apiKeyHelper` in "));
        write(".claude/settings.json", json!({"env": {"ANTHROPIC_AUTH_TOKEN": "fake"}}));
        assert!(found(home, &[]).found.contains("ANTHROPIC_AUTH_TOKEN in "));
    }
}
