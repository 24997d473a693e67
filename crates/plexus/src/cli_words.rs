//! Turns the words of the hub's errors into those of the command line: methods into verbs, parameters into flags. Programs read the hub's
//! own text: with `--json`, and with a method as the command (`plexus claudecode create …`), whose flags have the names of the wire.

use std::borrow::Cow;
use std::sync::OnceLock;

use serde_json::Value;

use crate::call::Schema;
use crate::cli::NAMESPACES;

/// Whose words errors have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Words {
    /// For a person at the command line.
    Cli,
    /// As the hub wrote them.
    Wire,
}

static WORDS: OnceLock<Words> = OnceLock::new();

/// Chooses the words of this process, once.
pub(crate) fn choose(words: Words) {
    let _ = WORDS.set(words);
}

/// The words of this process.
pub(crate) fn chosen() -> Words {
    WORDS.get().copied().unwrap_or(Words::Cli)
}

/// Methods with a verb of their own. Any other method is a command of its namespace.
const METHODS: [(&str, &str); 24] = [
    ("audit.list", "plexus audit"),
    ("claudecode.chat", "plexus send"),
    ("claudecode.chat_async", "plexus send"),
    ("claudecode.compact", "plexus compact"),
    ("claudecode.create", "plexus run"),
    ("claudecode.delete", "plexus rm"),
    ("claudecode.diff", "plexus diff"),
    ("claudecode.fork", "plexus fork"),
    ("claudecode.get", "plexus ls"),
    ("claudecode.import", "plexus import"),
    ("claudecode.imports", "plexus import"),
    ("claudecode.interrupt", "plexus interrupt"),
    ("claudecode.list", "plexus ls"),
    ("claudecode.poll", "plexus logs"),
    ("claudecode.resumable", "plexus run --resume"),
    ("claudecode.send", "plexus send"),
    ("claudecode.stop", "plexus stop"),
    ("claudecode.update", "plexus rename"),
    ("loopback.get", "plexus approvals ID"),
    ("loopback.pending", "plexus approvals"),
    ("loopback.respond", "plexus approve"),
    ("policy.add", "plexus allow"),
    ("policy.list", "plexus rules"),
    ("policy.revoke", "plexus rules rm"),
];

/// Parameters whose names are no words of English, wherever a message quotes them.
const PARAMETERS: [(&str, &str); 10] = [
    ("append_system_prompt", "`--append-system-prompt`"),
    ("approval_id", "the approval"),
    ("expires_at", "`--for`"),
    ("mcp_servers", "`--mcp`"),
    ("new_name", "the new name"),
    ("permission_mode", "`--mode`"),
    ("session_id", "its id"),
    ("trust_project", "`--trust`"),
    ("updated_input", "`--edit`"),
    ("working_dir", "`--dir`"),
];

/// Other parameters, only as the field that the error is about: a quoted `name` may be the name of a session.
const FIELDS: [(&str, &str); 20] = [
    ("answers", "`--answers`"),
    ("at", "`--at`"),
    ("attachments", "`--attach`"),
    ("budget", "`--budget`"),
    ("digest", "`--digest`"),
    ("env", "`--env`"),
    ("hooks", "`--hooks`"),
    ("host", "the host"),
    ("imported", "`--no-imported`"),
    ("instructions", "INSTRUCTIONS"),
    ("isolation", "`--worktree`"),
    ("labels", "`--label`"),
    ("mode", "`--mode`"),
    ("model", "`--model`"),
    ("name", "the name"),
    ("policy", "`--policy`"),
    ("prompt", "the prompt"),
    ("remember", "`--always`"),
    ("resume", "`--resume`"),
    ("rules", "RULE"),
];

/// The message of an error of the hub, in the words of this process. `data` has the field that it is about, if any.
pub(crate) fn message<'a>(text: &'a str, data: &Value) -> Cow<'a, str> {
    match WORDS.get() {
        Some(Words::Wire) => Cow::Borrowed(text),
        Some(Words::Cli) | None => Cow::Owned(for_people(text, data["field"].as_str())),
    }
}

fn for_people(text: &str, field: Option<&str>) -> String {
    let mut parts: Vec<Cow<'_, str>> = text.split('`').map(Cow::Borrowed).collect();
    let last = parts.len() - 1;
    for (at, part) in parts.iter_mut().enumerate() {
        let quoted = at % 2 == 1 && at < last;
        let replaced = match quoted {
            true => quoted_word(part, field.filter(|_| at == 1)),
            false => Some(methods(part)),
        };
        *part = match (quoted, replaced) {
            (true, None) => Cow::Owned(format!("`{part}`")),
            (_, Some(text)) => Cow::Owned(text),
            (false, None) => continue,
        };
    }
    // A backtick without a partner.
    if last % 2 == 1 {
        parts.insert(last, Cow::Borrowed("`"));
    }
    parts.concat()
}

/// The replacement of a quoted word, with its quotes if it has any.
fn quoted_word(word: &str, field: Option<&str>) -> Option<String> {
    if let Some(command) = command(word) {
        return Some(format!("`{command}`"));
    }
    // `budget.cost_usd` is a part of `budget`.
    let name = word.split(['.', '[']).next().unwrap_or(word);
    let of_field = FIELDS.iter().filter(|_| field == Some(word));
    let known = PARAMETERS.iter().chain(of_field).find(|(parameter, _)| *parameter == name);
    known.map(|(_, flag)| (*flag).to_owned())
}

/// The text with a command in place of each method.
fn methods(text: &str) -> String {
    let is_part = |c: char| c.is_ascii_lowercase() || matches!(c, '_' | '.');
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(is_part) {
        let (before, from) = rest.split_at(start);
        out.push_str(before);
        let end = from.find(|c| !is_part(c)).unwrap_or(from.len());
        let (word, after) = from.split_at(end);
        let name = word.trim_end_matches('.');
        match command(name) {
            Some(command) => out.push_str(&format!("`{command}`{}", &word[name.len()..])),
            None => out.push_str(word),
        }
        rest = after;
    }
    out + rest
}

/// The command for a method; `None` if the word is no method.
fn command(word: &str) -> Option<String> {
    if let Some((_, command)) = METHODS.iter().find(|(method, _)| *method == word) {
        return Some((*command).to_owned());
    }
    let (namespace, method) = word.split_once('.')?;
    let exists =
        NAMESPACES.contains(&namespace) && Schema::of_this_version().is_ok_and(|schema| schema.has(word));
    exists.then(|| format!("plexus {namespace} {}", method.replace('_', "-")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_and_parameters_become_verbs_and_flags() {
        for (text, field, shown) in [
            ("`working_dir` /x is not a directory", Some("working_dir"), "`--dir` /x is not a directory"),
            (
                "Claude Code has no session 1; claudecode.resumable lists the sessions of a directory",
                None,
                "Claude Code has no session 1; `plexus run --resume` lists the sessions of a directory",
            ),
            ("`prompt`: is empty", Some("prompt"), "the prompt: is empty"),
            ("`budget.cost_usd`: invalid", Some("budget.cost_usd"), "`--budget`: invalid"),
            (
                "`labels`: no host fits gpu: `host` lacks gpu",
                Some("labels"),
                "`--label`: no host fits gpu: `host` lacks gpu",
            ),
            (
                "`host`: `a` is connected; pass `force: true` (`plexus host lost --force`)",
                Some("host"),
                "the host: `a` is connected; pass `force: true` (`plexus host lost --force`)",
            ),
            ("delete some with claudecode.delete.", None, "delete some with `plexus rm`."),
            ("use `claudecode.set_budget`", None, "use `plexus claudecode set-budget`"),
            (
                "`x` is the name of several sessions; pass a path or `session_id`: a/x",
                None,
                "`x` is the name of several sessions; pass a path or its id: a/x",
            ),
        ] {
            assert_eq!(for_people(text, field), shown);
        }
    }

    #[test]
    fn other_text_stays() {
        for text in [
            "a session named `prompt` already exists",
            "see plexus.toml, e.g. the file a.txt",
            "an odd ` backtick",
            "`",
            "",
            "the audit.log is full",
        ] {
            assert_eq!(for_people(text, Some("name")), text);
        }
    }

    #[test]
    fn each_method_in_the_table_exists() {
        let schema = Schema::of_this_version().unwrap();
        for (method, _) in METHODS {
            assert!(schema.has(method), "{method}");
        }
    }
}
