//! Which files, variables and hosts get which mark: data only. `path` explains how a pattern is matched.

/// Files and directories that usually hold secrets. A pattern without a prefix matches anywhere, `~/…` below a home directory, `/…`
/// from the root. Everything below a match matches too. `*` stands for any text within a name.
pub(super) const CREDENTIALS: &[&str] = &[
    ".env",
    ".env.*",
    "*.env",
    ".envrc",
    ".ssh",
    "id_rsa*",
    "id_dsa*",
    "id_ecdsa*",
    "id_ed25519*",
    "*.pem",
    "*.key",
    "*.p12",
    "*.pfx",
    "*.jks",
    "*.keystore",
    "*.kdbx",
    "*.ppk",
    "*.keychain",
    "*.keychain-db",
    "Keychains",
    ".aws",
    ".azure",
    ".config/gcloud",
    ".config/gh",
    ".config/glab-cli",
    ".config/op",
    ".config/hub",
    ".config/rclone",
    ".local/share/keyrings",
    ".password-store",
    ".gnupg",
    ".kube",
    ".docker/config.json",
    ".cargo/credentials*",
    ".gem/credentials",
    ".m2/settings.xml",
    ".terraform.d/credentials*",
    "terraform.tfstate*",
    "*.tfvars",
    ".npmrc",
    ".yarnrc.yml",
    ".pypirc",
    ".netrc",
    "_netrc",
    ".git-credentials",
    ".htpasswd",
    ".pgpass",
    ".my.cnf",
    ".vault-token",
    ".bash_history",
    ".zsh_history",
    "credentials.json",
    "service-account*.json",
    "secrets.y*ml",
    "secrets.json",
    "master.key",
    "~/.claude",
    "~/.claude.json",
    "~/.local/share/plexus",
    "~/.mozilla",
    "~/.config/google-chrome",
    "~/Library/Application Support/Google/Chrome",
    "/etc/shadow",
    "/etc/gshadow",
    "/etc/sudoers*",
    "/proc/*/environ",
    "/run/secrets",
    "/var/run/secrets",
];

/// Names that `CREDENTIALS` matches although they hold no secret.
pub(super) const NOT_CREDENTIALS: &[&str] =
    &["*.example", "*.sample", "*.template", "*.dist", "*.pub", "known_hosts*", "example.env", "sample.env"];

/// Files that another program runs or obeys later. They are marked only if the call may change them.
pub(super) const RUNS_LATER: &[&str] = &[
    ".git/hooks",
    ".git/config*",
    ".git/info/attributes",
    ".git/modules",
    ".gitmodules",
    ".husky",
    ".githooks",
    ".pre-commit-config.yaml",
    ".github/workflows",
    ".gitlab-ci.yml",
    ".circleci",
    "Jenkinsfile",
    ".claude",
    ".mcp.json",
    ".vscode/tasks.json",
    ".vscode/settings.json",
    ".idea",
    ".envrc",
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_aliases",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".config/fish",
    ".config/systemd",
    ".config/autostart",
    "LaunchAgents",
    "LaunchDaemons",
    ".gitconfig",
    ".config/git",
    ".vimrc",
    ".ssh/authorized_keys",
    ".ssh/config",
    ".ssh/rc",
    ".cargo/config*",
    "authorized_keys",
    "/etc",
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/var/spool/cron",
];

/// Files in which git stores branches, tags and commits. They are marked only if the call may change them.
pub(super) const HISTORY: &[&str] =
    &[".git/HEAD", ".git/logs", ".git/objects", ".git/packed-refs", ".git/refs", ".git/worktrees"];

/// Parts of the names of variables that usually hold secrets.
pub(super) const SECRET_VARIABLES: &[&str] = &[
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "API_KEY",
    "APIKEY",
    "PRIVATE_KEY",
    "CREDENTIAL",
    "ACCESS_KEY",
];

/// Variables whose value another program runs or obeys. git, pagers and language runtimes document them.
pub(super) const PROGRAM_VARIABLES: &[&str] = &[
    "GIT_ALLOW_PROTOCOL",
    "GIT_ASKPASS",
    "GIT_ATTR_SOURCE",
    "GIT_COMMON_DIR",
    "GIT_CONFIG",
    "GIT_CONFIG_*",
    "GIT_DIR",
    "GIT_EDITOR",
    "GIT_EXEC_PATH",
    "GIT_EXTERNAL_DIFF",
    "GIT_PAGER",
    "GIT_PROXY_COMMAND",
    "GIT_PROXY_SSL_*",
    "GIT_SEQUENCE_EDITOR",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_SSL_NO_VERIFY",
    "GIT_TEMPLATE_DIR",
    "BROWSER",
    "EDITOR",
    "LESSCLOSE",
    "LESSOPEN",
    "MANPAGER",
    "PAGER",
    "PROMPT_COMMAND",
    "SSH_ASKPASS",
    "SUDO_ASKPASS",
    "VISUAL",
    "CARGO_TARGET_*_RUNNER",
    "DYLD_INSERT_LIBRARIES",
    "JAVA_TOOL_OPTIONS",
    "PERL5OPT",
    "PYTHONSTARTUP",
    "RUBYOPT",
    "RUSTC_WORKSPACE_WRAPPER",
    "RUSTC_WRAPPER",
];

/// Values of such variables, and of `core.pager`, `core.editor` and the like, that run nothing unexpected.
pub(super) const HARMLESS_PROGRAMS: &[&str] =
    &["", "0", "1", "true", "false", ":", "cat", "less", "more", "vi", "vim", "nano", "sccache", "/dev/null"];

/// Standard devices. A call that names one gets no mark, although they are outside every project.
pub(super) const STANDARD_DEVICES: &[&str] = &[
    "/dev/null",
    "/dev/zero",
    "/dev/stdin",
    "/dev/stdout",
    "/dev/stderr",
    "/dev/tty",
    "/dev/fd",
    "/dev/random",
    "/dev/urandom",
];

/// Directories of installed programs. Running a program there gets no mark.
pub(super) const PROGRAM_DIRS: &[&str] = &[
    "/bin",
    "/sbin",
    "/usr",
    "/opt",
    "/lib",
    "/lib64",
    "/snap",
    "/nix",
    "/home/linuxbrew",
    "~/.cargo/bin",
    "~/.local/bin",
];

/// Disks. Writing to one destroys its data.
pub(super) const DISKS: &[&str] = &[
    "/dev/sd*",
    "/dev/hd*",
    "/dev/vd*",
    "/dev/xvd*",
    "/dev/nvme*",
    "/dev/mmcblk*",
    "/dev/disk*",
    "/dev/rdisk*",
    "/dev/mapper",
    "/dev/dm-*",
    "/dev/loop*",
];

/// Host names and addresses of this machine.
pub(super) const LOCAL_HOSTS: &[&str] =
    &["localhost", "*.localhost", "127.*", "::1", "0.0.0.0", "host.docker.internal", "unix"];

/// Commands whose operands are texts, not files.
pub(super) const TEXT_PROGRAMS: &[&str] =
    &["echo", "printf", "gh", "test", "[", "expr", "seq", "sleep", "kill", "logger", "say"];

/// Commands whose first operand is a pattern or a program, not a file.
pub(super) const PATTERN_PROGRAMS: &[&str] = &[
    "grep", "egrep", "fgrep", "rg", "ag", "ack", "sed", "awk", "gawk", "mawk", "perl", "jq", "yq", "tr",
    "git-grep", "cut",
];

/// Options whose value is a text, not a file.
pub(super) const TEXT_OPTIONS: &[&str] = &[
    "-m",
    "--message",
    "--title",
    "--body",
    "-e",
    "--regexp",
    "--expression",
    "--grep",
    "-S",
    "-G",
    "-H",
    "--header",
    "--data",
    "--json",
];

/// Commands that run another command on another machine or in another file system, where its paths are not ours.
pub(super) const ELSEWHERE: &[&str] =
    &["docker", "podman", "nerdctl", "kubectl", "ssh", "docker-compose", "lxc", "vagrant", "adb"];

/// Commands that only read the files among their operands.
pub(super) const READERS: &[&str] = &[
    "cat",
    "head",
    "tail",
    "less",
    "more",
    "bat",
    "grep",
    "egrep",
    "fgrep",
    "rg",
    "ag",
    "ack",
    "ls",
    "eza",
    "tree",
    "stat",
    "file",
    "wc",
    "du",
    "df",
    "diff",
    "cmp",
    "md5sum",
    "sha1sum",
    "sha256sum",
    "cksum",
    "find",
    "fd",
    "fdfind",
    "jq",
    "cut",
    "od",
    "hexdump",
    "xxd",
    "strings",
    "cd",
    "pushd",
    "test",
    "[",
    "readlink",
    "realpath",
    "basename",
    "dirname",
    "source",
    ".",
    "git",
];
