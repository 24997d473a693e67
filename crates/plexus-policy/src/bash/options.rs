//! Option tables of well-known commands: which options are harmless, which take a value, and what the operands are. The
//! tables are text (`tables/*.txt`, format in `tables/README.md`), parsed once; `arguments` compares a command's words
//! with them.

mod read;

use std::collections::HashMap;
use std::sync::LazyLock;

use super::repository::RemoteAt;
use super::values::ValueCheck;

/// Every command with a table.
static BOOK: LazyLock<Book> = LazyLock::new(|| {
    let mut book = Book::default();
    for text in TEXTS {
        // A faulty line adds nothing, so that its options need approval; a test finds it.
        read::read(&mut book, text);
    }
    book
});

/// The tables, one file per family of commands.
const TEXTS: [&str; 14] = [
    include_str!("tables/coreutils.txt"),
    include_str!("tables/search.txt"),
    include_str!("tables/text.txt"),
    include_str!("tables/archive.txt"),
    include_str!("tables/git-shared.txt"),
    include_str!("tables/git.txt"),
    include_str!("tables/vcs.txt"),
    include_str!("tables/rust-go.txt"),
    include_str!("tables/javascript.txt"),
    include_str!("tables/python.txt"),
    include_str!("tables/native-jvm.txt"),
    include_str!("tables/containers.txt"),
    include_str!("tables/network.txt"),
    include_str!("tables/system.txt"),
];

/// The table of a command, by its base name.
pub(super) fn table(command: &str) -> Option<&'static Table> {
    BOOK.by_name.get(command).and_then(|at| BOOK.tables.get(*at))
}

/// All tables.
#[derive(Debug, Default)]
struct Book {
    tables: Vec<Table>,
    by_name: HashMap<&'static str, usize>,
}

/// The options and operands of a command or a subcommand.
#[derive(Debug, Clone, Default)]
pub(super) struct Table {
    /// Keyed by the name as written, including dashes.
    options: HashMap<&'static str, OptionSpec>,
    subcommands: HashMap<&'static str, usize>,
    pub(super) style: Style,
    pub(super) attached: Attached,
    pub(super) access: OperandAccess,
    pub(super) order: Order,
    pub(super) operands: Operands,
    pub(super) after_dashes: AfterDashes,
    pub(super) trust: Trust,
    pub(super) input: Input,
    /// Options that keep the command from reading code from its input and from writing files by itself.
    pub(super) alone: Vec<&'static str>,
}

/// The option syntax.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Style {
    /// `-abc`, `-n5`, `--long=value`.
    #[default]
    Gnu,
    /// The same, but the first word may be a cluster without a dash, as in tar.
    OldCluster,
    /// `-long value`, `-long=value`; two dashes have the same meaning; no clusters.
    SingleDash,
    /// Only the exact words in the table, optionally with `=value`.
    Exact,
}

/// Whether the rest of a cluster is the value of a short option, as in `-n5`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Attached {
    /// Probably: if the rest could be options that are not harmless, it is not covered.
    #[default]
    Probably,
    /// Certainly: the command parses its options like getopt.
    Getopt,
    /// Never: every letter is an option, and a value is in the next word. A number is harmless as either.
    Never,
}

/// How the command accesses the files that its operands name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum OperandAccess {
    /// It may write them: no operand may certainly lead into a repository's own folder.
    #[default]
    May,
    /// It reads them.
    Reads,
    /// Its purpose is to write them: no operand may lead there, whatever a variable in it contains.
    Writes,
}

/// Whether options may follow operands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Order {
    #[default]
    Mixed,
    /// The first operand ends the options.
    OptionsFirst,
}

/// How much of a command line counts as harmless.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Trust {
    /// What the table lists.
    #[default]
    Listed,
    /// Every word: the command only reads and prints.
    Everything,
    /// What the table lists, if a rule names the subcommand.
    NamedWrites,
    /// The same, but the subcommand runs other programs.
    NamedRuns,
}

/// How the command uses its standard input, and whether it writes a file by itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Input {
    #[default]
    Data,
    /// Code, or commands.
    Code,
    /// Code, unless an operand names a script.
    CodeWithoutOperand,
    /// Data, but the command writes a file that its operands choose, unless one of the options in `alone` is present.
    WritesOutput,
}

/// What the operands are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Operands {
    /// Data, or files that are the normal subject of the command.
    #[default]
    Any,
    /// This many operands are read; a later operand is written, or has another meaning.
    AtMost(usize),
    /// Operands that start with this character are harmless; any other operand is a hazard.
    Beginning(char),
    /// None starts with one of these characters: `@file`, `+command`.
    NotBeginning(&'static str),
    /// None contains one of these characters: `name=value`.
    Without(&'static str),
    /// The first is a program that a rule must name; the others are its arguments.
    Program,
    /// The first is a script that the command runs; the others are arguments of the script.
    Script,
    /// The first is a sed script, unless an option supplied one.
    Sed,
    /// The first is an awk program.
    Awk,
    /// The first is a database, the others are SQL. Without SQL operands, the SQL is read from elsewhere.
    Sql,
    /// Revisions and files of git: none may name a transport that runs a program.
    Git,
    /// The same, and these are repositories: only a remote's name or a network address is harmless.
    Remote(RemoteAt),
    /// `git config KEY` reads, `git config KEY VALUE` writes.
    GitConfig,
}

/// What follows `--`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum AfterDashes {
    #[default]
    Operands,
    /// The command does not treat `--` as the end of its options.
    NotKnown,
    /// The arguments of the program that the command runs.
    Own,
    /// The arguments of a command with this table.
    Table(&'static str),
}

/// One option.
#[derive(Debug, Clone, Copy)]
pub(super) struct OptionSpec {
    pub(super) value: OptionValue,
    pub(super) effect: Effect,
    pub(super) then: NextWord,
}

/// Whether an option takes a value, and which values are harmless.
#[derive(Debug, Clone, Copy)]
pub(super) enum OptionValue {
    Nothing,
    /// In the same word or in the next.
    Value(ValueCheck),
    /// In the same word or not at all.
    Attached(ValueCheck),
    /// In the next two words.
    Two,
}

/// What an option does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    Harmless,
    /// It writes, reads configuration, or changes the meaning of other words.
    Reaches,
    /// It runs a program.
    Runs,
}

/// What follows an option and its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NextWord {
    /// More words of the command.
    Words,
    /// The arguments of the program that the option runs.
    Own,
    /// The value names a program, and its arguments follow.
    Arguments,
}

impl Table {
    pub(super) fn option(&self, name: &str) -> Option<OptionSpec> {
        self.options.get(name).copied()
    }

    pub(super) fn has_subcommands(&self) -> bool {
        !self.subcommands.is_empty()
    }

    pub(super) fn subcommand(&self, name: &str) -> Option<&'static Self> {
        self.subcommands.get(name).and_then(|at| BOOK.tables.get(*at))
    }

    /// Whether some word could make the command run a program.
    pub(super) fn can_run(&self) -> bool {
        self.has_subcommands()
            || matches!(self.operands, Operands::Sed | Operands::Awk | Operands::Without(_))
            || self.options.values().any(|option| option.effect == Effect::Runs)
    }

    /// Whether a long option may be the abbreviation of one that runs a program.
    pub(super) fn may_abbreviate_a_runner(&self, given: &str) -> bool {
        given.len() > 2
            && self
                .options
                .iter()
                .any(|(name, option)| option.effect == Effect::Runs && name.starts_with(given))
    }
}
