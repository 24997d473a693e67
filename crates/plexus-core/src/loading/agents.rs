//! Parses the agent definitions of a project, `.claude/agents/*.md`: a head of `key: value` lines between two `---`
//! lines, and the prompt. It loads the keys that describe an agent and its tools. It leaves out keys that would grant
//! permissions or run programs.

use plexus_protocol::Object;
use serde_json::{Value, json};

/// An agent, and the keys of its head that were left out.
#[derive(Debug)]
pub(super) struct Agent {
    pub(super) name: String,
    /// The definition that Claude Code receives.
    pub(super) definition: Value,
    pub(super) left_out: Vec<String>,
}

/// A parse error: the line number and the reason.
pub(super) type Fault = (usize, String);

/// Parses a definition. `stem` is the file name, for a definition without a name.
pub(super) fn parse(text: &str, stem: &str) -> Result<Agent, Fault> {
    let (head, prompt) = split(text)?;
    let (mut name, mut definition, mut left_out) = (stem.to_owned(), Object::new(), Vec::new());
    for Field { line, key, first, more } in fields(head)? {
        let text = || scalar(&first, &more).map_err(|why| (line, why));
        match key.as_str() {
            "name" => name = text()?,
            "description" | "model" => drop(definition.insert(key, text()?.into())),
            "tools" | "disallowedTools" => {
                let list = list(&first, &more).map_err(|why| (line, why))?;
                definition.insert(key, list.into());
            }
            "color" => {}
            _ => left_out.push(key),
        }
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if name.is_empty() || name.len() > 64 || !name.chars().all(plain) {
        return Err((1, "the name of an agent must have 1 to 64 letters, digits, `-` or `_`".to_owned()));
    }
    if !definition.contains_key("description") {
        return Err((1, "`description` is missing".to_owned()));
    }
    definition.insert("prompt".to_owned(), json!(prompt.trim()));
    Ok(Agent { name, definition: Value::Object(definition), left_out })
}

/// Splits a definition into its head and its prompt.
fn split(text: &str) -> Result<(&str, &str), Fault> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let rest =
        text.strip_prefix("---").and_then(|rest| rest.strip_prefix("\r\n").or(rest.strip_prefix('\n')));
    let rest = rest.ok_or_else(|| (1, "expected `---`".to_owned()))?;
    let mut at = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == "---" {
            return Ok((&rest[..at], &rest[at + line.len()..]));
        }
        at += line.len();
    }
    Err((rest.lines().count() + 1, "expected `---` at the end of the front matter".to_owned()))
}

/// One key, with the value on its line and the indented lines below it.
struct Field {
    line: usize,
    key: String,
    first: String,
    more: Vec<String>,
}

fn fields(head: &str) -> Result<Vec<Field>, Fault> {
    let mut fields: Vec<Field> = Vec::new();
    for (line, text) in head.lines().enumerate().map(|(i, text)| (i + 2, text)) {
        let below = text.starts_with([' ', '\t', '-']) || text.trim().is_empty();
        if below {
            if let Some(field) = fields.last_mut() {
                field.more.push(text.to_owned());
            }
            continue;
        }
        if text.starts_with('#') {
            continue;
        }
        let (key, first) = text.split_once(':').ok_or_else(|| (line, "expected `key: value`".to_owned()))?;
        if fields.iter().any(|field| field.key == key.trim()) {
            return Err((line, format!("`{}` occurs twice", key.trim())));
        }
        fields.push(Field {
            line,
            key: key.trim().to_owned(),
            first: first.trim().to_owned(),
            more: Vec::new(),
        });
    }
    Ok(fields)
}

fn scalar(first: &str, more: &[String]) -> Result<String, String> {
    let below = || more.iter().map(|line| line.trim()).collect::<Vec<_>>();
    Ok(match first {
        "|" | "|-" | "|+" => below().join("\n").trim().to_owned(),
        ">" | ">-" | ">+" | "" => below().join(" ").trim().to_owned(),
        _ => {
            let whole = std::iter::once(first).chain(below()).collect::<Vec<_>>().join(" ");
            unquoted(whole.trim())?
        }
    })
}

fn unquoted(text: &str) -> Result<String, String> {
    if text.starts_with('"') {
        return serde_json::from_str(text).map_err(|_| "is not a valid string in double quotes".to_owned());
    }
    if let Some(inside) = text.strip_prefix('\'') {
        let inside = inside.strip_suffix('\'').ok_or("the closing quote is missing")?;
        return Ok(inside.replace("''", "'"));
    }
    Ok(text.to_owned())
}

fn list(first: &str, more: &[String]) -> Result<Vec<String>, String> {
    if first.is_empty() {
        let below = more.iter().map(|line| line.trim()).filter(|line| !line.is_empty());
        return below
            .map(|line| line.strip_prefix('-').ok_or_else(|| "expected `- item`".to_owned()))
            .map(|item| item.and_then(|item| unquoted(item.trim())))
            .collect();
    }
    let all = scalar(first, more)?;
    let inside = all
        .strip_prefix('[')
        .map_or(Ok(all.as_str()), |rest| rest.strip_suffix(']').ok_or("expected `]`"))?;
    // A comma in parentheses is part of a rule.
    let mut depth = 0_i32;
    let items = inside.split(|c| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        c == ',' && depth == 0
    });
    items.map(str::trim).filter(|item| !item.is_empty()).map(unquoted).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_definition_in_the_usual_format_is_parsed() {
        let text = "---\nname: reviewer\ndescription: \"Looks at: code\\nwell\"\ntools: Read, Bash(git log:*, -p)\n\
                    model: sonnet\ncolor: red\n---\n\nYou review.\nAll of it.\n";
        let agent = parse(text, "file").expect("an agent");
        assert_eq!((agent.name.as_str(), agent.left_out.len()), ("reviewer", 0));
        assert_eq!(
            agent.definition,
            json!({"description": "Looks at: code\nwell", "tools": ["Read", "Bash(git log:*, -p)"], "model": "sonnet",
                   "prompt": "You review.\nAll of it."})
        );
        let listed = parse(
            "---\r\ndescription: >\r\n  one\r\n  two\r\ntools:\r\n  - Read\r\n  - 'Edit'\r\n---\r\nx",
            "stem",
        );
        let listed = listed.expect("an agent");
        assert_eq!(listed.name, "stem");
        assert_eq!(
            listed.definition,
            json!({"description": "one two", "tools": ["Read", "Edit"], "prompt": "x"})
        );
    }

    #[test]
    fn fields_that_grant_permissions_or_run_programs_are_left_out() {
        let text = "---\nname: a\ndescription: b\npermissionMode: bypassPermissions\nhooks:\n  PreToolUse:\n    - matcher: \
                    \"*\"\nmcpServers: [x]\ntools: [Read, \"Bash\"]\n---\nx";
        let agent = parse(text, "a").expect("an agent");
        assert_eq!(agent.left_out, ["permissionMode", "hooks", "mcpServers"]);
        assert_eq!(agent.definition, json!({"description": "b", "tools": ["Read", "Bash"], "prompt": "x"}));
    }

    #[test]
    fn an_unreadable_field_is_reported_with_its_line() {
        for (text, line) in [
            ("no head", 1),
            ("---\nname: a\n", 2),
            ("---\nname: a\n---\nx", 1),
            ("---\nname: a b\ndescription: c\n---\nx", 1),
            ("---\ndescription: a\nrubbish\n---\nx", 3),
            ("---\ndescription: a\ndescription: b\n---\nx", 3),
            ("---\ndescription: \"a\n---\nx", 2),
            ("---\ndescription: a\ntools: [Read\n---\nx", 3),
        ] {
            assert_eq!(parse(text, "a").expect_err(text).0, line, "{text}");
        }
    }
}
