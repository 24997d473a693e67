//! Evaluates allow rules. They apply only if they certainly match the whole call: every command in a line and every
//! file it opens, whatever its unknown parts turn out to be.

use std::cell::OnceCell;
use std::path::Path;

use super::{Authority, Policy, RulePosition, Verdict, VerdictEffect};
use crate::bash::{self, Access, Alone, Inner, Part, Piece, Redirect, Script, Word};
use crate::call::Call;
use crate::command_pattern::{CommandPattern, KnownLine};
use crate::paths;
use crate::rule::Specifier;
use crate::subject::{Extent, Subject, domain_matches, family, named_file};
use crate::tools::{self, Family};
use crate::wildcard::name_matches;

/// The maximum number of nested wrappers to remove.
const MAX_WRAPPERS: usize = 6;

impl Policy {
    /// The verdict of the allow rules, or that no rule matches.
    pub(super) fn allows(&self, call: &Call<'_>, subject: &Subject<'_>) -> Verdict<'_> {
        let mut search = Search::new(self, call);
        let missing = match search.subject(subject) {
            _ if self.allow.is_empty() => "no rule matches it".to_owned(),
            // A line without a command, such as `x=1`, needs no rule, but then no rule matches it either.
            Ok(()) if search.by.is_empty() => "no rule matches it".to_owned(),
            Err(missing) => missing,
            Ok(()) => {
                let by: Vec<_> = search.by.iter().map(|position| self.decider(*position)).collect();
                let names: Vec<_> =
                    by.iter().map(|by| format!("`{}` of {}", by.entry.rule(), by.level_name)).collect();
                let why = format!("it is allowed by {}", names.join(", "));
                return Verdict { effect: VerdictEffect::Allow, by, why };
            }
        };
        let why = format!("{missing}; Claude Code's permission rules decide");
        Verdict { effect: VerdictEffect::Unmentioned, by: Vec::new(), why }
    }
}

/// One search for the rules that allow a call.
pub(super) struct Search<'p, 'c> {
    policy: &'p Policy,
    pub(super) call: &'c Call<'c>,
    /// Which levels may allow this call; evaluated once each.
    authority: Vec<OnceCell<bool>>,
    by: Vec<RulePosition>,
}

/// The call is allowed, or this is missing.
type Allowed = Result<(), String>;

impl<'p, 'c> Search<'p, 'c> {
    fn new(policy: &'p Policy, call: &'c Call<'c>) -> Self {
        Self { policy, call, authority: vec![OnceCell::new(); policy.levels.len()], by: Vec::new() }
    }

    /// Takes the first matching rule that is in force and was given with authority.
    fn take(&mut self, mut allows: impl FnMut(&Policy, RulePosition, &Specifier, &str) -> bool) -> bool {
        let found = self.policy.in_force(&self.policy.allow, self.call).find(|position| {
            let rule = self.policy.entry(*position).rule();
            allows(self.policy, *position, &rule.specifier, &rule.tool) && self.may_allow(position.level)
        });
        if let Some(position) = found
            && !self.by.contains(&position)
        {
            self.by.push(position);
        }
        found.is_some()
    }

    fn may_allow(&self, level: usize) -> bool {
        match &self.policy.levels[level].authority {
            Authority::Root => true,
            Authority::Narrows => false,
            Authority::Within(scopes) => *self.authority[level].get_or_init(|| scopes.may_allow(self.call)),
        }
    }

    fn subject(&mut self, subject: &Subject<'_>) -> Allowed {
        let tool = self.call.tool_name;
        if self.take(|_, _, specifier, named| *specifier == Specifier::Whole && tools::covers(named, tool)) {
            return Ok(());
        }
        let allowed = match subject {
            Subject::Command(command) => {
                let script = command
                    .script()
                    .map_err(|bash::Unreadable(why)| format!("the command cannot be read: {why}"))?;
                return self.script(script, 0);
            }
            Subject::Path(_, None) => return Err("its path cannot be determined".to_owned()),
            Subject::Path(family, Some(path)) => match path.extent {
                Extent::Itself => path.target.real.iter().all(|real| self.path(*family, real)),
                // The rule must match everything that may lie below, at any depth.
                Extent::Below(_) => path.target.real.iter().all(|real| {
                    let below = ["\u{1}plexus\u{1}", "\u{1}plexus\u{1}/\u{1}plexus\u{1}/\u{1}plexus\u{1}"];
                    below.iter().all(|child| self.path(*family, &real.join(child)))
                }),
            },
            Subject::Host(host) => {
                let host = host.as_deref().ok_or("its host cannot be determined")?;
                self.take(|_, _, specifier, _| matches!(specifier, Specifier::Domain(domain) if domain_matches(domain, host)))
            }
            Subject::Name(name) => {
                let name = name.ok_or("its input has no name")?;
                self.take(|_, _, specifier, named| {
                    matches!(specifier, Specifier::Name(pattern) if tools::same(named, tool) && name_matches(pattern, name))
                })
            }
            // The findings in an input are guesses, and no rule describes what a program does.
            Subject::Program(_) | Subject::Other(_) | Subject::Hub => false,
        };
        if allowed { Ok(()) } else { Err("no rule allows it".to_owned()) }
    }

    /// Whether a rule allows this access to a path, by its resolved target.
    fn path(&mut self, family: Family, real: &Path) -> bool {
        let matching = self.policy.paths.matching(real);
        self.take(|_, position, specifier, _| {
            matches!(specifier, Specifier::Path(of, _) if *of == family)
                && position.path.is_some_and(|number| matching.contains(&number))
        })
    }

    fn script(&mut self, script: &Script, wrappers: usize) -> Allowed {
        if let Some(doubt) = script.doubts.first() {
            return Err(doubt.why().to_owned());
        }
        if self.enters_repository(script) {
            return Err("it changes to a directory that is, or may be, a repository of its own".to_owned());
        }
        let moves = script.moves();
        for part in &script.parts {
            self.part(part, moves, wrappers)?;
        }
        for redirect in &script.redirects {
            self.redirect(redirect, moves)?;
        }
        Ok(())
    }

    fn part(&mut self, part: &Part, moves: usize, wrappers: usize) -> Allowed {
        let alone = if part.words.is_empty() { Alone::Yes } else { Alone::No };
        let unsafe_assignment =
            part.assignments.iter().find(|assignment| !bash::is_harmless(assignment, alone));
        let Some(name) = part.words.first() else {
            return unsafe_assignment
                .map_or(Ok(()), |assignment| Err(format!("it sets `{}`", assignment.name)));
        };
        if name.literal().is_none_or(str::is_empty) {
            return Err("a command's name is not known before it runs".to_owned());
        }
        let mut named = bash::must_be_named(part);
        if name.literal() == Some("cd") && (moves > 1 || !self.stays_inside(part)) {
            named.push(usize::MAX);
        }
        named.extend(self.local_repositories(part));
        // A rule must also name a variable that may matter.
        let before = if unsafe_assignment.is_some() { part.assignments.len() } else { 0 };
        let line =
            if before == 0 { KnownLine::new(&part.words) } else { KnownLine::new(&with_assignments(part)) };
        // A rule covers the words it names. Of the rest it covers only those known to be harmless.
        let vouched = |pattern: &CommandPattern| match pattern.named_words() {
            usize::MAX => true,
            words => {
                (before == 0 || words > before) && named.iter().all(|at| at.saturating_add(before) < words)
            }
        };
        let vouches = |specifier: &Specifier| match specifier {
            Specifier::Command(pattern) => {
                vouched(pattern)
                    && pattern.covers(&line)
                    && !part.words[1..].iter().any(|word| pattern.leaves_open(word))
            }
            _ => false,
        };
        let tool = self.call.tool_name;
        if self.take(|_, _, specifier, named| tools::same(named, tool) && vouches(specifier)) {
            return Ok(());
        }
        match bash::unwrap(part) {
            Some(_) if wrappers >= MAX_WRAPPERS => Err("it has too many nested wrappers".to_owned()),
            Some(Inner::Part(inner)) => self.part(&inner, moves, wrappers + 1),
            Some(Inner::Script(script)) if moves == 0 => self.script(&script, wrappers + 1),
            _ => Err(self.missing(part, &line, &named, before)),
        }
    }

    /// Why no rule allows a command: often a rule would match but for one word.
    fn missing(&self, part: &Part, line: &KnownLine, named: &[usize], before: usize) -> String {
        let nearest = self
            .policy
            .in_force(&self.policy.allow, self.call)
            .filter(|position| self.may_allow(position.level))
            .filter_map(|position| match &self.policy.entry(position).rule().specifier {
                Specifier::Command(pattern) if pattern.covers(line) => {
                    Some((pattern.named_words(), position))
                }
                _ => None,
            })
            .max_by_key(|(words, _)| *words);
        let Some((words, position)) = nearest else {
            return format!("no rule allows `{}`", shown(&part.words));
        };
        let rule = self.policy.entry(position).rule();
        let first = match named.iter().max() {
            Some(&usize::MAX) => None,
            _ => named.iter().filter(|at| at.saturating_add(before) >= words).min(),
        };
        match first.and_then(|at| part.words.get(*at)) {
            Some(word) => format!(
                "`{}` in `{}` may do harm, so `{rule}` does not match it: use a rule that contains this \
                 argument",
                shown(std::slice::from_ref(word)),
                shown(&part.words),
            ),
            None => format!(
                "`{}` can do more than its words show, so `{rule}` does not match it: use a rule without a \
                 wildcard",
                shown(&part.words),
            ),
        }
    }

    /// Whether `cd` leads to a directory inside the working directory.
    fn stays_inside(&self, part: &Part) -> bool {
        let [_, to] = part.words.as_slice() else { return false };
        let inside = |to: &str| !to.starts_with(['-', '+']) && self.is_inside(Path::new(to));
        to.literal().is_some_and(inside)
    }

    fn is_inside(&self, path: &Path) -> bool {
        let (Some(target), Ok(cwd)) = (paths::target(path, self.call.cwd), paths::resolve(self.call.cwd))
        else {
            return false;
        };
        target.real.iter().all(|real| real.starts_with(&cwd))
    }

    fn redirect(&mut self, redirect: &Redirect, moves: usize) -> Allowed {
        if matches!(redirect.target.literal(), Some("/dev/null" | "/dev/stdout" | "/dev/stderr")) {
            return Ok(());
        }
        let file =
            named_file(&redirect.target, self.call.home).filter(|file| moves == 0 || file.is_absolute());
        let Some(file) = file else { return Err("it opens a file that cannot be determined".to_owned()) };
        if redirect.access == Access::Read && self.is_inside(&file) {
            return Ok(());
        }
        let family = family(redirect.access);
        let whole = if family == Family::Edit { "Edit" } else { "Read" };
        if self.take(|_, _, specifier, named| *specifier == Specifier::Whole && tools::covers(named, whole)) {
            return Ok(());
        }
        let allowed = paths::target(&file, self.call.cwd)
            .is_some_and(|target| target.real.iter().all(|real| self.path(family, real)));
        if allowed { Ok(()) } else { Err(format!("no rule allows it to open `{}`", file.display())) }
    }
}

/// A command's words, preceded by its assignments as written.
fn with_assignments(part: &Part) -> Vec<Word> {
    let assignments = part.assignments.iter().map(|assignment| {
        let mut word = Word::text(&format!("{}=", assignment.name));
        match assignment.value.literal() {
            Some(value) => word.push_str(value),
            None => word.push(Piece::Any, assignment.value.expansion()),
        }
        word
    });
    assignments.chain(part.words.iter().cloned()).collect()
}

/// A command for use in a message: its known part.
fn shown(words: &[Word]) -> String {
    let words: Vec<&str> = words.iter().map(|word| word.literal().unwrap_or("…")).collect();
    words.join(" ").chars().take(80).collect()
}
