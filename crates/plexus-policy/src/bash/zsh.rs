//! Syntax that zsh interprets and bash does not. Claude Code may run a line with either shell, so the parser rejects
//! syntax they disagree about. This module owns the builtins whose operands zsh evaluates arithmetically, and the
//! variables that control zsh. An evaluated text can run commands: a subscript in it, as in `path[$(id)]`, is expanded.

use super::script::{Assignment, Doubt, Part, Script, Word, base_name};

const COMPUTES: &str = "zsh evaluates an operand, which may run commands";

/// Builtins that exist only in zsh and change the meaning of later words, or evaluate or run their operands.
const ZSH_ONLY: [&str; 40] = [
    "autoload",
    "bindkey",
    "compadd",
    "comparguments",
    "compcall",
    "compctl",
    "compdescribe",
    "compfiles",
    "compgroups",
    "compquote",
    "compset",
    "comptags",
    "comptry",
    "compvalues",
    "disable",
    "emulate",
    "float",
    "functions",
    "getln",
    "integer",
    "private",
    "pushln",
    "r",
    "rehash",
    "sched",
    "setopt",
    "unfunction",
    "unhash",
    "unsetopt",
    "vared",
    "zcompile",
    "zformat",
    "zle",
    "zmodload",
    "zparseopts",
    "zregexparse",
    "zsocket",
    "zstyle",
    "zsystem",
    "ztcp",
];

/// Builtins that assign variables, in bash as well. An allow rule must name their operands in any case.
const ASSIGNING: [&str; 13] = [
    "declare",
    "export",
    "getopts",
    "let",
    "local",
    "mapfile",
    "read",
    "readarray",
    "readonly",
    "set",
    "typeset",
    "unset",
    "wait",
];

/// Words before a command that do not change it.
const PRECOMMANDS: [&str; 6] = ["-", "builtin", "command", "exec", "nocorrect", "noglob"];

/// Variables of zsh with lower-case names, like those of a script.
const STEERING: [&str; 35] = [
    "aliases",
    "argv",
    "builtins",
    "cdpath",
    "commands",
    "dirstack",
    "errnos",
    "fignore",
    "fpath",
    "funcstack",
    "functions",
    "galiases",
    "histchars",
    "history",
    "historywords",
    "jobdirs",
    "jobstates",
    "jobtexts",
    "mailpath",
    "manpath",
    "mapfile",
    "modules",
    "nameddirs",
    "options",
    "parameters",
    "path",
    "pipestatus",
    "prompt",
    "psvar",
    "reswords",
    "saliases",
    "signals",
    "status",
    "userdirs",
    "watch",
];

/// Whether a variable with a lower-case name controls zsh.
pub(super) fn steers(name: &str) -> bool {
    STEERING.contains(&name)
}

/// Whether zsh evaluates the value of this assignment: these variables are numeric in zsh.
pub(super) fn computes_value(assignment: &Assignment) -> bool {
    matches!(assignment.name.as_str(), "COLUMNS" | "LINES") && !is_number(&assignment.value)
}

/// Adds the doubts about zsh's builtins to a script parsed from `text`.
pub(super) fn add_doubts(script: &mut Script, text: &str) {
    let computes = script.parts.iter().any(|part| {
        part.assignments.iter().any(computes_value) || is_zsh_only(part) || computes_operand(part)
    });
    if computes {
        script.doubts.push(Doubt::Shifted(COMPUTES));
    }
    // A text that runs a command when it is evaluated contains a subscript, or is composed of escapes. Without this
    // check, deny rules would ask too often.
    let computing =
        |doubt: &Doubt| matches!(doubt, Doubt::Shifted(why) if *why == COMPUTES || *why == super::ARITHMETIC);
    let doubtful = script.doubts.iter().any(computing) || script.parts.iter().any(assigns);
    if doubtful && may_hold_subscript(text) {
        script.doubts.push(Doubt::Unseen(COMPUTES));
    }
}

/// Whether a text may give an evaluated expression a subscript with a substitution in it.
fn may_hold_subscript(text: &str) -> bool {
    let bytes = text.as_bytes();
    // `[ … ]` and `[[ … ]]` are separate words, and a plain index contains nothing that runs.
    let apart = |byte: u8| matches!(byte, b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'(' | b'!' | b'[');
    let subscript = |at: usize| match bytes.get(at + 1).copied().unwrap_or(b' ') {
        b'@' | b'*' | b'0'..=b'9' => bytes.get(at + 2) != Some(&b']'),
        next => !(apart(next) && (at == 0 || apart(bytes[at - 1]))),
    };
    bytes.iter().enumerate().any(|(at, byte)| *byte == b'[' && subscript(at))
        || text.contains("$'")
        || text.contains("\\x")
        || text.contains("\\0")
        || text.contains("\\1")
}

/// The words of a part, starting at the command that zsh runs.
fn command_words(part: &Part) -> &[Word] {
    let is = |word: &Word, wanted: fn(&str) -> bool| word.literal().is_some_and(wanted);
    let modifiers = part.words.iter().take_while(|word| is(word, |word| PRECOMMANDS.contains(&word))).count();
    let rest = part.words.get(modifiers..).unwrap_or_default();
    let options =
        rest.iter().take_while(|word| modifiers > 0 && is(word, |word| word.starts_with('-'))).count();
    rest.get(options..).unwrap_or_default()
}

/// Whether a builtin of either shell takes variable names, whose subscripts are evaluated, or assigns numbers to them.
fn assigns(part: &Part) -> bool {
    let words = command_words(part);
    let text = |at: usize| words.get(at).and_then(Word::literal);
    text(0).is_some_and(|name| ASSIGNING.contains(&name))
        || text(0) == Some("printf") && text(1) == Some("-v")
}

fn is_zsh_only(part: &Part) -> bool {
    let name = command_words(part).first().and_then(Word::literal).unwrap_or_default();
    ZSH_ONLY.contains(&name) || name.starts_with("zf_")
}

/// Whether zsh may evaluate an operand that is not clearly a number.
fn computes_operand(part: &Part) -> bool {
    let [name, operands @ ..] = command_words(part) else { return false };
    match name.literal().map(base_name) {
        Some("break" | "bye" | "continue" | "exit" | "logout" | "return" | "shift") => {
            operands.iter().any(|word| !is_number(word))
        }
        Some("printf") => printf_computes(operands),
        Some("print") => operands.iter().any(|word| {
            let start = word.known_start();
            let letters = start.strip_prefix('-').unwrap_or_default();
            word.literal().is_none() && start.is_empty() && operands.len() > 1
                || letters.bytes().any(|b| !b"nrlaNe-".contains(&b))
        }),
        Some("test" | "[") => operands.windows(2).any(|pair| {
            let takes_number = matches!(pair[0].literal(), Some("-t" | "-v"));
            takes_number && pair[1].literal() != Some("]") && !is_number(&pair[1])
        }),
        _ => false,
    }
}

/// Whether an operand of `printf` belongs to a numeric conversion.
fn printf_computes(operands: &[Word]) -> bool {
    let format = operands.iter().position(|word| word.literal() != Some("--")).unwrap_or(0);
    let Some((format, values)) = operands.get(format..).and_then(<[Word]>::split_first) else { return false };
    let texts_only = format.literal().is_some_and(|format| {
        let conversions = format.replace("%%", "");
        conversions.split('%').skip(1).all(|conversion| {
            let kind = conversion.trim_start_matches(|c: char| c.is_ascii_digit() || "-+ #.$".contains(c));
            kind.starts_with(['s', 'b', 'q', 'c'])
        })
    });
    !texts_only && values.iter().any(|word| !is_number(word))
}

/// Whether a word is a literal number.
pub(super) fn is_number(word: &Word) -> bool {
    word.literal().is_some_and(|text| {
        let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
        !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit() || b == b'.')
    })
}
