//! Option tables of well-known commands: which options are harmless, which take a value, what the operands are. The tables
//! are text (`tables/*.txt`, format in `tables/README.md`), read once; `arguments` compares a command's words with them.

mod read;

use std::collections::HashMap;
use std::sync::LazyLock;

use super::repository::RemoteAt;
use super::values::ValueCheck;

/// Every command with a table.
static BOOK: LazyLock<Book> = LazyLock::new(|| {
    let mut book = Book::default();
    for text in TEXTS {
        // A faulty line adds nothing, so that what it should have said is asked about; a test finds it.
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

/// The table of a command, by its bare name.
pub(super) fn table(command: &str) -> Option<&'static Table> {
    BOOK.by_name.get(command).and_then(|at| BOOK.tables.get(*at))
}

/// All tables.
#[derive(Debug, Default)]
struct Book {
    tables: Vec<Table>,
    by_name: HashMap<&'static str, usize>,
}

/// What is known of a command, or of a subcommand.
#[derive(Debug, Clone, Default)]
pub(super) struct Table {
    /// By their names as written, dashes included.
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
    /// Options with which the command takes no code from its input and writes no file by itself.
    pub(super) alone: Vec<&'static str>,
}

/// How options are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Style {
    /// `-abc`, `-n5`, `--long=value`.
    #[default]
    Gnu,
    /// The same, and the first word may be a cluster without a dash, as for tar.
    OldCluster,
    /// `-long value`, `-long=value`; two dashes mean the same; no clusters.
    SingleDash,
    /// Only words exactly as the table has them, perhaps with `=value`.
    Exact,
}

/// Whether the rest of a cluster is the value of a short option, as in `-n5`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Attached {
    /// Most probably: where the rest could be options that are not harmless, it is not covered.
    #[default]
    Probably,
    /// Certainly: the command reads its options as getopt does.
    Getopt,
    /// No: every letter is an option, and a value stands in the next word. A number is harmless as either.
    Never,
}

/// What the command does with the files that its operands name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum OperandAccess {
    /// It may write them: none may certainly lead into a repository's own folder.
    #[default]
    May,
    /// It reads them.
    Reads,
    /// It is there to write them: none may lead there, whatever a variable in it holds.
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

/// What is known to be harmless as a whole.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Trust {
    /// What the table lists.
    #[default]
    Listed,
    /// Every word: the command only ever reads and prints.
    Everything,
    /// What the table lists, once a rule names the subcommand.
    NamedWrites,
    /// The same; the subcommand runs other programs.
    NamedRuns,
}

/// What the command takes its standard input for, and whether it writes a file by itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Input {
    #[default]
    Data,
    /// Code, or commands.
    Code,
    /// The same, unless an operand names a script.
    CodeWithoutOperand,
    /// Data; but the command writes a file that its operands choose, unless one of the options in `alone` is given.
    WritesOutput,
}

/// What the operands are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Operands {
    /// Data, or files that the command by its nature works on.
    #[default]
    Any,
    /// This many are read; a later one is written, or means something else.
    AtMost(usize),
    /// Each begins with this character, or does more.
    Beginning(char),
    /// None begins with one of these characters: `@file`, `+command`.
    NotBeginning(&'static str),
    /// None holds one of these characters: `name=value`.
    Without(&'static str),
    /// The first is a program that a rule has to name; the others are its arguments.
    Program,
    /// The first is a script that the command is there to run; the others are the script's own.
    Script,
    /// The first is a sed script, unless an option gave one.
    Sed,
    /// The first is an awk program.
    Awk,
    /// The first is a database, the others are SQL; without any the SQL is read from somewhere else.
    Sql,
    /// Revisions and files of git: none may name a transport that runs a program.
    Git,
    /// The same, and these are repositories: only a remote's name or an address on the network is harmless.
    Remote(RemoteAt),
    /// `git config KEY` reads, `git config KEY VALUE` writes.
    GitConfig,
}

/// What stands behind `--`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum AfterDashes {
    #[default]
    Operands,
    /// The command does not take `--` for the end of its options.
    NotKnown,
    /// The arguments of the program that the command is there to run.
    Own,
    /// The arguments of a command with this table.
    Table(&'static str),
}

/// One option.
#[derive(Debug, Clone, Copy)]
pub(super) struct OptionSpec {
    pub(super) value: Takes,
    pub(super) effect: Effect,
    pub(super) then: Then,
}

/// Whether an option takes a value, and which values are harmless.
#[derive(Debug, Clone, Copy)]
pub(super) enum Takes {
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
    /// It writes, reads configuration, or changes what other words mean.
    Reaches,
    /// It runs something.
    Runs,
}

/// What follows an option and its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Then {
    Words,
    /// The arguments of what the option runs.
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

    /// Whether some word could make the command run something.
    pub(super) fn can_run(&self) -> bool {
        self.has_subcommands()
            || matches!(self.operands, Operands::Sed | Operands::Awk | Operands::Without(_))
            || self.options.values().any(|option| option.effect == Effect::Runs)
    }

    /// Whether a long option may be the abbreviation of one that runs something.
    pub(super) fn may_abbreviate_a_runner(&self, given: &str) -> bool {
        given.len() > 2
            && self
                .options
                .iter()
                .any(|(name, option)| option.effect == Effect::Runs && name.starts_with(given))
    }
}
