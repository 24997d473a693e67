//! Compares the words of a command with its option table: getopt, but with the result "which words are not known to be
//! harmless". It fails closed: a word that the table does not explain is a hazard, whatever it may turn out to be.

use std::ops::ControlFlow;

use super::hazards::{Hazard, HazardKind, hazards};
use super::operands::{Operand, OperandJudge};
use super::options::{
    self, AfterDashes, Effect, Operands, OptionSpec, Order, Style, Table, Takes, Then, Trust,
};
use super::script::{Expansion, Piece, Word};
use super::values::ValueCheck;

/// The words of a command that has no table: operands are covered, options are not.
pub(super) fn without_table(words: &[Word]) -> Vec<Hazard> {
    Arguments::new(words, 1).against(&Table::default())
}

/// The words of a command that has one.
pub(super) fn with_table(words: &[Word], table: &Table) -> Vec<Hazard> {
    Arguments::new(words, 1).against(table)
}

/// One pass over the words of a command.
struct Arguments<'w> {
    words: &'w [Word],
    at: usize,
    found: Vec<Hazard>,
    /// An option was not recognised: whether the word behind it is its value cannot be known.
    lost: bool,
    judge: OperandJudge,
}

/// What to do with the word after this one.
enum Next {
    Word,
    /// All others are the arguments of the program that is run.
    Own,
    /// A program stands here, and its arguments follow.
    Program(usize),
}

impl<'w> Arguments<'w> {
    fn new(words: &'w [Word], at: usize) -> Self {
        Self { words, at, found: Vec::new(), lost: false, judge: OperandJudge::default() }
    }

    fn hazard(&mut self, at: usize, kind: HazardKind) {
        self.found.push(Hazard { at, kind });
    }

    fn against(mut self, table: &Table) -> Vec<Hazard> {
        if table.trust == Trust::Everything {
            return self.found;
        }
        if table.style == Style::OldCluster {
            self.old_cluster(table);
        }
        while let Some(word) = self.words.get(self.at) {
            let at = self.at;
            self.at += 1;
            let Some(text) = word.literal() else {
                if self.unknown(table, word, at).is_break() {
                    return self.found;
                }
                continue;
            };
            let next = if text == "--" && !self.lost && table.after_dashes != AfterDashes::NotKnown {
                return self.behind_dashes(table);
            } else if is_option(table, text) {
                self.option(table, text, at)
            } else if let Some(end) = self.operand(table, word, at) {
                return end;
            } else {
                Next::Word
            };
            match next {
                Next::Word => {}
                Next::Own => return self.found,
                Next::Program(at) => return self.program(at),
            }
        }
        self.end(table)
    }

    fn end(mut self, table: &Table) -> Vec<Hazard> {
        if !self.judge.is_complete(table.operands) {
            self.hazard(usize::MAX, HazardKind::Runs);
        }
        self.found
    }

    /// A word that is not known before it runs.
    fn unknown(&mut self, table: &Table, word: &Word, at: usize) -> ControlFlow<()> {
        let start = start_of(word);
        let stays = word.expansion() != Expansion::Many;
        if let Some((name, _)) = start.split_once('=')
            && stays
            && let Some(OptionSpec { value, effect: Effect::Harmless, .. }) = table.option(name)
            && matches!(value, Takes::Value(ValueCheck::Any) | Takes::Attached(ValueCheck::Any))
        {
            return ControlFlow::Continue(());
        }
        let is_operand = stays && !start.is_empty() && !is_option(table, start);
        if !is_operand || self.lost || table.has_subcommands() {
            let kind = if table.can_run() { HazardKind::Runs } else { HazardKind::Reaches };
            self.hazard(at, kind);
            self.lost = true;
            return ControlFlow::Continue(());
        }
        match self.judge.judge(table.operands, Operand::Unknown(word)) {
            Ok(()) if matches!(table.operands, Operands::Script) => return ControlFlow::Break(()),
            Ok(()) => {}
            Err(kind) => self.hazard(at, kind),
        }
        ControlFlow::Continue(())
    }

    /// What stands behind `--`: no options.
    fn behind_dashes(self, table: &Table) -> Vec<Hazard> {
        match table.after_dashes {
            AfterDashes::Own | AfterDashes::NotKnown => self.found,
            AfterDashes::Table(name) => match options::table(name) {
                Some(table) => self.against(table),
                None => self.against(&Table::default()),
            },
            AfterDashes::Operands => self.only_operands(table),
        }
    }

    /// Nothing but operands follows.
    fn only_operands(mut self, table: &Table) -> Vec<Hazard> {
        while let Some(word) = self.words.get(self.at) {
            let at = self.at;
            self.at += 1;
            if word.literal().is_none()
                && word.expansion() == Expansion::Many
                && table.operands != Operands::Any
            {
                self.hazard(at, HazardKind::Runs);
            } else if let Some(end) = self.operand(table, word, at) {
                return end;
            }
        }
        self.end(table)
    }

    /// An operand; the result where it gives all later words another meaning.
    fn operand(&mut self, table: &Table, word: &Word, at: usize) -> Option<Vec<Hazard>> {
        if table.has_subcommands() {
            return Some(self.subcommand(table, word, at));
        }
        if self.lost && table.operands != Operands::Any {
            self.hazard(at, HazardKind::Reaches);
            return None;
        }
        if table.operands == Operands::Program {
            self.hazard(at, HazardKind::Runs);
            return Some(std::mem::take(self).program(at));
        }
        let operand = word.literal().map_or(Operand::Unknown(word), Operand::Known);
        if let Err(kind) = self.judge.judge(table.operands, operand) {
            self.hazard(at, kind);
        }
        if table.operands == Operands::Script {
            return Some(std::mem::take(&mut self.found));
        }
        if table.order == Order::OptionsFirst {
            return Some(std::mem::take(self).only_operands(table));
        }
        None
    }

    fn subcommand(&mut self, table: &Table, word: &Word, at: usize) -> Vec<Hazard> {
        let Some(inner) = word.literal().and_then(|name| table.subcommand(name)).filter(|_| !self.lost)
        else {
            // Nothing is known of it: it has to be named, and its options have to be.
            self.hazard(at, HazardKind::Reaches);
            let rest = std::mem::take(self);
            return rest.against(&Table::default());
        };
        match inner.trust {
            Trust::NamedWrites => self.hazard(at, HazardKind::Reaches),
            Trust::NamedRuns => self.hazard(at, HazardKind::Runs),
            Trust::Listed | Trust::Everything => {}
        }
        std::mem::take(self).against(inner)
    }

    /// A program that a rule has to name, judged with its own table.
    fn program(mut self, at: usize) -> Vec<Hazard> {
        let inner = hazards(self.words.get(at..).unwrap_or_default());
        self.found
            .extend(inner.into_iter().map(|hazard| Hazard { at: hazard.at.saturating_add(at), ..hazard }));
        self.found
    }

    fn old_cluster(&mut self, table: &Table) {
        let Some(text) = self.words.get(1).and_then(Word::literal) else { return };
        if text.starts_with('-') || text.is_empty() {
            return;
        }
        // Each letter that takes a value takes one of the following words, in their order.
        self.at = 2;
        for letter in text.chars() {
            match table.option(&format!("-{letter}")) {
                Some(option) => {
                    let value = match option.value {
                        Takes::Value(check) => Some(check),
                        _ => None,
                    };
                    self.effect(option, 1, value.map(|check| (check, self.at)));
                    self.at += usize::from(value.is_some());
                }
                None => self.not_known(table, "", 1),
            }
        }
    }

    fn option(&mut self, table: &Table, text: &str, at: usize) -> Next {
        let (name, value) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
        let single = format!("-{}", name.trim_start_matches('-'));
        let listed = match table.style {
            Style::SingleDash if name.starts_with("--") => {
                table.option(name).or_else(|| table.option(&single))
            }
            _ if name.len() > 2 || table.style != Style::Gnu && table.style != Style::OldCluster => {
                table.option(name)
            }
            _ => None,
        };
        if let Some(option) = listed {
            return self.whole(table, option, name, value, at);
        }
        if text[1..].bytes().all(|b| b.is_ascii_digit()) && table.option("-NUM").is_some() {
            return Next::Word;
        }
        if text.starts_with("--") || table.style == Style::Exact || text.starts_with('+') {
            self.not_known(table, name, at);
            return Next::Word;
        }
        self.cluster(table, text, at)
    }

    /// An option that is a word of its own, perhaps with `=value`.
    fn whole(
        &mut self,
        table: &Table,
        option: OptionSpec,
        name: &str,
        value: Option<&str>,
        at: usize,
    ) -> Next {
        match (option.value, value) {
            (Takes::Nothing, Some(_)) | (Takes::Two, Some(_)) => {
                self.not_known(table, name, at);
                Next::Word
            }
            (Takes::Nothing, None) | (Takes::Attached(_), None) => {
                self.effect(option, at, None);
                if option.then == Then::Own { Next::Own } else { Next::Word }
            }
            (Takes::Value(check) | Takes::Attached(check), Some(value)) => {
                self.attached(option, check, value, at)
            }
            (Takes::Value(check), None) => self.separate(option, check, at),
            (Takes::Two, None) => {
                self.separate(option, ValueCheck::Any, at);
                self.separate(option, ValueCheck::Any, at)
            }
        }
    }

    /// `-abc`, `-n5`, `-an 5`.
    fn cluster(&mut self, table: &Table, text: &str, at: usize) -> Next {
        for (index, letter) in text.char_indices().skip(1) {
            let Some(option) = table.option(&format!("-{letter}")) else {
                self.not_known(table, text, at);
                return Next::Word;
            };
            let rest = &text[index + letter.len_utf8()..];
            match option.value {
                Takes::Nothing if table.style == Style::SingleDash && !rest.is_empty() => {
                    self.not_known(table, text, at);
                    return Next::Word;
                }
                Takes::Nothing => {
                    self.effect(option, at, None);
                    if option.then == Then::Own {
                        return Next::Own;
                    }
                }
                Takes::Attached(_) if rest.is_empty() => self.effect(option, at, None),
                Takes::Attached(check) | Takes::Value(check) if !rest.is_empty() => {
                    return self.attached(option, check, rest, at);
                }
                Takes::Value(check) | Takes::Attached(check) => return self.separate(option, check, at),
                Takes::Two => {
                    self.not_known(table, text, at);
                    return Next::Word;
                }
            }
        }
        Next::Word
    }

    fn attached(&mut self, option: OptionSpec, check: ValueCheck, value: &str, at: usize) -> Next {
        self.judge.saw_value(check);
        if option.effect == Effect::Harmless && !check.admits(value) {
            let kind = if check == ValueCheck::Sed { HazardKind::Runs } else { HazardKind::Reaches };
            self.hazard(at, kind);
        }
        self.effect(option, at, None);
        match option.then {
            Then::Words => Next::Word,
            Then::Own => Next::Own,
            // The program is only part of a word, so no rule can name it alone.
            Then::Arguments => {
                self.hazard(usize::MAX, HazardKind::Runs);
                Next::Own
            }
        }
    }

    /// An option whose value is the next word.
    fn separate(&mut self, option: OptionSpec, check: ValueCheck, at: usize) -> Next {
        let value = self.at;
        self.at += 1;
        self.effect(option, at, Some((check, value)));
        match option.then {
            Then::Words => Next::Word,
            Then::Own => Next::Own,
            Then::Arguments => Next::Program(value),
        }
    }

    /// Notes what an option does: itself, and the word that is its value.
    fn effect(&mut self, option: OptionSpec, at: usize, value: Option<(ValueCheck, usize)>) {
        match option.effect {
            Effect::Harmless => {}
            Effect::Reaches => self.hazard(at, HazardKind::Reaches),
            // What is run stands behind the option, unless it is part of it.
            Effect::Runs => self.hazard(value.map_or(at, |(_, value)| value), HazardKind::Runs),
        }
        let Some((check, value)) = value else { return };
        self.judge.saw_value(check);
        let Some(word) = self.words.get(value) else { return };
        let harmless = match word.literal() {
            Some(text) => {
                let dashed = text.starts_with('-') && text.len() > 1;
                let number = text[1.min(text.len())..].starts_with(|c: char| c.is_ascii_digit());
                // Where the value looks like an option, versions of the command may disagree about which it is.
                (!dashed || number) && (option.effect != Effect::Harmless || check.admits(text))
            }
            None => match word.expansion() {
                Expansion::One => {
                    option.effect != Effect::Harmless || check.admits_any_after(word.known_start())
                }
                Expansion::Each => {
                    check == ValueCheck::Any && !start_of(word).is_empty() && !start_of(word).starts_with('-')
                }
                Expansion::Many => false,
            },
        };
        if !harmless {
            let kind = if check == ValueCheck::Sed { HazardKind::Runs } else { HazardKind::Reaches };
            self.hazard(value, kind);
        }
    }

    fn not_known(&mut self, table: &Table, name: &str, at: usize) {
        let runs = name.starts_with("--") && table.may_abbreviate_a_runner(name);
        self.hazard(at, if runs { HazardKind::Runs } else { HazardKind::Reaches });
        self.lost = true;
    }
}

impl Default for Arguments<'_> {
    fn default() -> Self {
        Self::new(&[], 0)
    }
}

/// Whether a word is an option, or may be one.
fn is_option(table: &Table, text: &str) -> bool {
    match text.chars().next() {
        Some('-') => text.len() > 1,
        Some('+') => table.option("+NAME").is_some(),
        _ => false,
    }
}

/// The text that a word begins with; of `~` it is known that it is a path.
fn start_of(word: &Word) -> &str {
    if word.pieces().first() == Some(&Piece::Home) { "/" } else { word.known_start() }
}

#[cfg(test)]
mod tests {
    use crate::bash::hazards::{HazardKind, hazards};
    use crate::bash::reader;

    /// Which words of a command need to be named, by their text; `*` stands for all of them.
    fn named(line: &str) -> Vec<String> {
        let script = reader::read(line, 0).expect("a line");
        let words = &script.parts[0].words;
        let mut places: Vec<usize> = hazards(words).iter().map(|hazard| hazard.at).collect();
        places.sort_unstable();
        places.dedup();
        let shown = |at: &usize| match words.get(*at) {
            Some(word) => word.literal().unwrap_or("…").to_owned(),
            None => "*".to_owned(),
        };
        places.iter().map(shown).collect()
    }

    #[test]
    fn options_that_a_table_lists_are_harmless_in_every_way_of_writing_them() {
        for line in [
            "sort -n -r x",
            "sort -nr x",
            "sort -k2 x",
            "sort -k 2 -t, x",
            "sort --key=2 x",
            "sort --key 2 x",
            "sort -nrk2 x",
            "sort x -u",
            "sort -- -o x",
            "git log -5",
            "git --no-pager log --oneline",
            "git log --color",
            "git log --color=never",
            "go test -run Foo -count=1",
            "go test --run=Foo",
            "npm run test --silent -- --anything -x",
            "tar tzf x.tar",
            "rg --glob='*.rs' \"--regexp=$X\"",
            "git commit -m \"$X\"",
            "python3 x.py --any -thing",
            "cat --no-such-option $X",
        ] {
            assert_eq!(named(line), Vec::<String>::new(), "{line}");
        }
    }

    #[test]
    fn every_other_option_has_to_be_named() {
        for (line, words) in [
            ("sort -o x", &["-o"][..]),
            ("sort -no x", &["-no"]),
            ("sort --output=x", &["--output=x"]),
            ("sort --outp x", &["--outp"]),
            ("sort --reverse=x", &["--reverse=x"]),
            ("sort --rev x", &["--rev"]),
            ("sort -k --output=x", &["--output=x"]),
            ("git --no-pager diff --output=x", &["--output=x"]),
            ("git log $X", &["…"]),
            ("git log \"$X\"", &["…"]),
            ("git log x*", &[]),
            ("git log *", &["…"]),
            ("npm run test ---silent", &["---silent"]),
            ("npm run test -silent", &["-silent"]),
            ("go test -coverprofile=x", &["-coverprofile=x"]),
            ("go test --coverprofile x", &["--coverprofile"]),
            ("tar tIf e x", &["e"]),
            ("python3 -O -c x", &["-c"]),
            ("mytool -a b --c=d e", &["-a", "--c=d"]),
            ("mytool a -- -f", &[]),
            ("mytool \"$X\"", &["…"]),
            ("mytool x -", &[]),
        ] {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            assert_eq!(named(line), words, "{line}");
        }
    }

    #[test]
    fn what_follows_an_option_that_is_not_known_is_not_trusted() {
        // `--what` may take `--` for its value, or the first operand.
        assert_eq!(named("sort --what -- --output=x"), ["--what", "--", "--output=x"]);
        assert_eq!(named("sed --what p x"), ["--what", "p", "x"]);
        assert_eq!(named("git --what log x"), ["--what", "log"]);
        assert_eq!(named("uniq --what a"), ["--what", "a"]);
    }

    #[test]
    fn operands_that_are_outputs_scripts_or_programs_have_to_be_named() {
        assert_eq!(named("uniq a"), Vec::<String>::new());
        assert_eq!(named("uniq -c a b"), ["b"]);
        assert_eq!(named("sed -l 5 '1e id' x"), ["1e id"]);
        assert_eq!(named("sed -n -e p -e '1e id' x"), ["1e id"]);
        assert_eq!(named("make all CC=x"), ["CC=x"]);
        assert_eq!(named("gcc @x"), ["@x"]);
        assert_eq!(named("git config a.b c"), ["c"]);
        assert_eq!(named("git frobnicate -x y"), ["frobnicate", "-x"]);
        assert_eq!(named("npx eslint --fix ."), ["eslint", "--fix"]);
        assert_eq!(named("python3 -m json.tool a b"), ["json.tool", "b"]);
        assert_eq!(named("uv run python -m pytest --junitxml=x"), ["python", "pytest", "--junitxml=x"]);
        assert_eq!(named("python3 -mpytest -q"), ["-mpytest", "*"]);
        assert_eq!(named("cargo test -- --logfile x"), ["--logfile"]);
        assert_eq!(named("sqlite3 x.db"), ["*"]);
    }

    #[test]
    fn what_runs_something_is_told_from_what_writes() {
        let runs = |line: &str| {
            let script = reader::read(line, 0).expect("a line");
            hazards(&script.parts[0].words).iter().any(|hazard| hazard.kind == HazardKind::Runs)
        };
        for line in [
            "tar --to-command=rm -xf a",
            "tar --to-comm=rm -xf a",
            "git -c x=y log",
            "git bisect run rm",
            "sed 'e rm'",
        ] {
            assert!(runs(line), "{line}");
        }
        for line in ["sort -o x", "git diff --output=x", "mytool --x", "mytool $X", "uniq a b"] {
            assert!(!runs(line), "{line}");
        }
    }
}
