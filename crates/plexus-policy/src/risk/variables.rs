//! Variables in a command line: replaces them by the values that the line itself assigns, `$HOME` and `$PWD` by theirs, and marks
//! variables that hold secrets or name programs. The parser drops the names of variables, so this module searches the text
//! itself, also inside quotes, because another shell may run a quoted text.

use std::collections::HashMap;

use plexus_protocol::RiskKind;

use super::file_table::{HARMLESS_PROGRAMS, PROGRAM_VARIABLES, SECRET_VARIABLES};
use super::path::Directories;
use super::{Marks, quoted};
use crate::bash::{Word, base_name};
use crate::wildcard::name_matches;

/// How much of a text is searched. The parser rejects texts of this length.
const MAX_BYTES: usize = 20_000;
/// The maximum number of values of a variable that are examined.
const MAX_VERSIONS: usize = 8;
/// The maximum number of assignments in a text, with the values of loops.
const MAX_ASSIGNMENTS: usize = 400;
/// The maximum length of the list of a loop, in bytes.
const MAX_LIST: usize = 1_000;
/// How often values are replaced in values: `A=x; B=$A/y; cat $B`.
const MAX_ROUNDS: usize = 3;

/// The text with known values in place of variables. There are several versions if the text assigns a variable several times.
pub(super) fn with_known_values(text: &str, dirs: &Directories<'_>) -> Vec<String> {
    if text.len() > MAX_BYTES {
        return vec![text.to_owned()];
    }
    let text = with_known_homes(text, dirs);
    let mut versions = Vec::new();
    for number in 0..MAX_VERSIONS {
        let mut version = text.clone();
        let mut is_last = true;
        for _ in 0..MAX_ROUNDS {
            let assigned = values(&version);
            is_last &= assigned.values().all(|values| values.len() <= number + 1);
            let known = |name: &str| match assigned.get(name) {
                Some(values) => values.get(number).or(values.last()).cloned().flatten(),
                None => directory(name, dirs),
            };
            let next = replaced(&version, known);
            if next == version {
                break;
            }
            version = next;
        }
        if !versions.contains(&version) {
            versions.push(version);
        }
        if is_last {
            break;
        }
    }
    versions
}

/// The values of each variable that a text assigns. If a variable has many, those that look like options or paths come first.
fn values(text: &str) -> HashMap<String, Vec<Option<String>>> {
    let mut values: HashMap<String, Vec<Option<String>>> = HashMap::new();
    for Assigned { name, value } in assignments(text) {
        values.entry(name).or_default().push(value);
    }
    for values in values.values_mut().filter(|values| values.len() > MAX_VERSIONS) {
        values.sort_by_key(|value| {
            !value.as_deref().is_none_or(|value| value.starts_with(['-', '+', '/', '~', '.']))
        });
        values.truncate(MAX_VERSIONS);
    }
    values
}

/// The value of a variable that every shell sets.
fn directory(name: &str, dirs: &Directories<'_>) -> Option<String> {
    let path = match name {
        "HOME" => dirs.home?,
        "PWD" => dirs.cwd,
        _ => return None,
    };
    let path = path.to_str()?;
    is_plain(path).then(|| path.to_owned())
}

/// Whether a value has the same meaning wherever it replaces a variable.
fn is_plain(value: &str) -> bool {
    value.bytes().all(|b| b.is_ascii_alphanumeric() || b"/_-.~:=+@,%*? ".contains(&b))
}

/// The text with values in place of variables.
fn replaced(text: &str, value: impl Fn(&str) -> Option<String>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        if out.len() > MAX_BYTES {
            break;
        }
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let (braced, behind) = match rest.strip_prefix("${") {
            Some(behind) => (true, behind),
            None => (false, &rest[1..]),
        };
        let name = name_at(behind);
        let after = &behind[name.len()..];
        let found = if name.is_empty() { None } else { value(name) };
        let result = match (found, braced) {
            // zsh: a subscript or a modifier.
            (Some(_), false) if after.starts_with(['[', ':']) => None,
            (Some(value), false) => Some((value, after)),
            (Some(value), true) => match after.strip_prefix('}') {
                Some(after) if after.starts_with(['[', ':']) => None,
                Some(after) => Some((value, after)),
                None => modified(&value, after),
            },
            (None, _) => None,
        };
        match result {
            Some((value, after)) => {
                if out.ends_with('\\') {
                    out.pop();
                }
                out.push_str(&value);
                rest = after;
            }
            None => {
                out.push('$');
                rest = &rest[1..];
            }
        }
    }
    out.push_str(rest);
    out
}

/// The value of an expansion with an operator, and the text after it. `${PWD:-x}` is the variable itself. `${PWD%/*}` and others that
/// change the end of a path count as its parent.
fn modified<'t>(value: &str, operator: &'t str) -> Option<(String, &'t str)> {
    let (_, after) = operator.split_once('}')?;
    if [":-", ":=", ":?", "-", "=", "?"].iter().any(|default| operator.starts_with(default)) {
        return Some((value.to_owned(), after));
    }
    if !operator.starts_with(['%', ':', '/']) || !value.starts_with('/') {
        return None;
    }
    let (parent, _) = value.rsplit_once('/')?;
    Some((if parent.is_empty() { "/" } else { parent }.to_owned(), after))
}

/// The text with `~+` replaced, and with `~name` as text, which is the home directory of another user.
fn with_known_homes(text: &str, dirs: &Directories<'_>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('~') {
        let starts_word = rest[..at].chars().next_back().or(out.chars().next_back());
        let starts_word = starts_word.is_none_or(|c| c.is_whitespace() || "<>=:;|&(".contains(c));
        out.push_str(&rest[..at]);
        let behind = &rest[at + 1..];
        let name: &str = &behind[..behind.find(|c: char| !is_user_char(c)).unwrap_or(behind.len())];
        match directory("PWD", dirs) {
            Some(pwd) if starts_word && name == "+" => out.push_str(&pwd),
            _ if starts_word && !name.is_empty() => {
                out.push_str("\\~");
                out.push_str(name);
            }
            _ => {
                out.push('~');
                out.push_str(name);
            }
        }
        rest = &behind[name.len()..];
    }
    out.push_str(rest);
    out
}

fn is_user_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_-+.".contains(c)
}

/// `NAME=value` in a text.
#[derive(Debug)]
struct Assigned {
    name: String,
    /// `None` if it is not a plain text.
    value: Option<String>,
}

/// Everything in a text that looks like an assignment, also `for NAME in …`.
fn assignments(text: &str) -> Vec<Assigned> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(at) = text[from..].find(['=', 'i']).map(|at| from + at) {
        from = at + 1;
        if found.len() >= MAX_ASSIGNMENTS {
            break;
        }
        if text[at..].starts_with("in") {
            found.extend(loop_values(&text[..at], &text[at + 2..]));
            continue;
        }
        if text.as_bytes()[at] != b'=' {
            continue;
        }
        let before = &text[..at];
        let appends = before.ends_with('+');
        let before = before.strip_suffix('+').unwrap_or(before);
        let name = name_before(before);
        let starts = before[..before.len() - name.len()].chars().next_back();
        if name.is_empty() || !starts.is_none_or(|c| c.is_whitespace() || ";&|({'\"`".contains(c)) {
            continue;
        }
        let value = if appends { None } else { value_at(&text[at + 1..]) };
        found.push(Assigned { name: name.to_owned(), value });
    }
    found
}

/// The values of the variable of a loop, whose `in` is between these texts.
fn loop_values(before: &str, words: &str) -> Vec<Assigned> {
    let head = before.trim_end();
    let name = name_before(head);
    let keyword = head[..head.len() - name.len()].trim_end();
    if name.is_empty()
        || head.len() == before.len()
        || !(keyword.ends_with("for") || keyword.ends_with("select"))
    {
        return Vec::new();
    }
    let words = &words[..words.floor_char_boundary(MAX_LIST)];
    let end = words.find([';', '\n']).unwrap_or(words.len());
    let value = |word: &str| {
        let word = word.trim_matches(['"', '\'']);
        is_plain(word).then(|| word.to_owned())
    };
    words[..end]
        .split_whitespace()
        .map(|word| Assigned { name: name.to_owned(), value: value(word) })
        .collect()
}

/// The value after `=`, if it is one plain text.
fn value_at(text: &str) -> Option<String> {
    let (value, behind) = match text.chars().next() {
        Some(quote @ ('\'' | '"')) => text[1..].split_once(quote)?,
        _ => {
            let end =
                text.find(|c: char| c.is_whitespace() || ";&|()<>'\"`".contains(c)).unwrap_or(text.len());
            text.split_at(end)
        }
    };
    let ends = behind.chars().next().is_none_or(|c| c.is_whitespace() || ";&|)'\"`".contains(c));
    (ends && is_plain(value)).then(|| value.to_owned())
}

fn name_at(text: &str) -> &str {
    let end = text.find(|c: char| c != '_' && !c.is_ascii_alphanumeric()).unwrap_or(text.len());
    if text.starts_with(|c: char| c.is_ascii_digit()) { "" } else { &text[..end] }
}

fn name_before(text: &str) -> &str {
    let name = &text[text
        .rfind(|c: char| c != '_' && !c.is_ascii_alphanumeric())
        .map_or(0, |at| at + text[at..].chars().next().map_or(1, char::len_utf8))..];
    if name.starts_with(|c: char| c.is_ascii_digit()) { "" } else { name }
}

/// Adds a mark for each expanded variable that usually holds a secret.
pub(super) fn mark_secrets(text: &str, marks: &mut Marks) {
    let text = &text[..text.floor_char_boundary(MAX_BYTES)];
    for piece in text.split('$').skip(1) {
        let piece = piece.strip_prefix('{').unwrap_or(piece);
        let name: String =
            piece.chars().take_while(|c| *c == '_' || c.is_ascii_alphanumeric()).take(60).collect();
        mark_secret(&name, marks);
    }
}

/// Adds a mark for each secret variable that a command prints by its name.
pub(super) fn mark_printed(words: &[Word], marks: &mut Marks) {
    let program = words.first().and_then(Word::literal).map(base_name);
    if matches!(program, Some("printenv" | "declare" | "typeset" | "export" | "readonly")) {
        let names = words[1..].iter().filter_map(Word::literal).filter(|word| !word.contains('='));
        names.for_each(|name| mark_secret(name, marks));
    }
}

fn mark_secret(name: &str, marks: &mut Marks) {
    let upper = name.to_ascii_uppercase();
    if SECRET_VARIABLES.iter().any(|part| upper.contains(part)) {
        let shown = quoted(&format!("${name}"));
        marks.add(RiskKind::Credentials, format!("uses {shown}, which usually holds a secret"));
    }
}

/// Adds a mark for each assigned variable whose value another program runs.
pub(super) fn mark_programs(text: &str, marks: &mut Marks) {
    let text = &text[..text.floor_char_boundary(MAX_BYTES)];
    let assigned = assignments(text);
    if assigned.len() >= MAX_ASSIGNMENTS {
        marks.add(RiskKind::Unclear, "the command assigns too many variables to analyse".to_owned());
    }
    for Assigned { name, value } in assigned {
        let names_program = PROGRAM_VARIABLES.iter().any(|pattern| name_matches(pattern, &name));
        if names_program && !value.is_some_and(|value| HARMLESS_PROGRAMS.contains(&value.as_str())) {
            let shown = quoted(&format!("{name}=…"));
            marks.add(RiskKind::Unclear, format!("{shown} may make a program run another command"));
        }
    }
}
