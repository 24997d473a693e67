//! Evaluates deny and ask rules. They apply if they may match the call: a certain match denies or asks, a possible
//! match asks in either case.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};

use super::{Policy, RulePosition, Verdict, VerdictEffect};
use crate::bash::{Access, Line, Word};
use crate::call::Call;
use crate::command_pattern::{Certainty, CommandPattern};
use crate::input;
use crate::paths::{self, PathPattern};
use crate::rule::{Rule, Specifier};
use crate::subject::{self, Command, Extent, Subject, domain_matches, family, named_file};
use crate::tools::{self, Family, Shows, SpecifierKind};
use crate::wildcard::name_matches;

/// How certainly a rule matches a call.
#[derive(Debug, Clone, Copy)]
struct RuleMatch {
    certainty: Certainty,
    /// Why the match is not certain.
    why: Option<&'static str>,
}

/// The maximum length of a file path, in bytes.
const MAX_PATH_BYTES: usize = 4096;

const NO: RuleMatch = RuleMatch { certainty: Certainty::No, why: None };
const YES: RuleMatch = RuleMatch { certainty: Certainty::Yes, why: None };

fn maybe(why: &'static str) -> RuleMatch {
    RuleMatch { certainty: Certainty::Maybe, why: Some(why) }
}

/// The path rules that match something in a call, computed when the first rule needs them.
#[derive(Default)]
struct PathMatches {
    /// The call's own path.
    target: OnceCell<Vec<usize>>,
    /// The matches for files opened by redirections; `None` for an unknown file.
    opened: OnceCell<Vec<(Access, Option<Vec<usize>>)>>,
    /// The matches for files named by the words of a command line or the texts of an input.
    named: OnceCell<Vec<usize>>,
    /// The same for each command line in an input.
    lines: Vec<PathMatches>,
}

impl PathMatches {
    fn of(subject: &Subject<'_>) -> Self {
        let lines = if let Subject::Other(contents) = subject { contents.lines.len() } else { 0 };
        Self { lines: (0..lines).map(|_| Self::default()).collect(), ..Self::default() }
    }
}

impl Policy {
    /// The verdict of the deny and ask rules.
    pub(super) fn restricts(&self, call: &Call<'_>, subject: &Subject<'_>) -> Option<Verdict<'_>> {
        let found = PathMatches::of(subject);
        let mut asked = None;
        for position in self.in_force(&self.deny, call) {
            let RuleMatch { certainty, why } = self.match_rule(position, call, subject, &found);
            match certainty {
                Certainty::Yes => {
                    return Some(self.verdict(VerdictEffect::Deny, position, "it matches the deny rule"));
                }
                Certainty::Maybe => asked = asked.or(Some((position, why))),
                Certainty::No => {}
            }
        }
        if let Some((position, why)) = asked {
            let why =
                format!("{}, so it may match the deny rule", why.unwrap_or("the call cannot be evaluated"));
            return Some(self.verdict(VerdictEffect::Ask, position, &why));
        }
        let ask = self
            .in_force(&self.ask, call)
            .find(|position| self.match_rule(*position, call, subject, &found).certainty > Certainty::No)?;
        Some(self.verdict(VerdictEffect::Ask, ask, "it matches the ask rule"))
    }

    fn verdict(&self, effect: VerdictEffect, position: RulePosition, why: &str) -> Verdict<'_> {
        let decider = self.decider(position);
        let why = format!("{why} `{}` of {}", decider.entry.rule(), decider.level_name);
        Verdict { effect, by: vec![decider], why }
    }

    fn match_rule(
        &self,
        position: RulePosition,
        call: &Call<'_>,
        subject: &Subject<'_>,
        found: &PathMatches,
    ) -> RuleMatch {
        let rule = self.entry(position).rule();
        match (&rule.specifier, subject) {
            (Specifier::Whole, _) if tools::restricts(&rule.tool, call.tool_name) => YES,
            (_, Subject::Command(command)) => self.match_line(position, call, command, found),
            (_, Subject::Program(program)) => self.match_program(position, call, program, found),
            (_, Subject::Other(contents)) => self.match_contents(position, call, contents, found),
            (Specifier::Path(of, pattern), Subject::Path(family, at)) if restricts(*of, *family) => {
                let Some(at) = at else { return maybe("its path cannot be determined") };
                let Some(number) = position.path.filter(|_| pattern.is_absolute()) else {
                    return maybe("the relative path of the rule has no base directory");
                };
                if found.target.get_or_init(|| self.paths.matching_any(&at.target)).contains(&number) {
                    return YES;
                }
                match_search(at, pattern)
            }
            (Specifier::Domain(domain), Subject::Host(host)) => match host {
                None => maybe("its host cannot be determined"),
                Some(host) if domain_matches(domain, host) => YES,
                Some(_) => NO,
            },
            (Specifier::Name(pattern), Subject::Name(name)) if tools::same(&rule.tool, call.tool_name) => {
                match name {
                    None => maybe("its input has no name"),
                    Some(name) if name_matches(pattern, name) => YES,
                    Some(_) => NO,
                }
            }
            _ => NO,
        }
    }

    /// Whether a rule matches a command line.
    fn match_line(
        &self,
        position: RulePosition,
        call: &Call<'_>,
        command: &Command,
        found: &PathMatches,
    ) -> RuleMatch {
        let rule = self.entry(position).rule();
        match &rule.specifier {
            // `Edit` and `Read` without a path also apply to redirections.
            Specifier::Whole => match_redirects(rule, command),
            Specifier::Command(pattern) if tools::command_restricts(&rule.tool, call.tool_name) => {
                match_command(pattern, command)
            }
            Specifier::Path(of, pattern) => {
                self.match_opened_files(position, *of, pattern, call, command, found)
            }
            Specifier::Command(_) | Specifier::Domain(_) | Specifier::Name(_) => NO,
        }
    }

    /// Whether a rule matches a program in another language. The program may run any command and open any file.
    fn match_program(
        &self,
        position: RulePosition,
        call: &Call<'_>,
        program: &Command,
        found: &PathMatches,
    ) -> RuleMatch {
        let rule = self.entry(position).rule();
        let concerns = match &rule.specifier {
            Specifier::Whole => matches!(rule.tool.as_str(), "Edit" | "Read"),
            Specifier::Command(_) => tools::command_restricts(&rule.tool, call.tool_name),
            Specifier::Path(..) => true,
            Specifier::Domain(_) | Specifier::Name(_) => false,
        };
        match self.match_line(position, call, program, found) {
            RuleMatch { certainty: Certainty::No, .. } if concerns => {
                maybe("it runs code that is not a command line")
            }
            matched => matched,
        }
    }

    /// Whether a rule matches something in the input of a tool without rules of its own. A command line in it is
    /// treated like a Bash command. A file or host name in it only asks, because it is unknown what the tool does with
    /// it.
    fn match_contents(
        &self,
        position: RulePosition,
        call: &Call<'_>,
        contents: &input::Contents<'_>,
        found: &PathMatches,
    ) -> RuleMatch {
        let rule = self.entry(position).rule();
        if rule.tool == "Bash" && rule.specifier == Specifier::Whole && !contents.lines.is_empty() {
            return YES;
        }
        let lines = contents.lines.iter().zip(&found.lines);
        let matches = lines.map(|(line, found)| self.match_line(position, call, line, found));
        let best = matches.max_by_key(|matched| matched.certainty).unwrap_or(NO);
        if best.certainty > Certainty::No {
            return best;
        }
        match &rule.specifier {
            Specifier::Whole if !matches!(rule.tool.as_str(), "Bash" | "Edit" | "Read") => NO,
            _ if contents.cut => maybe("its input has too many strings to check"),
            Specifier::Path(_, pattern) if !pattern.is_absolute() => {
                maybe("the relative path of the rule has no base directory")
            }
            Specifier::Path(..) => {
                let named = found.named.get_or_init(|| self.paths_in_input(contents, call));
                let names = position.path.is_some_and(|number| named.contains(&number));
                if names { maybe("its input names a file") } else { NO }
            }
            Specifier::Domain(domain) => {
                let mut hosts = contents.texts.iter().filter_map(|text| subject::host(text));
                let names = hosts.any(|host| domain_matches(domain, &host));
                if names { maybe("its input names a host") } else { NO }
            }
            Specifier::Whole | Specifier::Command(_) | Specifier::Name(_) => NO,
        }
    }

    /// The path rules that match a file named by a text of an input, by its lexical path or by its target.
    fn paths_in_input(&self, contents: &input::Contents<'_>, call: &Call<'_>) -> Vec<usize> {
        let files = contents.texts.iter().filter_map(|text| {
            let path = text.strip_prefix("file://").unwrap_or(text);
            let path = match path.strip_prefix("~/") {
                Some(below) => call.home?.join(below),
                None => PathBuf::from(path),
            };
            let nameable = !path.as_os_str().is_empty() && path.as_os_str().len() <= MAX_PATH_BYTES;
            nameable.then_some(path)
        });
        let matching = |file: PathBuf| {
            let lexical = paths::lexical(&call.cwd.join(&file));
            // A folder represents its contents.
            let mut found = self.paths.matching(&lexical.join("\u{1}"));
            match paths::target(&file, call.cwd) {
                Some(target) => found.extend(self.paths.matching_any(&target)),
                None => found.extend(self.paths.matching(&lexical)),
            }
            found
        };
        files.flat_map(matching).collect()
    }

    /// Whether a command line opens, or at least names, a file that a path rule matches.
    fn match_opened_files(
        &self,
        position: RulePosition,
        of: Family,
        pattern: &PathPattern,
        call: &Call<'_>,
        command: &Command,
        found: &PathMatches,
    ) -> RuleMatch {
        let script = match command.script() {
            Ok(script) => script,
            Err(_) => return maybe("the command cannot be read"),
        };
        let Some(number) = position.path.filter(|_| pattern.is_absolute()) else {
            return maybe("the relative path of the rule has no base directory");
        };
        let opened = found.opened.get_or_init(|| {
            let moves = script.moves();
            let opened = script.redirects.iter().map(|redirect| {
                let target = named_file(&redirect.target, call.home)
                    .filter(|file| moves == 0 || file.is_absolute())
                    .and_then(|file| paths::target(&file, call.cwd));
                (redirect.access, target.map(|target| self.paths.matching_any(&target)))
            });
            opened.collect()
        });
        let mut best = NO;
        for (access, rules) in opened.iter().filter(|(access, _)| restricts(of, family(*access))) {
            match rules {
                Some(rules) if rules.contains(&number) => return YES,
                Some(_) => {}
                None if *access == Access::Write || of == Family::Read => {
                    best = maybe("it opens a file that cannot be determined")
                }
                None => {}
            }
        }
        let named = found.named.get_or_init(|| self.paths_in_command(command, call));
        if best.certainty == Certainty::No && named.contains(&number) {
            maybe("it names a file")
        } else {
            best
        }
    }

    /// The path rules that match a file named by a word of a command line, by its lexical path.
    fn paths_in_command(&self, command: &Command, call: &Call<'_>) -> Vec<usize> {
        let Ok(script) = command.script() else { return Vec::new() };
        let mut found = Vec::new();
        let names = self.paths.name_filter(call.cwd);
        let mut add_matches = |file: &Path| {
            if names.may_match(file) {
                let file = paths::lexical(&call.cwd.join(file));
                found.extend(self.paths.matching(&file));
                // A folder represents its contents.
                found.extend(self.paths.matching(&file.join("\u{1}")));
            }
        };
        let mut add_matches_of_word = |word: &str| {
            add_matches(Path::new(word));
            if let Some((_, value)) = word.split_once(['=', ':', '@']) {
                add_matches(Path::new(value));
            }
        };
        for Line { known, words } in &command.reach(script).lines {
            if !known.is_open() {
                known.words().skip(1).for_each(&mut add_matches_of_word);
            }
            for word in words.iter().skip(1) {
                match (word.literal(), named_file(word, call.home)) {
                    (Some(word), _) => add_matches_of_word(word),
                    (None, Some(file)) => add_matches_of_word(&file.to_string_lossy()),
                    // For a pattern, the folder is known.
                    (None, None) => {
                        if let Some((folder, _)) = word.known_start().rsplit_once('/') {
                            add_matches_of_word(if folder.is_empty() { "/" } else { folder });
                        }
                    }
                }
            }
        }
        found
    }
}

/// A rule that denies reading also denies editing.
fn restricts(rule: Family, access: Family) -> bool {
    rule == access || rule == Family::Read
}

/// A search that shows file contents shows those of every matching file below.
fn match_search(at: &subject::PathTarget, pattern: &PathPattern) -> RuleMatch {
    let Extent::Below(Shows::Contents) = at.extent else { return NO };
    let folder = pattern.literal_folder();
    let overlaps = |real: &Path| real.starts_with(&folder) || folder.starts_with(real);
    if overlaps(&at.target.lexical) || at.target.real.iter().any(|real| overlaps(real)) {
        return maybe("it searches a directory that may contain such files");
    }
    NO
}

fn match_redirects(rule: &Rule, command: &Command) -> RuleMatch {
    let of = match (rule.tool.as_str(), tools::specifier_kind(&rule.tool)) {
        ("Edit" | "Write" | "Read", SpecifierKind::Path(family)) => family,
        _ => return NO,
    };
    let Ok(script) = command.script() else { return maybe("the command cannot be read") };
    let opens = |word: &Word| word.literal().is_none_or(|file| !file.starts_with("/dev/"));
    if script.redirects.iter().any(|redirect| family(redirect.access) == of && opens(&redirect.target)) {
        YES
    } else {
        NO
    }
}

fn match_command(pattern: &CommandPattern, command: &Command) -> RuleMatch {
    let Ok(script) = command.script() else { return maybe("the command cannot be read") };
    let reach = command.reach(script);
    let lines = reach.lines.iter().map(|line| pattern.may_match(&line.known, &line.words));
    let best = lines.max().unwrap_or(Certainty::No);
    let suspected = || reach.suspects.iter().any(|suspect| pattern.stands_in(suspect));
    match (best, reach.why_incomplete()) {
        (Certainty::No, _) if suspected() => {
            maybe("a command that may run its arguments contains such a command")
        }
        (Certainty::No, Some(why)) => maybe(why),
        (Certainty::Maybe, why) => maybe(why.unwrap_or("its words are not known before it runs")),
        (certainty, _) => RuleMatch { certainty, why: None },
    }
}
