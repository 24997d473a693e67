//! The MCP servers of a child: who may give which servers, and which definitions are valid. A server is a program that
//! runs beside the gate, or a URL that receives the agent's data, so a session can only pass on servers that it has
//! itself.

use std::collections::BTreeMap;

use plexus_protocol::claudecode::{McpEndpoint, McpServer, McpServerGiven, McpServerKind};
use plexus_protocol::{Error, ErrorKind};

use plexus_store::Store;

use crate::callers::access::Admitted;
use crate::policy::inheritance::own_config;

/// The name of the hub's own server. No other server may use it, because the gate allows the hub's tools.
pub(crate) const HUB_SERVER: &str = "plexus";

const FIELD: &str = "mcp_servers";

/// These limits exist because each `list` reads everything stored with a session.
const MAX_SERVERS: usize = 32;
const MAX_BYTES: usize = 64 * 1024;

/// Server names that Claude Code reserves.
const RESERVED: [&str; 4] = ["workspace", "ide", "claude-in-chrome", "computer-use"];

/// The servers that this caller gives to a session it creates.
pub(crate) async fn given(
    store: &dyn Store,
    caller: &Admitted,
    servers: Option<BTreeMap<String, McpServerGiven>>,
) -> Result<BTreeMap<String, McpServer>, Error> {
    let Some(servers) = servers.filter(|servers| !servers.is_empty()) else { return Ok(BTreeMap::new()) };
    let own = own_config(store, &caller.principal).await?;
    let mut kept = BTreeMap::new();
    for (name, server) in servers {
        let field = format!("{FIELD}.{name}");
        let server = match (&own, server.kind) {
            (Some(own), Some(McpServerKind::Inherited)) => {
                check_only_named(&server, &field)?;
                let message =
                    format!("a session can only pass on its own MCP servers, and it has no server `{name}`");
                let imported = own.imported.as_ref().and_then(|imported| imported.mcp_servers.get(&name));
                let own = own.mcp_servers.get(&name).or(imported);
                own.cloned().ok_or_else(|| forbidden(&field, message))?
            }
            (Some(_), _) => {
                let message = "a session can only pass on its own MCP servers, with {\"type\":\"inherited\"}";
                return Err(forbidden(&field, message.to_owned()));
            }
            (None, _) => checked(&name, server, &field)?,
        };
        kept.insert(name, server);
    }
    check_size(&kept, FIELD)?;
    Ok(kept)
}

/// Checks the number of servers and their total size.
pub(super) fn check_size(servers: &BTreeMap<String, McpServer>, field: &str) -> Result<(), Error> {
    let size = serde_json::to_string(servers).map_or(usize::MAX, |text| text.len());
    if servers.len() > MAX_SERVERS || size > MAX_BYTES {
        let why =
            format!("must have at most {MAX_SERVERS} servers and at most {} KiB in total", MAX_BYTES / 1024);
        return Err(Error::invalid(field, why));
    }
    Ok(())
}

/// Validates a server. `field` names it in error messages.
pub(super) fn checked(name: &str, given: McpServerGiven, field: &str) -> Result<McpServer, Error> {
    check_name(name, field)?;
    let McpServerGiven { kind, command, args, env, url, headers, timeout } = given;
    let kind = match (kind, &command, &url) {
        (Some(kind), _, _) => kind,
        (None, Some(_), _) => McpServerKind::Stdio,
        (None, None, _) => return Err(Error::invalid(&format!("{field}.type"), "is missing")),
    };
    let missing = |part: &str| Error::invalid(&format!("{field}.{part}"), "is missing");
    let stray = |part: &str, kind: &str| {
        Err(Error::invalid(&format!("{field}.{part}"), format!("not allowed with `\"type\":\"{kind}\"`")))
    };
    match kind {
        McpServerKind::Stdio => {
            if url.is_some() || headers.is_some() {
                return stray(if url.is_some() { "url" } else { "headers" }, "stdio");
            }
            let command = command.ok_or_else(|| missing("command"))?;
            let (args, env) = (args.unwrap_or_default(), env.unwrap_or_default());
            check_program(&command, &args, &env, field)?;
            Ok(McpServer::Stdio { command, args, env, timeout })
        }
        McpServerKind::Http | McpServerKind::Sse => {
            let word = if kind == McpServerKind::Http { "http" } else { "sse" };
            let strays = [("command", command.is_some()), ("args", args.is_some()), ("env", env.is_some())];
            if let Some((part, _)) = strays.into_iter().find(|(_, there)| *there) {
                return stray(part, word);
            }
            let url = url.ok_or_else(|| missing("url"))?;
            let headers = headers.unwrap_or_default();
            check_endpoint(&url, &headers, field)?;
            let endpoint = McpEndpoint { url, headers, timeout };
            Ok(if kind == McpServerKind::Http { McpServer::Http(endpoint) } else { McpServer::Sse(endpoint) })
        }
        McpServerKind::Inherited => {
            let why = "only a session can inherit a server: pass its whole configuration";
            Err(Error::invalid(&format!("{field}.type"), why))
        }
    }
}

/// Tool names have the form `mcp__<server>__<tool>`, in rules too. Rejects names that are ambiguous or could pass as
/// the hub's own.
fn check_name(name: &str, field: &str) -> Result<(), Error> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let refuse = |why: String| Err(Error::invalid(field, why));
    if name.is_empty() || name.len() > 32 || !name.chars().all(plain) {
        return refuse("the name of a server must have 1 to 32 letters, digits, `-` or `_`".to_owned());
    }
    if name.starts_with('_') || name.ends_with('_') || name.contains("__") {
        return refuse(
            "the name of a server must not start or end with `_` or contain `__`, which separates it from \
             the tool name"
                .to_owned(),
        );
    }
    if name.eq_ignore_ascii_case(HUB_SERVER) || RESERVED.iter().any(|kept| name.eq_ignore_ascii_case(kept)) {
        return refuse(format!("the name `{name}` is reserved; choose another name"));
    }
    Ok(())
}

fn check_program(
    command: &str,
    args: &[String],
    env: &BTreeMap<String, String>,
    field: &str,
) -> Result<(), Error> {
    if command.trim().is_empty() || command.contains('\0') {
        return Err(Error::invalid(
            &format!("{field}.command"),
            "must be a program; it is empty or contains a NUL character",
        ));
    }
    if args.iter().any(|arg| arg.contains('\0')) {
        return Err(Error::invalid(&format!("{field}.args"), "an argument contains a NUL character"));
    }
    for (name, value) in env {
        let field = format!("{field}.env.{name}");
        if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
            return Err(Error::invalid(&field, "not a valid environment variable"));
        }
        // The hub finds all processes of a session by a marker variable with this prefix.
        if name.starts_with("PLEXUS_") {
            return Err(Error::invalid(&field, "Plexus sets this variable itself; remove it"));
        }
    }
    Ok(())
}

fn check_endpoint(url: &str, headers: &BTreeMap<String, String>, field: &str) -> Result<(), Error> {
    let host = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let has_host = host.is_some_and(|host| !host.is_empty() && !host.starts_with(['/', '?', '#', ':']));
    if !has_host || url.contains(|c: char| c.is_whitespace() || c.is_control()) {
        let why = "must be a URL that starts with http:// or https://";
        return Err(Error::invalid(&format!("{field}.url"), why));
    }
    for (name, value) in headers {
        let token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
        if name.is_empty() || !name.chars().all(token) || value.contains(|c: char| c.is_control()) {
            return Err(Error::invalid(
                &format!("{field}.headers"),
                format!("`{name}` is not a valid header"),
            ));
        }
    }
    Ok(())
}

/// An inherited server is passed on unchanged.
fn check_only_named(server: &McpServerGiven, field: &str) -> Result<(), Error> {
    let McpServerGiven { kind: _, command, args, env, url, headers, timeout } = server;
    let more = command.is_some() || args.is_some() || env.is_some() || url.is_some() || headers.is_some();
    if more || timeout.is_some() {
        return Err(Error::invalid(
            field,
            "an inherited server is passed on unchanged: pass only its `type`",
        ));
    }
    Ok(())
}

fn forbidden(field: &str, message: String) -> Error {
    Error::new(ErrorKind::Forbidden, message).with("field", field)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn check(name: &str, server: Value) -> Result<McpServer, Error> {
        let given = serde_json::from_value(server).expect("the shape");
        checked(name, given, &format!("{FIELD}.{name}"))
    }

    #[test]
    fn a_server_is_passed_on_unchanged() {
        for server in [
            json!({"type": "stdio", "command": "npx", "args": ["-y", "it"], "env": {"KEY": "k"}}),
            json!({"type": "http", "url": "https://a.example/mcp", "headers": {"Authorization": "Bearer x"}}),
            json!({"type": "sse", "url": "http://127.0.0.1:9/sse", "headers": {}, "timeout": 1000}),
        ] {
            let kept = check("it", server.clone()).expect("a server");
            assert_eq!(serde_json::to_value(&kept).expect("its text"), server);
            assert!(!format!("{kept:?}").contains("Bearer"), "{kept:?}");
        }
        let short = check("it", json!({"command": "it"})).expect("a server");
        assert!(matches!(short, McpServer::Stdio { command, .. } if command == "it"));
    }

    #[test]
    fn an_ambiguous_or_reserved_server_name_is_refused() {
        for good in ["github", "my-db_2", "a"] {
            assert!(check_name(good, "f").is_ok(), "{good}");
        }
        let long = "x".repeat(33);
        for bad in ["", "plexus", "Plexus", "a b", "a.b", "a__b", "_a", "a_", "a*", "ide", "ä", "a(b)", &long]
        {
            assert!(check_name(bad, "f").is_err(), "{bad}");
        }
    }

    #[test]
    fn an_invalid_server_is_refused_with_the_reason() {
        for (server, field) in [
            (json!({}), "type"),
            (json!({"type": "stdio"}), "command"),
            (json!({"command": " "}), "command"),
            (json!({"command": "a", "args": ["\0"]}), "args"),
            (json!({"command": "a", "env": {"A=B": "c"}}), "env.A=B"),
            (json!({"command": "a", "env": {"PLEXUS_SESSION_ID": "c"}}), "env.PLEXUS_SESSION_ID"),
            (json!({"command": "a", "url": "http://b"}), "url"),
            (json!({"command": "a", "headers": {}}), "headers"),
            (json!({"type": "http"}), "url"),
            (json!({"type": "http", "url": "file:///etc/passwd"}), "url"),
            (json!({"type": "http", "url": "http:///x"}), "url"),
            (json!({"type": "sse", "url": "http://a", "command": "b"}), "command"),
            (json!({"type": "http", "url": "http://a", "headers": {"A": "b\r\nC: d"}}), "headers"),
            (json!({"type": "http", "url": "http://a", "headers": {"A B": "c"}}), "headers"),
            (json!({"type": "inherited"}), "type"),
        ] {
            let error = check("it", server.clone()).expect_err("refused");
            assert_eq!(error.details["field"], format!("{FIELD}.it.{field}"), "{server}");
        }
    }
}
