//! The command that starts Claude Code: a program and its first arguments, such as `["npx", "-y", "PACKAGE"]`. This module owns
//! how the command is written in settings and which commands are valid. It neither looks up nor starts the program.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};

use serde::de::{Deserializer, Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};

/// Why a command cannot start Claude Code.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadLauncher {
    /// The array has no element.
    #[error("the array is empty; its first element is the program")]
    Empty,
    /// A word of the command is empty.
    #[error("it contains an empty string")]
    EmptyWord,
    /// The system cannot pass a NUL byte to a program.
    #[error("it contains a NUL byte")]
    Nul,
    /// Text that starts with `[` is not an array of strings.
    #[error("it is not a JSON array of strings, such as [\"npx\",\"-y\",\"PACKAGE\"] ({0})")]
    NotAnArray(String),
}

/// The command that starts Claude Code. No word of it is empty or contains a NUL byte.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Launcher {
    program: PathBuf,
    first_args: Vec<String>,
}

/// `claude`, to look up in the child's `PATH`.
impl Default for Launcher {
    fn default() -> Self {
        Self { program: "claude".into(), first_args: Vec::new() }
    }
}

impl Launcher {
    /// A program without arguments of its own.
    ///
    /// # Errors
    /// If the path is empty or contains a NUL byte.
    pub fn program_only(program: impl Into<PathBuf>) -> Result<Self, BadLauncher> {
        let program = program.into();
        check(program.as_os_str())?;
        Ok(Self { program, first_args: Vec::new() })
    }

    /// A program and its first arguments.
    ///
    /// # Errors
    /// If there is no program, or a word is empty or contains a NUL byte.
    pub fn of_words(words: Vec<String>) -> Result<Self, BadLauncher> {
        words.iter().try_for_each(|word| check(OsStr::new(word)))?;
        let mut words = words.into_iter();
        let program = words.next().ok_or(BadLauncher::Empty)?.into();
        Ok(Self { program, first_args: words.collect() })
    }

    /// Parses the value of a flag or an environment variable. A value that starts with `[` is a JSON array of strings. Any other
    /// value is one program and is never split at spaces.
    ///
    /// # Errors
    /// If the value is no valid command.
    pub fn parse(value: OsString) -> Result<Self, BadLauncher> {
        match value.to_str() {
            Some(text) if text.starts_with('[') => {
                let words = serde_json::from_str(text).map_err(|e| BadLauncher::NotAnArray(e.to_string()))?;
                Self::of_words(words)
            }
            _ => Self::program_only(value),
        }
    }

    /// The text that [`Launcher::parse`] parses to this command. Characters that are not UTF-8 are replaced.
    pub fn to_setting(&self) -> String {
        let program = self.program.to_string_lossy();
        if self.first_args.is_empty() && !program.starts_with('[') {
            return program.into_owned();
        }
        serde_json::json!(self.words()).to_string()
    }

    /// The program: a path, or a name to look up in the child's `PATH`.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// The arguments between the program and the ones of Claude Code.
    pub fn first_args(&self) -> &[String] {
        &self.first_args
    }

    /// All arguments of the program if Claude Code gets `args`.
    pub fn args_before(&self, args: Vec<String>) -> Vec<String> {
        self.first_args.iter().cloned().chain(args).collect()
    }

    /// Whether the program is a path. Otherwise it is a name to look up in `PATH`.
    pub fn is_path(&self) -> bool {
        self.program.components().count() > 1
    }

    /// The same command with a program whose relative path is resolved against the current directory. Names stay as they are.
    ///
    /// # Errors
    /// If the current directory is unknown.
    pub fn located(self) -> std::io::Result<Self> {
        let program = if self.is_path() { std::path::absolute(&self.program)? } else { self.program };
        Ok(Self { program, ..self })
    }

    fn words(&self) -> Vec<String> {
        [self.program.to_string_lossy().into_owned()].into_iter().chain(self.first_args.clone()).collect()
    }
}

fn check(word: &OsStr) -> Result<(), BadLauncher> {
    match word.as_encoded_bytes() {
        [] => Err(BadLauncher::EmptyWord),
        bytes if bytes.contains(&0) => Err(BadLauncher::Nul),
        _ => Ok(()),
    }
}

/// The words, separated by spaces, for messages.
impl fmt::Display for Launcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words().join(" "))
    }
}

/// A string for a program alone, otherwise an array.
impl Serialize for Launcher {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.first_args.is_empty() {
            serializer.serialize_str(&self.program.to_string_lossy())
        } else {
            self.words().serialize(serializer)
        }
    }
}

impl<'de> Deserialize<'de> for Launcher {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct StringOrArray;

        impl<'de> Visitor<'de> for StringOrArray {
            type Value = Launcher;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a program, or an array of a program and its first arguments")
            }

            fn visit_str<E: serde::de::Error>(self, program: &str) -> Result<Launcher, E> {
                Launcher::program_only(program).map_err(E::custom)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<Launcher, A::Error> {
                let mut words = Vec::new();
                while let Some(word) = array.next_element()? {
                    words.push(word);
                }
                Launcher::of_words(words).map_err(A::Error::custom)
            }
        }

        deserializer.deserialize_any(StringOrArray)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Launcher {
        Launcher::of_words(words.iter().map(|&word| word.to_owned()).collect()).unwrap()
    }

    #[test]
    fn a_value_is_an_array_or_one_program() {
        let npx = words(&["npx", "-y", "@anthropic-ai/claude-code@2.1.325"]);
        let text = r#"["npx","-y","@anthropic-ai/claude-code@2.1.325"]"#;
        assert_eq!(Launcher::parse(text.into()), Ok(npx.clone()));
        assert_eq!(npx.to_setting(), text);
        assert_eq!(npx.to_string(), "npx -y @anthropic-ai/claude-code@2.1.325");

        let spaces = Launcher::parse("/opt/my claude".into()).unwrap();
        assert_eq!(spaces.program(), Path::new("/opt/my claude"), "a program is never split at spaces");
        assert_eq!(spaces.first_args(), [""; 0]);
        assert_eq!(spaces.to_setting(), "/opt/my claude");
        let bracket = words(&["[claude]"]);
        assert_eq!(Launcher::parse(bracket.to_setting().into()), Ok(bracket));
    }

    #[test]
    fn a_command_that_cannot_be_started_is_rejected() {
        let parse = |text: &str| Launcher::parse(text.into()).unwrap_err();
        assert_eq!(parse("[]"), BadLauncher::Empty);
        assert_eq!(
            [parse(""), parse("[\"\"]"), parse("[\"a\",\"\"]")],
            [const { BadLauncher::EmptyWord }; 3]
        );
        assert_eq!([parse("a\0b"), parse("[\"a\",\"\\u0000\"]")], [const { BadLauncher::Nul }; 2]);
        for bad in ["[npx, -y]", "[\"npx\", 1]", "[\"npx\"", "[\"npx\"] -y"] {
            assert!(matches!(parse(bad), BadLauncher::NotAnArray(_)), "{bad}");
        }
    }

    #[test]
    fn settings_hold_a_string_or_an_array() {
        let read = |json: &str| serde_json::from_str::<Launcher>(json).map_err(|error| error.to_string());
        assert_eq!(read("\"/opt/claude\""), Ok(words(&["/opt/claude"])));
        assert_eq!(read("[\"npx\",\"-y\"]"), Ok(words(&["npx", "-y"])));
        for (bad, why) in [
            ("[]", "the array is empty"),
            ("[\"npx\",\"\"]", "an empty string"),
            ("\"a\\u0000b\"", "a NUL byte"),
            ("7", "a program, or an array of a program and its first arguments"),
        ] {
            assert!(read(bad).unwrap_err().contains(why), "{bad}");
        }
        for launcher in [words(&["/opt/claude"]), words(&["npx", "-y"])] {
            let json = serde_json::to_string(&launcher).unwrap();
            assert_eq!(read(&json), Ok(launcher), "{json}");
        }
    }

    #[test]
    fn a_program_named_by_path_becomes_absolute() {
        let located = words(&["bin/claude", "bin/x"]).located().unwrap();
        assert!(located.program().is_absolute());
        assert_eq!(located.first_args(), ["bin/x"], "arguments are passed as they are");
        assert_eq!(words(&["claude"]).located().unwrap().program(), Path::new("claude"));
    }

    #[test]
    fn the_arguments_of_claude_code_follow_the_ones_of_the_launcher() {
        assert_eq!(words(&["npx", "-y"]).args_before(vec!["-p".to_owned()]), ["-y", "-p"]);
    }
}
