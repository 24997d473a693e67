//! Checks the authors, branch names and commit messages that callers give, before they reach git.

use git2::{Reference, Repository, Signature};
use plexus_protocol::claudecode::Person;
use plexus_protocol::worktree::Worktree;

use crate::{Result, WorktreeError};

/// The maximum length of a name or an address, in bytes.
const MAX_BYTES: usize = 200;
/// The maximum length of a commit message, in bytes.
const MAX_MESSAGE_BYTES: usize = 64 * 1024;

/// The author of a commit; `None` if a new commit could not have the same author.
pub(crate) fn person_of(signature: &Signature<'_>) -> Option<Person> {
    let (name, email) = (signature.name().ok()?, signature.email().ok()?);
    let person = Person { name: name.to_owned(), email: email.to_owned() };
    check_person(&person).ok().map(|()| person)
}

/// Checks a name and an address.
///
/// # Errors
/// When one is empty, too long, or contains a character that would change the structure of a commit.
pub fn check_person(person: &Person) -> std::result::Result<(), String> {
    for (what, text) in [("name", &person.name), ("email", &person.email)] {
        let bad = |c: char| c.is_control() || matches!(c, '<' | '>');
        if text.trim().is_empty() || text.len() > MAX_BYTES || text.contains(bad) {
            return Err(format!(
                "`{what}` must have 1 to {MAX_BYTES} bytes, without `<`, `>` and control characters"
            ));
        }
    }
    Ok(())
}

/// The given author, or that of the base commit.
pub(crate) fn author(repo: &Repository, worktree: &Worktree, given: Option<&Person>) -> Result<Person> {
    if let Some(person) = given {
        return Ok(person.clone());
    }
    person_of(&repo.find_commit(worktree.base.parse()?)?.author()).ok_or_else(|| {
        let why = "The base commit names no usable author. Pass `author`, or set `[git]` in plexus.toml";
        WorktreeError::Refused(why.to_owned())
    })
}

/// A signature of this person with the current time.
pub(crate) fn signature(person: &Person) -> Result<Signature<'static>> {
    check_person(person).map_err(WorktreeError::Refused)?;
    Ok(Signature::now(person.name.trim(), person.email.trim())?)
}

/// Checks a commit message.
///
/// # Errors
/// When it is empty, too long, or contains a zero byte.
pub fn check_message(message: &str) -> std::result::Result<(), String> {
    if message.trim().is_empty() {
        return Err("is empty".to_owned());
    }
    if message.len() > MAX_MESSAGE_BYTES || message.contains('\0') {
        return Err(format!("must have at most {} KiB and no zero byte", MAX_MESSAGE_BYTES / 1024));
    }
    Ok(())
}

/// A message in the form that git stores.
pub(crate) fn stored(message: &str) -> Result<String> {
    check_message(message).map_err(WorktreeError::Refused)?;
    Ok(format!("{}\n", message.trim_end()))
}

/// Checks the name of a branch.
///
/// # Errors
/// When it is not a valid name, or git would interpret it as an option.
pub fn check_branch(branch: &str) -> std::result::Result<(), String> {
    let valid = Reference::is_valid_name(&format!("refs/heads/{branch}"));
    if !valid || branch.starts_with('-') || matches!(branch, "HEAD" | "@") {
        return Err("is not a valid branch name".to_owned());
    }
    Ok(())
}

/// Checks the name of a branch that becomes part of a command for a shell.
///
/// # Errors
/// When it contains characters other than letters, digits and a few symbols that have no meaning in a shell.
pub fn check_plain_branch(branch: &str) -> std::result::Result<(), String> {
    check_branch(branch)?;
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '/' | '-' | '+' | '@');
    if branch.chars().all(plain) {
        return Ok(());
    }
    Err("may only contain ASCII letters, digits and `._/-+@`".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_branch_name_that_leads_elsewhere_is_refused() {
        for bad in [
            "", "-f", "--force", "../../x", "a/../b", "/a", "a/", "a..b", "a.lock", "a b", "a~1", "a^",
            "a:b", "HEAD", "@", "@{u}", "a\nb", ".a", "a//b", "a\\b", "a*",
        ] {
            assert!(check_branch(bad).is_err() && check_plain_branch(bad).is_err(), "{bad:?}");
        }
        for odd in ["a;b", "$(x)", "`x`", "'", "a\u{202e}b", "a#b", "a&b", "a|b", "a>b"] {
            assert!(check_plain_branch(odd).is_err(), "{odd:?}");
        }
        for good in ["main", "feature/x-1", "plexus/fix-1a2b", "v1.2", "a@b"] {
            assert!(check_branch(good).is_ok() && check_plain_branch(good).is_ok(), "{good:?}");
        }
    }

    #[test]
    fn a_person_cannot_change_the_structure_of_a_commit() {
        let person = |name: &str, email: &str| Person { name: name.to_owned(), email: email.to_owned() };
        assert!(check_person(&person("Ada", "ada@example.org")).is_ok());
        for (name, email) in
            [("", "a@b"), ("A", " "), ("A\nparent x", "a@b"), ("A <x>", "a@b"), ("A", "a@b>\n"), ("A", "\0")]
        {
            assert!(check_person(&person(name, email)).is_err(), "{name:?} {email:?}");
        }
    }

    #[test]
    fn a_message_has_content() {
        assert!(
            check_message("Fix it").is_ok() && check_message(" \n").is_err() && check_message("a\0").is_err()
        );
        assert!(check_message(&"x".repeat(MAX_MESSAGE_BYTES + 1)).is_err());
    }
}
