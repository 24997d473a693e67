//! Options of well-known commands that make them do more than their name says, as tables; what follows from them is in
//! `hazards`.

/// Builtins whose every argument matters to what comes after them.
pub(super) const SHIFTING: [&str; 33] = [
    ".",
    "alias",
    "bind",
    "builtin",
    "command",
    "complete",
    "coproc",
    "declare",
    "dirs",
    "enable",
    "eval",
    "exec",
    "export",
    "fc",
    "getopts",
    "hash",
    "history",
    "let",
    "local",
    "mapfile",
    "popd",
    "pushd",
    "read",
    "readarray",
    "readonly",
    "set",
    "shopt",
    "source",
    "trap",
    "typeset",
    "unalias",
    "unset",
    "wait",
];

/// Options of a command: where one of them stands, more happens than the command's name says.
pub(super) struct Options {
    pub(super) command: &'static str,
    /// Those that run another program.
    pub(super) run: &'static [&'static str],
    /// Those that write, or that make it work on something else.
    pub(super) reach: &'static [&'static str],
}

/// A long option also stands for its abbreviations, a short one for the clusters that hold it.
pub(super) const OPTIONS: &[Options] = &[
    Options {
        command: "git",
        run: &[
            "-c",
            "-x",
            "-O",
            "--config-env",
            "--exec-path",
            "--upload-pack",
            "--receive-pack",
            "--exec",
            "--ext-diff",
            "--textconv",
            "--open-files-in-pager",
            "--extcmd",
            "--tool",
            "--config",
            "--template",
            "--strategy",
            "--gpg-sign",
            "--filter",
            "--hook",
        ],
        reach: &[
            "-C",
            "--git-dir",
            "--work-tree",
            "--output",
            "--namespace",
            "--super-prefix",
            "--output-directory",
        ],
    },
    Options {
        command: "tar",
        run: &[
            "-I",
            "-F",
            "--checkpoint-action",
            "--to-command",
            "--use-compress-program",
            "--info-script",
            "--new-volume-script",
            "--rsh-command",
            "--rmt-command",
        ],
        reach: &["-P", "-C", "--directory", "--absolute-names"],
    },
    Options { command: "sort", run: &["--compress-program"], reach: &["-o", "--output", "-T"] },
    Options { command: "rg", run: &["--pre", "--hostname-bin", "--search-zip", "-z"], reach: &[] },
    Options { command: "split", run: &["--filter"], reach: &[] },
    Options { command: "rsync", run: &["-e", "--rsh", "--rsync-path"], reach: &[] },
    Options { command: "scp", run: &["-S", "-o", "-F"], reach: &[] },
    Options {
        command: "curl",
        run: &["-K", "--config"],
        reach: &[
            "-o",
            "-O",
            "--output",
            "--remote-name",
            "-T",
            "--upload-file",
            "-D",
            "--dump-header",
            "--output-dir",
            "-c",
            "--cookie-jar",
            "--trace",
        ],
    },
    Options {
        command: "wget",
        run: &["-e", "--execute", "--use-askpass", "--config"],
        reach: &[
            "-O",
            "-o",
            "-P",
            "-a",
            "--output-document",
            "--output-file",
            "--directory-prefix",
            "--append-output",
        ],
    },
    Options {
        command: "npm",
        run: &["--script-shell", "--node-options", "--userconfig", "--globalconfig", "--shell"],
        reach: &["-C", "--prefix"],
    },
    Options {
        command: "pnpm",
        run: &["--script-shell", "--node-options", "--shell-mode"],
        reach: &["-C", "--dir", "--prefix"],
    },
    Options { command: "yarn", run: &["--script-shell", "--use-yarnrc"], reach: &["--cwd"] },
    Options { command: "cargo", run: &["--config", "-Z"], reach: &["-C", "--manifest-path"] },
    Options {
        command: "go",
        run: &["-exec", "-toolexec", "-vettool", "-overlay"],
        reach: &["-C", "-modfile"],
    },
    Options {
        command: "make",
        run: &["-f", "-E", "--eval", "--file", "--makefile", "-I", "--include-dir"],
        reach: &["-C", "--directory"],
    },
    Options { command: "zip", run: &["-TT", "--unzip-command"], reach: &[] },
    Options { command: "tcpdump", run: &["-z"], reach: &["-w"] },
    Options { command: "man", run: &["-P", "--pager", "-H", "--html"], reach: &["-C", "-M"] },
    Options { command: "gcc", run: &["-wrapper", "-fplugin", "-specs", "-B"], reach: &[] },
    Options { command: "fd", run: &["-x", "-X", "--exec", "--exec-batch"], reach: &[] },
    Options {
        command: "find",
        run: &["-exec", "-execdir", "-ok", "-okdir"],
        reach: &["-delete", "-fprint", "-fprint0", "-fprintf", "-fls"],
    },
    Options { command: "sed", run: &["-f", "--file", "-s"], reach: &["-i", "--in-place"] },
    Options {
        command: "awk",
        run: &["-f", "--file", "-i", "--include", "-l", "--load", "-e", "--source", "-E", "--exec", "-D"],
        reach: &["-o", "-p", "-d"],
    },
    Options { command: "vim", run: &["-c", "-S", "-s", "--cmd"], reach: &["-w", "-W"] },
];

/// Commands that know the options of another.
pub(super) const SAME_AS: [(&str, &str); 8] = [
    ("gawk", "awk"),
    ("mawk", "awk"),
    ("nawk", "awk"),
    ("gsed", "sed"),
    ("gmake", "make"),
    ("bsdtar", "tar"),
    ("gtar", "tar"),
    ("fdfind", "fd"),
];

/// Subcommands of git that run, or lay down for later, whatever they are told.
pub(super) const GIT_RUNS: [&str; 7] =
    ["bisect", "config", "difftool", "filter-branch", "mergetool", "submodule", "replace"];
