//! Commands that treat their operands as data, for deny and ask rules. A denied name among such operands is a text, a
//! file or a package, not a command. Every other command may be a wrapper.

use super::script::{Word, base_name};

/// Commands whose operands are files, texts, patterns, packages or names, and never commands. `hazards` covers their
/// options that run a program.
const DATA: &[&str] = &[
    ":",
    "[",
    "ack",
    "ag",
    "apk",
    "apt",
    "apt-cache",
    "apt-get",
    "apt-mark",
    "awk",
    "aws",
    "az",
    "base64",
    "basename",
    "bat",
    "black",
    "break",
    "brew",
    "bzip2",
    "cabal",
    "cat",
    "cc",
    "cd",
    "chgrp",
    "chmod",
    "chown",
    "cksum",
    "clang",
    "cmp",
    "column",
    "comm",
    "conan",
    "continue",
    "cp",
    "cpan",
    "curl",
    "cut",
    "dart",
    "date",
    "dd",
    "declare",
    "df",
    "diff",
    "dig",
    "dir",
    "dirname",
    "dnf",
    "docker",
    "docker-compose",
    "dotnet",
    "dpkg",
    "du",
    "echo",
    "egrep",
    "eslint",
    "exit",
    "export",
    "expr",
    "eza",
    "false",
    "fd",
    "fdfind",
    "fgrep",
    "file",
    "find",
    "flake8",
    "flutter",
    "fold",
    "gawk",
    "gcc",
    "gcloud",
    "gem",
    "getopts",
    "gh",
    "glab",
    "gmake",
    "grep",
    "gsutil",
    "gunzip",
    "gzip",
    "head",
    "helm",
    "help",
    "hexdump",
    "host",
    "hostname",
    "iconv",
    "id",
    "info",
    "install",
    "isort",
    "javac",
    "jest",
    "journalctl",
    "jq",
    "kill",
    "killall",
    "kubectl",
    "less",
    "let",
    "ln",
    "local",
    "logger",
    "ls",
    "lsof",
    "luarocks",
    "make",
    "man",
    "mawk",
    "md5sum",
    "mkdir",
    "mktemp",
    "mocha",
    "more",
    "mv",
    "mypy",
    "nawk",
    "nerdctl",
    "nix-env",
    "nl",
    "notify-send",
    "npm",
    "od",
    "opam",
    "pacman",
    "paste",
    "pgrep",
    "ping",
    "pip",
    "pip3",
    "pkill",
    "podman",
    "port",
    "prettier",
    "printenv",
    "printf",
    "ps",
    "pwd",
    "py.test",
    "pylint",
    "pytest",
    "read",
    "readlink",
    "readonly",
    "realpath",
    "return",
    "rev",
    "rg",
    "rm",
    "rmdir",
    "rsync",
    "ruff",
    "rustc",
    "rustfmt",
    "rustup",
    "scp",
    "sed",
    "seq",
    "set",
    "sha1sum",
    "sha256sum",
    "sha512sum",
    "shift",
    "shuf",
    "sleep",
    "sort",
    "split",
    "stat",
    "strings",
    "swift",
    "systemctl",
    "tac",
    "tail",
    "tar",
    "tee",
    "terraform",
    "test",
    "tldr",
    "touch",
    "tr",
    "tree",
    "true",
    "truncate",
    "tsc",
    "type",
    "typeset",
    "ulimit",
    "umask",
    "uname",
    "uniq",
    "unlink",
    "unset",
    "unzip",
    "vcpkg",
    "vitest",
    "wait",
    "wc",
    "wget",
    "whatis",
    "whence",
    "where",
    "whereis",
    "which",
    "whoami",
    "xbps-install",
    "xmllint",
    "xxd",
    "xz",
    "yq",
    "yum",
    "zgrep",
    "zip",
    "zstd",
    "zypper",
];

/// Commands that run a project's own programs unless one of these words follows the name.
const DATA_BEHIND: &[(&str, &[&str])] = &[
    ("bun", &["add", "install", "pm", "remove", "rm", "test", "update"]),
    ("bundle", &["add", "info", "install", "remove", "show", "update"]),
    (
        "cargo",
        &[
            "add",
            "audit",
            "b",
            "bench",
            "build",
            "c",
            "check",
            "clean",
            "clippy",
            "doc",
            "fetch",
            "fix",
            "fmt",
            "info",
            "init",
            "install",
            "metadata",
            "new",
            "nextest",
            "outdated",
            "owner",
            "package",
            "publish",
            "remove",
            "rm",
            "search",
            "t",
            "test",
            "tree",
            "uninstall",
            "update",
            "vendor",
            "yank",
        ],
    ),
    ("conda", &["create", "env", "install", "list", "remove", "search"]),
    ("go", &["build", "doc", "env", "fmt", "get", "help", "install", "list", "mod", "test", "vet", "work"]),
    ("pdm", &["add", "install", "list", "lock", "remove", "show", "update"]),
    ("pipx", &["inject", "install", "list", "uninstall", "upgrade"]),
    (
        "pnpm",
        &[
            "add",
            "i",
            "install",
            "list",
            "ls",
            "outdated",
            "remove",
            "rm",
            "run",
            "test",
            "uninstall",
            "up",
            "update",
            "why",
        ],
    ),
    ("poetry", &["add", "build", "check", "install", "lock", "remove", "show", "update"]),
    ("rye", &["add", "lock", "remove", "sync"]),
    ("snap", &["find", "info", "install", "list", "remove"]),
    ("uv", &["add", "lock", "pip", "remove", "sync", "tree", "venv"]),
    (
        "yarn",
        &[
            "add",
            "info",
            "install",
            "list",
            "outdated",
            "remove",
            "run",
            "test",
            "up",
            "upgrade",
            "why",
            "workspace",
        ],
    ),
];

/// Words of these commands that a command may follow.
const RUN_WORDS: &[(&str, &[&str])] = &[
    ("apt", &["-o"]),
    ("apt-get", &["-o"]),
    ("aws", &["ecs", "ssm"]),
    ("az", &["run-command", "ssh"]),
    ("brew", &["exec", "ruby", "sh"]),
    ("dart", &["run"]),
    ("dotnet", &["exec", "run"]),
    ("flutter", &["run"]),
    ("gcloud", &["ssh"]),
    ("gh", &["alias", "codespace", "cs", "extension"]),
    (
        "git",
        &[
            "--open-files-in-pager",
            "-c",
            "-x",
            "bisect",
            "config",
            "difftool",
            "filter-branch",
            "for-each-repo",
            "hook",
            "mergetool",
            "rebase",
            "submodule",
        ],
    ),
    ("npm", &["c", "config", "pkg", "set", "set-script"]),
    ("swift", &["run"]),
];

/// Substrings of the names of options that name a program.
const PROGRAM_OPTIONS: [&str; 15] = [
    "askpass", "cmd", "command", "editor", "exec", "hook", "invoke", "pager", "prog", "render", "rsh", "run",
    "script", "shell", "wrapper",
];

/// Whether a command is known to treat all its operands as data.
pub(super) fn takes_data(words: &[Word]) -> bool {
    let Some(name) = words.first().and_then(Word::literal).map(base_name) else { return false };
    let mut rest = words[1..].iter().filter_map(Word::literal);
    if rest.clone().any(names_program) {
        return false;
    }
    if let Some((_, subcommands)) = DATA_BEHIND.iter().find(|(command, _)| *command == name) {
        return rest
            .find(|word| !word.starts_with(['-', '+']))
            .is_none_or(|word| subcommands.contains(&word));
    }
    let runs = RUN_WORDS.iter().find(|(command, _)| *command == name).map_or(&[][..], |(_, words)| words);
    (DATA.contains(&name) || matches!(name, "git" | "command")) && !rest.any(|word| runs.contains(&word))
}

/// Interpreters of languages in which a program can compose the name of a command.
const INTERPRETERS: [&str; 29] = [
    "Rscript",
    "bun",
    "deno",
    "elixir",
    "erl",
    "ghci",
    "groovy",
    "guile",
    "iex",
    "irb",
    "jshell",
    "julia",
    "lua",
    "luajit",
    "node",
    "nodejs",
    "octave",
    "osascript",
    "perl",
    "php",
    "pwsh",
    "pypy",
    "python",
    "racket",
    "ruby",
    "scala",
    "tclsh",
    "ts-node",
    "tsx",
];

/// The functions that a program calls to run a command, in these languages.
const CALLS: [&str; 18] = [
    "`",
    "%x",
    "__import__",
    "base64",
    "builtins",
    "child_process",
    "ctypes",
    "eval",
    "exec",
    "fork",
    "importlib",
    "popen",
    "pty",
    "spawn",
    "subprocess",
    "system",
    "passthru",
    "shell",
];

/// Whether a command runs programs in its own language; `python3.12` counts as `python`.
pub(super) fn is_interpreter(name: &str) -> bool {
    let plain = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    INTERPRETERS.contains(&plain)
}

/// Whether a word is a program that may run a command.
pub(super) fn may_run_commands(word: &Word) -> bool {
    let small = |text: &str| text.to_ascii_lowercase();
    word.literal().is_some_and(|text| {
        text.contains(['(', ' ', '`', '\n']) && CALLS.iter().any(|call| small(text).contains(call))
    })
}

/// Whether an option or a variable takes a program as its value.
fn names_program(word: &str) -> bool {
    let option = word.split('=').next().unwrap_or(word);
    let program = |name: &str| PROGRAM_OPTIONS.iter().any(|part| name.contains(part));
    word.starts_with("+!")
        || option.starts_with("--") && (option == "--pre" || program(option))
        || option.len() < word.len() && names_program_variable(option)
}

/// Whether other programs run the value of a variable with this name.
pub(super) fn names_program_variable(name: &str) -> bool {
    let is_plain = name.bytes().all(|b| b == b'_' || b.is_ascii_uppercase() || b.is_ascii_digit());
    let small = name.to_ascii_lowercase();
    is_plain
        && (PROGRAM_OPTIONS
            .iter()
            .chain(&["browser", "lessopen", "ssh", "visual"])
            .any(|part| small.contains(part)))
}

/// The substrings of a text that could be names or operands of a command.
pub(super) fn tokens(text: &str) -> impl Iterator<Item = &str> {
    let splits = |c: char| !(c.is_alphanumeric() || "_-./+@%~*".contains(c));
    text.split(splits).filter(|token| !token.is_empty())
}
