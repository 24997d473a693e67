//! Evaluates deny and ask rules. They apply if they may match the call: a certain match denies or asks, a possible
//! match asks in either case.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};

use super::{Place, Policy, Verdict, VerdictEffect};
use crate::bash::{Access, Line, Word};
use crate::call::Call;
use crate::input;
use crate::paths::{self, PathPattern};
use crate::rule::{Rule, Specifier};
use crate::subject::{self, Command, Extent, Subject, domain_matches, family, named_file};
use crate::tools::{self, Family, Shows, Takes};
use crate::wildcard::{Certainty, CommandPattern, name_matches};

/// How certainly a rule matches a call, and why it is not certain.
type Meant = (Certainty, Option<&'static str>);

/// The maximum length of a file path, in bytes.
const LONGEST_PATH: usize = 4096;

const NO: Meant = (Certainty::No, None);
const YES: Meant = (Certainty::Yes, None);

fn maybe(why: &'static str) -> Meant {
    (Certainty::Maybe, Some(why))
}

/// The path rules that match something in a call, computed when the first rule needs them.
#[derive(Default)]
struct Found {
    /// The call's own path.
    place: OnceCell<Vec<usize>>,
    /// The matches for files opened by redirections; `None` for an unknown file.
    opened: OnceCell<Vec<(Access, Option<Vec<usize>>)>>,
    /// The matches for files named by the words of a command line or the texts of an input.
    named: OnceCell<Vec<usize>>,
    /// The same for each command line in an input.
    lines: Vec<Found>,
}

impl Found {
    fn of(subject: &Subject<'_>) -> Self {
        let lines = if let Subject::Other(contents) = subject { contents.lines.len() } else { 0 };
        Self { lines: (0..lines).map(|_| Self::default()).collect(), ..Self::default() }
    }
}

impl Policy {
    /// The verdict of the deny and ask rules.
    pub(super) fn restricts(&self, call: &Call<'_>, subject: &Subject<'_>) -> Option<Verdict<'_>> {
        let found = Found::of(subject);
        let mut asked = None;
        for place in self.in_force(&self.deny, call) {
            match self.meant(place, call, subject, &found) {
                (Certainty::Yes, _) => {
                    return Some(self.verdict(VerdictEffect::Deny, place, "it matches the deny rule"));
                }
                (Certainty::Maybe, why) => asked = asked.or(Some((place, why))),
                (Certainty::No, _) => {}
            }
        }
        if let Some((place, why)) = asked {
            let why =
                format!("{}, so it may match the deny rule", why.unwrap_or("the call cannot be evaluated"));
            return Some(self.verdict(VerdictEffect::Ask, place, &why));
        }
        let ask = self
            .in_force(&self.ask, call)
            .find(|place| self.meant(*place, call, subject, &found).0 > Certainty::No)?;
        Some(self.verdict(VerdictEffect::Ask, ask, "it matches the ask rule"))
    }

    fn verdict(&self, effect: VerdictEffect, place: Place, why: &str) -> Verdict<'_> {
        let decider = self.decider(place);
        let why = format!("{why} `{}` of {}", decider.entry.rule(), decider.level_name);
        Verdict { effect, by: vec![decider], why }
    }

    fn meant(&self, place: Place, call: &Call<'_>, subject: &Subject<'_>, found: &Found) -> Meant {
        let rule = self.entry(place).rule();
        match (&rule.specifier, subject) {
            (Specifier::Whole, _) if tools::restricts(&rule.tool, call.tool_name) => YES,
            (_, Subject::Command(command)) => self.line_meant(place, call, command, found),
            (_, Subject::Program(program)) => self.program_meant(place, call, program, found),
            (_, Subject::Other(contents)) => self.contents_meant(place, call, contents, found),
            (Specifier::Path(of, pattern), Subject::Place(family, at)) if restricts(*of, *family) => {
                let Some(at) = at else { return maybe("its path cannot be determined") };
                let Some(number) = place.path.filter(|_| pattern.is_absolute()) else {
                    return maybe("the relative path of the rule has no base directory");
                };
                if found.place.get_or_init(|| self.paths.matching_any(&at.target)).contains(&number) {
                    return YES;
                }
                search_meant(at, pattern)
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
    fn line_meant(&self, place: Place, call: &Call<'_>, command: &Command, found: &Found) -> Meant {
        let rule = self.entry(place).rule();
        match &rule.specifier {
            // `Edit` and `Read` without a path also apply to redirections.
            Specifier::Whole => whole_family(rule, command),
            Specifier::Command(pattern) if tools::command_restricts(&rule.tool, call.tool_name) => {
                command_meant(pattern, command)
            }
            Specifier::Path(of, pattern) => self.opened_meant(place, *of, pattern, call, command, found),
            Specifier::Command(_) | Specifier::Domain(_) | Specifier::Name(_) => NO,
        }
    }

    /// Whether a rule matches a program in another language. The program may run any command and open any file.
    fn program_meant(&self, place: Place, call: &Call<'_>, program: &Command, found: &Found) -> Meant {
        let rule = self.entry(place).rule();
        let concerns = match &rule.specifier {
            Specifier::Whole => matches!(rule.tool.as_str(), "Edit" | "Read"),
            Specifier::Command(_) => tools::command_restricts(&rule.tool, call.tool_name),
            Specifier::Path(..) => true,
            Specifier::Domain(_) | Specifier::Name(_) => false,
        };
        match self.line_meant(place, call, program, found) {
            (Certainty::No, _) if concerns => maybe("it runs code that is not a command line"),
            meant => meant,
        }
    }

    /// Whether a rule matches something in the input of a tool without rules of its own. A command line in it is
    /// treated like a Bash command. A file or host name in it only asks, because it is unknown what the tool does with
    /// it.
    fn contents_meant(
        &self,
        place: Place,
        call: &Call<'_>,
        contents: &input::Contents<'_>,
        found: &Found,
    ) -> Meant {
        let rule = self.entry(place).rule();
        if rule.tool == "Bash" && rule.specifier == Specifier::Whole && !contents.lines.is_empty() {
            return YES;
        }
        let lines = contents.lines.iter().zip(&found.lines);
        let meant = lines.map(|(line, found)| self.line_meant(place, call, line, found));
        let meant = meant.max_by_key(|(certainty, _)| *certainty).unwrap_or(NO);
        if meant.0 > Certainty::No {
            return meant;
        }
        match &rule.specifier {
            Specifier::Whole if !matches!(rule.tool.as_str(), "Bash" | "Edit" | "Read") => NO,
            _ if contents.cut => maybe("its input has too many strings to check"),
            Specifier::Path(_, pattern) if !pattern.is_absolute() => {
                maybe("the relative path of the rule has no base directory")
            }
            Specifier::Path(..) => {
                let named = found.named.get_or_init(|| self.named_in(contents, call));
                let names = place.path.is_some_and(|number| named.contains(&number));
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
    fn named_in(&self, contents: &input::Contents<'_>, call: &Call<'_>) -> Vec<usize> {
        let files = contents.texts.iter().filter_map(|text| {
            let path = text.strip_prefix("file://").unwrap_or(text);
            let path = match path.strip_prefix("~/") {
                Some(below) => call.home?.join(below),
                None => PathBuf::from(path),
            };
            let nameable = !path.as_os_str().is_empty() && path.as_os_str().len() <= LONGEST_PATH;
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
    fn opened_meant(
        &self,
        place: Place,
        of: Family,
        pattern: &PathPattern,
        call: &Call<'_>,
        command: &Command,
        found: &Found,
    ) -> Meant {
        let script = match command.script() {
            Ok(script) => script,
            Err(_) => return maybe("the command cannot be read"),
        };
        let Some(number) = place.path.filter(|_| pattern.is_absolute()) else {
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
        let mut meant = NO;
        for (access, rules) in opened.iter().filter(|(access, _)| restricts(of, family(*access))) {
            match rules {
                Some(rules) if rules.contains(&number) => return YES,
                Some(_) => {}
                None if *access == Access::Write || of == Family::Read => {
                    meant = maybe("it opens a file that cannot be determined")
                }
                None => {}
            }
        }
        let named = found.named.get_or_init(|| self.named(command, call));
        if meant.0 == Certainty::No && named.contains(&number) { maybe("it names a file") } else { meant }
    }

    /// The path rules that match a file named by a word of a command line, by its lexical path.
    fn named(&self, command: &Command, call: &Call<'_>) -> Vec<usize> {
        let Ok(script) = command.script() else { return Vec::new() };
        let mut found = Vec::new();
        let telling = self.paths.telling(call.cwd);
        let mut look = |file: &Path| {
            if telling.may_mean(file) {
                let file = paths::lexical(&call.cwd.join(file));
                found.extend(self.paths.matching(&file));
                // A folder represents its contents.
                found.extend(self.paths.matching(&file.join("\u{1}")));
            }
        };
        let mut look_at_word = |word: &str| {
            look(Path::new(word));
            if let Some((_, value)) = word.split_once(['=', ':', '@']) {
                look(Path::new(value));
            }
        };
        for Line { known, words } in &command.reach(script).lines {
            if !known.is_open() {
                known.words().skip(1).for_each(&mut look_at_word);
            }
            for word in words.iter().skip(1) {
                match (word.literal(), named_file(word, call.home)) {
                    (Some(word), _) => look_at_word(word),
                    (None, Some(file)) => look_at_word(&file.to_string_lossy()),
                    // For a pattern, the folder is known.
                    (None, None) => {
                        if let Some((folder, _)) = word.known_start().rsplit_once('/') {
                            look_at_word(if folder.is_empty() { "/" } else { folder });
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
fn search_meant(at: &subject::Place, pattern: &PathPattern) -> Meant {
    let Extent::Below(Shows::Contents) = at.extent else { return NO };
    let folder = pattern.literal_folder();
    let overlaps = |real: &Path| real.starts_with(&folder) || folder.starts_with(real);
    if overlaps(&at.target.lexical) || at.target.real.iter().any(|real| overlaps(real)) {
        return maybe("it searches a directory that may contain such files");
    }
    NO
}

fn whole_family(rule: &Rule, command: &Command) -> Meant {
    let of = match (rule.tool.as_str(), tools::takes(&rule.tool)) {
        ("Edit" | "Write" | "Read", Takes::Path(family)) => family,
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

fn command_meant(pattern: &CommandPattern, command: &Command) -> Meant {
    let Ok(script) = command.script() else { return maybe("the command cannot be read") };
    let reach = command.reach(script);
    let lines = reach.lines.iter().map(|line| pattern.may_match(&line.known, &line.words));
    let best = lines.max().unwrap_or(Certainty::No);
    let suspected = || reach.suspects.iter().any(|suspect| pattern.stands_in(suspect));
    match (best, reach.unseen) {
        (Certainty::No, _) if suspected() => {
            maybe("a command that may run its arguments contains such a command")
        }
        (Certainty::No, Some(why)) => maybe(why),
        (Certainty::Maybe, why) => maybe(why.unwrap_or("its words are not known before it runs")),
        (best, _) => (best, None),
    }
}
