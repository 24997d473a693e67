//! Parses the text of option tables. It reports each line that it cannot parse, so that a test can require none.

use super::{
    AfterDashes, Attached, Book, Effect, Input, NextWord, OperandAccess, Operands, OptionSpec, OptionValue,
    Order, Style, Table, Trust,
};
use crate::bash::repository::RemoteAt;
use crate::bash::values::ValueCheck;

/// Adds the tables of a text, and returns the lines that cannot be parsed.
pub(super) fn read(book: &mut Book, text: &'static str) -> Vec<&'static str> {
    let mut faults = Vec::new();
    let mut current: Vec<usize> = Vec::new();
    for line in text.lines() {
        let line = line.split(" #").next().unwrap_or(line).trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(names) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            current = names.split(',').filter_map(|name| table_index(book, name.trim())).collect();
            continue;
        }
        let understood = !current.is_empty() && current.iter().all(|at| directive(book, *at, line).is_some());
        if !understood {
            faults.push(line);
        }
    }
    faults
}

/// The table of a command or, with further words, of a subcommand.
fn table_index(book: &mut Book, name: &'static str) -> Option<usize> {
    let mut words = name.split(' ');
    let mut at = enter(book, None, words.next()?);
    for word in words {
        at = enter(book, Some(at), word);
    }
    Some(at)
}

fn enter(book: &mut Book, parent: Option<usize>, name: &'static str) -> usize {
    let next = book.tables.len();
    let names = match parent {
        None => &mut book.by_name,
        Some(parent) => &mut book.tables[parent].subcommands,
    };
    let at = *names.entry(name).or_insert(next);
    if at == next {
        // Subcommands parse their options like the command.
        let attached = parent.and_then(|parent| book.tables.get(parent)).map(|parent| parent.attached);
        book.tables.push(Table { attached: attached.unwrap_or_default(), ..Table::default() });
    }
    at
}

fn directive(book: &mut Book, at: usize, line: &'static str) -> Option<()> {
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    if word == "same" {
        let other = find(book, rest)?;
        let options = book.tables.get(other)?.options.clone();
        book.tables.get_mut(at)?.options.extend(options);
        return Some(());
    }
    let table = book.tables.get_mut(at)?;
    match word {
        "ok" => options(table, rest, Effect::Harmless)?,
        "ask" => options(table, rest, Effect::Reaches)?,
        "run" => options(table, rest, Effect::Runs)?,
        "any" => table.trust = Trust::Everything,
        "named" => table.trust = Trust::NamedWrites,
        "runs" => table.trust = Trust::NamedRuns,
        "options-first" => table.order = Order::OptionsFirst,
        "style" => table.style = style(rest)?,
        "attached" => table.attached = attached(rest)?,
        "reads" => table.access = OperandAccess::Reads,
        "writes" if rest.is_empty() => table.access = OperandAccess::Writes,
        "writes" if rest == "output" => table.input = Input::WritesOutput,
        "operands" => table.operands = operands(rest)?,
        "input" if rest == "code" => table.input = Input::Code,
        "input" if rest == "code-without-operand" => table.input = Input::CodeWithoutOperand,
        "alone" => table.alone.extend(rest.split_whitespace()),
        "after--" if rest == "unknown" => table.after_dashes = AfterDashes::NotKnown,
        "after--" if rest == "own" => table.after_dashes = AfterDashes::Own,
        "after--" => table.after_dashes = AfterDashes::Table(rest),
        _ => return None,
    }
    Some(())
}

fn options(table: &mut Table, words: &'static str, effect: Effect) -> Option<()> {
    for word in words.split_whitespace() {
        let (name, spec) = option(word, effect)?;
        table.options.insert(name, spec);
    }
    Some(())
}

fn style(name: &str) -> Option<Style> {
    Some(match name {
        "single-dash" => Style::SingleDash,
        "old-cluster" => Style::OldCluster,
        "exact" => Style::Exact,
        _ => return None,
    })
}

fn attached(name: &str) -> Option<Attached> {
    Some(match name {
        "getopt" => Attached::Getopt,
        "never" => Attached::Never,
        _ => return None,
    })
}

fn find(book: &Book, name: &str) -> Option<usize> {
    let mut words = name.split(' ');
    let mut at = *book.by_name.get(words.next()?)?;
    for word in words {
        at = *book.tables.get(at)?.subcommands.get(word)?;
    }
    Some(at)
}

fn operands(text: &'static str) -> Option<Operands> {
    let one = |text: &str| {
        let mut chars = text.chars();
        chars.next().filter(|_| chars.as_str().is_empty())
    };
    let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
    Some(match word {
        "at-most" => Operands::AtMost(rest.parse().ok()?),
        "beginning" => Operands::Beginning(one(rest)?),
        "not-beginning" => Operands::NotBeginning(rest),
        "without" if !rest.is_empty() => Operands::Without(rest),
        "program" => Operands::Program,
        "script" => Operands::Script,
        "sed" => Operands::Sed,
        "awk" => Operands::Awk,
        "sql" => Operands::Sql,
        "git" => Operands::Git,
        "remote" => Operands::Remote(match rest {
            "first" => RemoteAt::First,
            "all" => RemoteAt::All,
            "later" => RemoteAt::Later,
            _ => return None,
        }),
        "git-config" => Operands::GitConfig,
        _ => return None,
    })
}

/// Parses `-a`, `--n=`, `--n=NUM`, `--n=one|two`, `--n?`, `--n==` (two values), each optionally with `!` or `>` at the
/// end.
fn option(word: &'static str, effect: Effect) -> Option<(&'static str, OptionSpec)> {
    let (word, then) = match (word.strip_suffix('!'), word.strip_suffix('>')) {
        (Some(word), _) => (word, NextWord::Own),
        (_, Some(word)) => (word, NextWord::Arguments),
        _ => (word, NextWord::Words),
    };
    let end = word.find(['=', '?']).unwrap_or(word.len());
    let (name, value) = word.split_at(end);
    let value = match value.split_at_checked(1) {
        None => OptionValue::Nothing,
        Some(("=", "=")) => OptionValue::Two,
        Some(("=", check)) => OptionValue::Value(ValueCheck::named(check)?),
        Some((_, check)) => OptionValue::Attached(ValueCheck::named(check)?),
    };
    let valid = name.len() > 1 && name.starts_with(['-', '+']);
    valid.then_some((name, OptionSpec { value, effect, then }))
}

#[cfg(test)]
mod tests {
    use super::super::TEXTS;
    use super::*;

    #[test]
    fn every_line_of_the_tables_is_understood() {
        let mut book = Book::default();
        for text in TEXTS {
            assert_eq!(read(&mut book, text), Vec::<&str>::new());
        }
        let names = book.by_name.keys();
        let missing: Vec<_> =
            names.filter(|name| name.contains(|c: char| c.is_whitespace() || c == ']')).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }

    #[test]
    fn no_table_lists_an_option_twice() {
        for text in TEXTS {
            let mut seen = std::collections::HashMap::new();
            for line in text.lines() {
                let (effect, words) = line.split_once(' ').unwrap_or((line, ""));
                match effect {
                    _ if line.starts_with('[') => seen.clear(),
                    "ok" | "ask" | "run" => {
                        for word in words.split_whitespace() {
                            let name = word.split(['=', '?']).next();
                            let before = seen.insert(name, (effect, word));
                            assert!(before.is_none_or(|before| before == (effect, word)), "{word}: {line}");
                        }
                    }
                    _ => {}
                }
            }
        }
    }

    #[test]
    fn an_invalid_table_line_is_reported_and_adds_nothing() {
        let mut book = Book::default();
        let faults = read(&mut book, "ok -a\n[x]\nok -b=NONSENSE\nfine -c\noperands sometimes\nok d\nok -e");
        assert_eq!(faults, ["ok -a", "ok -b=NONSENSE", "fine -c", "operands sometimes", "ok d"]);
        let options: Vec<_> = book.tables[0].options.keys().collect();
        assert_eq!(options, [&"-e"]);
    }
}
