//! What makes the arguments of a known command do more than its name says: options that run other programs, that write
//! files, or that give later words another meaning. A rule vouches for such a word only by naming it.

use super::options::{GIT_RUNS, OPTIONS, Options, SAME_AS, SHIFTING};
use super::script::{Expansion, Word, base_name};

/// A word that a wildcard does not vouch for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hazard {
    /// Which word; a rule has to name all up to it.
    pub(crate) at: usize,
    pub(crate) kind: HazardKind,
}

/// What the word can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HazardKind {
    /// It runs something that is not among the parts of the script.
    Runs,
    /// It writes a file, or changes what other words mean.
    Reaches,
}

/// The words of a command that only a rule that names them vouches for.
pub(crate) fn hazards(words: &[Word]) -> Vec<Hazard> {
    let Some(name) = words.first().and_then(Word::literal) else { return Vec::new() };
    let name = base_name(name);
    let last = words.len() - 1;
    let all = |kind| vec![Hazard { at: usize::MAX, kind }];
    match name {
        "set" if words[1..].iter().all(|w| w.literal().is_some_and(is_plain_set)) => return Vec::new(),
        "wait" if last == 0 => return Vec::new(),
        "." | "alias" | "bind" | "complete" | "enable" | "eval" | "exec" | "fc" | "hash" | "source"
        | "trap" => {
            return all(HazardKind::Runs);
        }
        "printf"
            if words
                .get(1)
                .is_some_and(|w| w.known_start().is_empty() || w.known_start().starts_with('-')) =>
        {
            return all(HazardKind::Reaches);
        }
        "test" | "[" if words[1..].iter().any(|w| w.literal().is_none_or(|w| matches!(w, "-v" | "-R"))) => {
            return all(HazardKind::Reaches);
        }
        _ if SHIFTING.contains(&name) => return all(HazardKind::Reaches),
        _ => {}
    }
    let command = SAME_AS.iter().find(|(other, _)| *other == name).map_or(name, |(_, same)| same);
    let Some(options) = OPTIONS.iter().find(|options| options.command == command) else { return Vec::new() };
    let mut found = Vec::new();
    for (at, word) in words.iter().enumerate().skip(1) {
        if command == "npm" && word.literal() == Some("--") {
            break;
        }
        if let Some(kind) = hazard(command, options, words, at, word) {
            // What is run stands behind the option, unless it is part of it.
            let behind = kind == HazardKind::Runs
                && word.literal().is_some_and(|word| word.starts_with('-') && !word.contains('='));
            found.push(Hazard { at: at + usize::from(behind), kind });
        }
    }
    found
}

fn hazard(command: &str, options: &Options, words: &[Word], at: usize, word: &Word) -> Option<HazardKind> {
    let previous = words.get(at - 1).and_then(Word::literal).unwrap_or_default();
    let Some(literal) = word.literal() else {
        // It could become one of the options, unless it cannot begin with a dash or is plainly an option's value.
        let start = word.known_start();
        let message = command == "git" && matches!(previous, "-m" | "-am" | "--message");
        let argument =
            !start.is_empty() && !start.starts_with('-') && !matches!(command, "sed" | "awk" | "make");
        let safe = match word.expansion() {
            Expansion::One => message || argument,
            Expansion::Each => argument,
            Expansion::Many => false,
        };
        return if safe { None } else { Some(HazardKind::Runs) };
    };
    if options.run.iter().any(|option| stands_for(literal, option)) {
        return Some(HazardKind::Runs);
    }
    if options.reach.iter().any(|option| stands_for(literal, option)) {
        return Some(HazardKind::Reaches);
    }
    let program = !literal.starts_with('-');
    match command {
        "git" if at == 1 && GIT_RUNS.contains(&literal) => Some(HazardKind::Runs),
        "git" if literal.starts_with("ext::") => Some(HazardKind::Runs),
        "make" if literal.contains('=') => Some(HazardKind::Runs),
        "cargo" if literal.starts_with('+') => Some(HazardKind::Reaches),
        "awk"
            if program && ["system", "|", ">", "getline", "@"].iter().any(|risk| literal.contains(risk)) =>
        {
            Some(HazardKind::Runs)
        }
        "sed" if program && (at == 1 || previous.starts_with('-')) && !is_plain_sed(literal) => {
            Some(HazardKind::Runs)
        }
        "sed" if literal.starts_with("-e") && literal.len() > 2 || literal.starts_with("--e") => {
            Some(HazardKind::Runs)
        }
        _ => None,
    }
}

/// Whether a word is this option, an abbreviation of it, or a cluster with it.
fn stands_for(word: &str, option: &str) -> bool {
    if let Some(long) = option.strip_prefix("--") {
        let given = word.split('=').next().unwrap_or(word);
        return given.strip_prefix("--").is_some_and(|given| !given.is_empty() && long.starts_with(given));
    }
    if option.len() > 2 {
        let given = word.split('=').next().unwrap_or(word);
        return given == option || given.strip_prefix('-') == Some(option);
    }
    word.starts_with('-') && !word.starts_with("--") && word[1..].contains(&option[1..])
}

/// `set -e` and its kin, which change no word.
fn is_plain_set(word: &str) -> bool {
    let letters = word.strip_prefix(['-', '+']).unwrap_or_default();
    matches!(word, "pipefail" | "errexit" | "nounset" | "xtrace")
        || !letters.is_empty() && letters.bytes().all(|b| b"eoux".contains(&b))
}

/// A sed script that prints, deletes or substitutes, and does nothing else.
fn is_plain_sed(script: &str) -> bool {
    let command = script.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, ',' | '$' | ' '));
    if matches!(command, "p" | "d" | "q" | "=") {
        return true;
    }
    let mut chars = command.chars();
    if chars.next() != Some('s') {
        return false;
    }
    let Some(mark) = chars.next().filter(|mark| "/|,#:@!".contains(*mark)) else { return false };
    let rest = chars.as_str();
    if rest.contains('\n') || rest.contains(&format!("\\{mark}")) || rest.matches(mark).count() != 2 {
        return false;
    }
    rest.rsplit(mark)
        .next()
        .is_some_and(|flags| flags.bytes().all(|b| b == b'g' || b == b'p' || b == b'I' || b.is_ascii_digit()))
}
