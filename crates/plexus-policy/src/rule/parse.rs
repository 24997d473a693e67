//! The grammar of rules. Every error is reported with its position; the parser skips and guesses nothing.

use super::{Rule, RuleError, Specifier};
use crate::command_pattern::{BETWEEN, CommandPattern, Tail};
use crate::paths::PathPattern;
use crate::tools::{self, SpecifierKind};

/// An error: its position, and what is expected there.
pub(crate) type Fault = (usize, String);

pub(super) fn rule(text: &str) -> Result<Rule, RuleError> {
    read(text).map_err(|(at, expected)| RuleError { text: text.to_owned(), at, expected })
}

fn fault<T>(at: usize, expected: impl Into<String>) -> Result<T, Fault> {
    Err((at, expected.into()))
}

fn read(text: &str) -> Result<Rule, Fault> {
    let end =
        text.bytes().position(|b| !(b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'*' | b'.')));
    let end = end.unwrap_or(text.len());
    if end == 0 {
        return fault(0, "the name of a tool");
    }
    let (tool, rest) = text.split_at(end);
    let whole = || Rule { tool: tool.to_owned(), specifier: Specifier::Whole };
    if rest.is_empty() {
        return Ok(whole());
    }
    let Some(inside) = rest.strip_prefix('(') else { return fault(end, "`(` or the end") };
    let Some(inside) = inside.strip_suffix(')') else { return fault(text.len(), "`)`") };
    let start = end + 1;
    if let Some(at) = inside.find(|c: char| c.is_control()) {
        return fault(start + at, "a visible character");
    }
    if inside.is_empty() || inside == "*" {
        return Ok(whole());
    }
    let shifted = |(at, expected): Fault| (start + at, expected);
    let specifier = match tools::specifier_kind(tool) {
        SpecifierKind::Command => Specifier::Command(command(inside).map_err(shifted)?),
        SpecifierKind::Path(family) => Specifier::Path(family, PathPattern::parse(inside).map_err(shifted)?),
        SpecifierKind::Domain => Specifier::Domain(domain(inside).map_err(shifted)?),
        SpecifierKind::Name => Specifier::Name(name(inside).map_err(shifted)?),
        SpecifierKind::Nothing => return fault(end, format!("the end (`{tool}` takes no specifier)")),
    };
    Ok(Rule { tool: tool.to_owned(), specifier })
}

/// Parses words separated by blanks; quotes and backslashes group characters.
fn command(text: &str) -> Result<CommandPattern, Fault> {
    let mut segments = vec![String::new()];
    let mut pending_blank = false;
    let mut quote: Option<(char, usize)> = None;
    // The characters so far, quoted and escaped ones replaced by `x`. Its end shows an unquoted `:*` or ` *`.
    let mut trail = Vec::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        let blank = quote.is_none() && (c == ' ' || c == '\t');
        if blank {
            pending_blank = true;
            trail.push(' ');
            continue;
        }
        if pending_blank {
            pending_blank = false;
            if segments.len() > 1 || !segments[0].is_empty() {
                push(&mut segments, BETWEEN);
            }
        }
        match c {
            '\\' => {
                let Some((_, escaped)) = chars.next() else {
                    return fault(at + 1, "a character after the backslash");
                };
                push(&mut segments, escaped);
                trail.push('x');
                continue;
            }
            '\'' | '"' if quote.is_none() => quote = Some((c, at)),
            _ if quote.is_some_and(|(open, _)| open == c) => quote = None,
            '*' => segments.push(String::new()),
            _ => push(&mut segments, c),
        }
        trail.push(if quote.is_none() { c } else { 'x' });
    }
    if let Some((open, at)) = quote {
        return fault(at, format!("the closing {open} of the quote that starts here"));
    }
    let mut tail = Tail::End;
    if trail.ends_with(&[':', '*']) || trail.ends_with(&[' ', '*']) {
        segments.pop();
        if let Some(last) = segments.last_mut() {
            last.pop();
        }
        tail = Tail::Words;
    }
    // A lone star would be serialised as the rule for the whole tool.
    if segments == [""] || segments == ["", ""] && tail == Tail::End {
        return fault(0, "a command");
    }
    // A serialised rule could not distinguish an empty word from no word.
    let open_end = |at: usize| at + 2 == segments.len() && segments[at + 1].is_empty() && tail == Tail::End;
    let empty = |(at, segment): (usize, &String)| {
        segment.contains("\0\0")
            || at == 0 && segment.starts_with(BETWEEN)
            || segment.ends_with(BETWEEN) && (at + 1 == segments.len() || open_end(at))
    };
    if segments.iter().enumerate().any(empty) {
        return fault(0, "a command without empty words");
    }
    Ok(CommandPattern { segments, tail })
}

fn push(segments: &mut [String], c: char) {
    if let Some(last) = segments.last_mut() {
        last.push(c);
    }
}

fn domain(text: &str) -> Result<String, Fault> {
    let Some(domain) = text.strip_prefix("domain:") else { return fault(0, "`domain:`") };
    let start = "domain:".len();
    let host = domain.strip_prefix("*.").unwrap_or(domain);
    let start_of_host = start + (domain.len() - host.len());
    if let Some(at) = host.find(|c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == '.')) {
        return fault(start_of_host + at, "a letter, a digit, `-` or `.`");
    }
    let host = host.strip_suffix('.').unwrap_or(host);
    if host.is_empty() || host.starts_with('.') || host.contains("..") {
        return fault(start_of_host, "a host name");
    }
    let prefix = if start_of_host > start { "*." } else { "" };
    Ok(format!("{prefix}{}", host.to_ascii_lowercase()))
}

fn name(text: &str) -> Result<String, Fault> {
    match text.find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-' | ':' | '.' | '*' | '/' | ' ')))
    {
        Some(at) => fault(at, "a letter, a digit or one of `_ - : . * /`"),
        None => Ok(text.to_owned()),
    }
}
