//! Which commands get which mark: data only. `command_rules` explains how a rule is matched.
//!
//! To add a rule, add a line here and a line to `tests/risk_calls.tsv`. A rule that marks everyday commands hides the marks that
//! matter, so also add a similar command that gets no mark.

use plexus_protocol::RiskKind::{
    self, Credentials, ForcePush, HistoryRewrite, Network, Permissions, Privilege, Publishes,
    RecursiveDelete, RunsDownloadedCode, RunsLater, System, Unclear,
};

/// One rule.
#[derive(Debug, Clone, Copy)]
pub(super) struct CommandRule {
    pub(super) kind: RiskKind,
    /// The programs, then the subcommands, each with alternatives: `npm|pnpm publish`.
    pub(super) command: &'static str,
    pub(super) when: When,
    /// The end of the reason, after the quoted command.
    pub(super) effect: &'static str,
}

/// The further words for which a rule matches.
#[derive(Debug, Clone, Copy)]
pub(super) enum When {
    /// Any words.
    Always,
    /// No operands; options are allowed.
    NoOperand,
    /// No words except `-`: the program reads its input.
    Nothing,
    /// At least one of these patterns, separated by blanks. `-f` also matches inside `-uf`, and `--force` also matches `--force=x`
    /// and `--forc`. Any other pattern matches a whole word and may contain `*`. `a&b` requires both, and `^-f` matches the option
    /// only before the first operand; `^-` means that the first operand is `-`. `/rm` matches the name of a program with any
    /// directory. `$` matches a word whose value is unknown before the command runs, `$-` such a word that may become an option.
    With(&'static str),
}

use When::{Always, NoOperand, Nothing, With};

const fn rule(kind: RiskKind, command: &'static str, when: When, effect: &'static str) -> CommandRule {
    CommandRule { kind, command, when, effect }
}

/// The rules. Each rule that matches adds a mark.
pub(super) const COMMANDS: &[CommandRule] = &[
    // Git: remote and local history.
    rule(
        ForcePush,
        "git push",
        With("-f --force --force-with-lease --force-if-includes +*"),
        "overwrites the remote branch",
    ),
    rule(ForcePush, "git push", With("--mirror --prune"), "deletes remote branches that are missing here"),
    rule(ForcePush, "git push", With("-d --delete :*"), "deletes a remote branch or tag"),
    rule(ForcePush, "git send-pack", With("--force --mirror +*"), "overwrites the remote branch"),
    rule(HistoryRewrite, "git reset", With("--hard --merge"), "discards uncommitted changes"),
    rule(HistoryRewrite, "git checkout", With("-f --force -- ."), "discards uncommitted changes"),
    rule(
        HistoryRewrite,
        "git switch",
        With("-f --force --discard-changes -C"),
        "discards changes or a branch",
    ),
    rule(HistoryRewrite, "git restore", Always, "discards uncommitted changes"),
    rule(HistoryRewrite, "git commit", With("--amend"), "replaces the last commit"),
    rule(HistoryRewrite, "git rebase|filter-branch|filter-repo|replace", Always, "rewrites commits"),
    rule(HistoryRewrite, "git branch", With("-D -M -f --force"), "deletes or moves a branch, merged or not"),
    rule(HistoryRewrite, "git tag", With("-d --delete -f --force"), "deletes or moves a tag"),
    rule(HistoryRewrite, "git stash", With("drop clear"), "deletes stashed changes"),
    rule(HistoryRewrite, "git update-ref", Always, "changes a branch directly"),
    rule(
        HistoryRewrite,
        "git reflog",
        With("expire delete"),
        "deletes entries that can restore lost commits",
    ),
    rule(HistoryRewrite, "git gc|prune", With("--prune --expire"), "deletes unreachable commits for good"),
    rule(RecursiveDelete, "git clean", With("-f --force"), "deletes untracked files"),
    rule(RecursiveDelete, "git rm", With("-r"), "deletes directories with their contents"),
    rule(RecursiveDelete, "git worktree remove", With("-f --force"), "deletes a worktree with its changes"),
    rule(Credentials, "git credential", With("fill get"), "prints a stored password"),
    rule(Network, "git clone", Always, "downloads a repository"),
    rule(Network, "git remote", With("add set-url"), "changes which machine git contacts"),
    rule(
        Unclear,
        "git push|reset|checkout|switch|clean|branch",
        With("$-"),
        "has a word that is not known before it runs and may be an option",
    ),
    rule(
        Unclear,
        "ag|bat|fzf|helm|man|rg|sort|tar",
        With(
            "--preview --bind --post-renderer --to-command --use-compress-program --checkpoint-action --pre --pager --compress-program",
        ),
        "may run another command",
    ),
    // Deleting.
    rule(RecursiveDelete, "rm", With("-r -R --recursive"), "deletes directories with their contents"),
    rule(Unclear, "rm|unlink|shred", With("$"), "deletes files whose names are not known before it runs"),
    rule(
        RecursiveDelete,
        "find",
        With(
            "-delete -exec*&/rm -ok*&/rm -exec*&/unlink -ok*&/unlink -exec*&/shred -ok*&/shred -exec*&/rmdir",
        ),
        "deletes every file it finds",
    ),
    rule(
        RecursiveDelete,
        "fd|fdfind",
        With("-x&/rm -X&/rm --exec&/rm --exec-batch&/rm"),
        "deletes every file it finds",
    ),
    rule(
        RecursiveDelete,
        "rsync",
        With("--delete --delete-*"),
        "deletes files that are missing in the source",
    ),
    rule(RecursiveDelete, "rimraf|trash|del-cli", Always, "deletes directories with their contents"),
    rule(
        RecursiveDelete,
        "docker|podman system|volume|image|container|builder prune",
        Always,
        "deletes unused data",
    ),
    rule(RecursiveDelete, "docker|podman|docker-compose volume rm", Always, "deletes a volume with its data"),
    rule(
        RecursiveDelete,
        "docker|podman compose down",
        With("-v --volumes"),
        "deletes volumes with their data",
    ),
    rule(RecursiveDelete, "docker-compose down", With("-v --volumes"), "deletes volumes with their data"),
    rule(
        RecursiveDelete,
        "docker|podman|docker-compose compose rm",
        With("-v"),
        "deletes volumes with their data",
    ),
    rule(RecursiveDelete, "dropdb", Always, "deletes a database"),
    // Other users, machines and disks.
    rule(Privilege, "sudo|doas|pkexec|su|runuser|gosu|su-exec", Always, "runs as another user"),
    rule(
        Privilege,
        "setcap|visudo|usermod|useradd|userdel|passwd|chpasswd|adduser|deluser",
        Always,
        "changes users or their rights",
    ),
    rule(
        Privilege,
        "docker|podman run|exec",
        With("--privileged"),
        "gives a container the rights of the host",
    ),
    rule(
        Permissions,
        "chmod|chown|chgrp|setfacl",
        With("-R --recursive"),
        "changes the access of a whole directory",
    ),
    rule(System, "dd", With("of=*"), "writes bytes to a file or a disk"),
    rule(
        System,
        "mkfs*|fdisk|sfdisk|cfdisk|gdisk|parted|wipefs|mkswap|blkdiscard|diskutil|lvremove|vgremove|zpool|cryptsetup",
        Always,
        "changes a disk",
    ),
    rule(System, "shred|truncate", Always, "destroys the content of files"),
    rule(System, "mount|umount|losetup|swapoff|modprobe|insmod|rmmod|sysctl", Always, "changes the system"),
    rule(System, "shutdown|reboot|halt|poweroff|init|telinit", Always, "stops the machine"),
    rule(
        System,
        "systemctl|service|launchctl",
        With("start stop restart enable disable mask load unload bootout bootstrap kill daemon-reload edit"),
        "changes services of the machine",
    ),
    rule(System, "iptables|ip6tables|nft|ufw|firewall-cmd", Always, "changes the firewall"),
    rule(System, "killall|pkill", Always, "ends processes by name"),
    rule(System, "kill", With("-1 0"), "ends many processes"),
    rule(System, "defaults", With("write delete"), "changes settings of the machine"),
    rule(
        System,
        "apt|apt-get|dnf|yum|pacman|zypper|apk|brew|port|snap|choco|winget",
        With(
            "install remove purge autoremove upgrade dist-upgrade full-upgrade update add del uninstall -S -R -U -Syu",
        ),
        "changes the software of the machine",
    ),
    // What runs later.
    rule(RunsLater, "crontab", With("-e -r - *.* $"), "changes what the system runs later"),
    rule(RunsLater, "crontab|at|batch", Nothing, "takes commands to run later from its input"),
    rule(RunsLater, "at", Always, "runs commands later"),
    rule(RunsLater, "go env", With("-w"), "changes what later go commands run"),
    rule(RunsLater, "npm|pnpm|yarn config|c set", Always, "changes what later commands run or contact"),
    rule(RunsLater, "npm|pnpm|yarn set", Always, "changes what later commands run or contact"),
    rule(RunsLater, "gh alias|extension set|install", Always, "changes what gh runs later"),
    rule(RunsLater, "direnv allow", Always, "lets a directory run commands on entry"),
    // Secrets.
    rule(Credentials, "env|printenv", NoOperand, "prints all environment variables"),
    rule(Unclear, "printenv", With("$"), "prints a variable that is not known before it runs"),
    rule(Credentials, "export|declare|typeset", NoOperand, "prints environment variables"),
    rule(Credentials, "set", Nothing, "prints all variables"),
    rule(
        Credentials,
        "gh auth",
        With("token setup-git login refresh --show-token -t"),
        "handles GitHub's token",
    ),
    rule(Credentials, "glab auth", Always, "handles GitLab's token"),
    rule(Credentials, "npm|pnpm|yarn token|login|adduser", Always, "handles the registry's token"),
    rule(
        Credentials,
        "cargo|docker|podman|heroku|vercel|netlify|fly|flyctl|wrangler login",
        Always,
        "stores a token",
    ),
    rule(
        Credentials,
        "aws configure|sso|sts",
        With("get export-credentials login get-session-token assume-role get-login-password *credential*"),
        "handles credentials of AWS",
    ),
    rule(Credentials, "aws secretsmanager|ssm", With("get-*"), "reads secrets"),
    rule(Credentials, "gcloud auth", Always, "handles credentials of Google Cloud"),
    rule(Credentials, "gcloud secrets", Always, "reads or changes secrets"),
    rule(Credentials, "az account get-access-token", Always, "prints a token"),
    rule(
        Credentials,
        "kubectl get|describe|edit",
        With("secret secrets secret/* secrets/*"),
        "reads secrets of the cluster",
    ),
    rule(Credentials, "kubectl config view", With("--raw"), "prints credentials of the cluster"),
    rule(Credentials, "security", With("find-* dump-keychain export unlock-keychain"), "reads the keychain"),
    rule(Credentials, "secret-tool", With("lookup search"), "reads the keyring"),
    rule(
        Credentials,
        "pass|op|bw|vault|gopass|keepassxc-cli|sops|doppler|chamber",
        Always,
        "reads the password store",
    ),
    rule(
        Credentials,
        "gpg|gpg2",
        With("--export-secret-keys --export-secret-subkeys"),
        "exports secret keys",
    ),
    rule(Credentials, "ssh-keygen|ssh-add", Always, "handles SSH keys"),
    rule(Credentials, "openssl", With("genrsa genpkey pkcs12 rsa pkey"), "handles private keys"),
    // Publishing and deploying.
    rule(
        Publishes,
        "npm|pnpm|yarn|bun|cargo|poetry|uv|flit|hatch|pdm|lerna|vsce|ovsx|deno|jsr publish",
        Always,
        "publishes a package",
    ),
    rule(Publishes, "npm|pnpm|yarn npm publish", Always, "publishes a package"),
    rule(
        Publishes,
        "npm|pnpm|yarn unpublish|deprecate|dist-tag|owner|access",
        Always,
        "changes a published package",
    ),
    rule(Publishes, "cargo yank|owner", Always, "changes a published package"),
    rule(Publishes, "gem|docker|podman|helm|pod|conan|nerdctl push", Always, "uploads for others to use"),
    rule(Publishes, "docker|podman image push", Always, "uploads for others to use"),
    rule(Publishes, "twine upload", Always, "publishes a package"),
    rule(
        Publishes,
        "mvn|gradle|gradlew|mvnw|sbt",
        With("deploy publish *:deploy *:publish release:*"),
        "publishes a package",
    ),
    rule(Publishes, "goreleaser|semantic-release|release-it|cargo-release", Always, "publishes a release"),
    rule(Publishes, "cargo release", Always, "publishes a release"),
    rule(Publishes, "gh release|gist create|upload|edit|delete", Always, "publishes on GitHub"),
    rule(
        Publishes,
        "gh pr|issue|repo create|merge|close|delete|edit|comment|review|archive|rename",
        Always,
        "changes GitHub",
    ),
    rule(Publishes, "gh workflow|secret|variable run|set|delete|enable|disable", Always, "changes GitHub"),
    rule(
        Publishes,
        "terraform|tofu|pulumi|cdk apply|destroy|up|deploy|import",
        Always,
        "changes deployed systems",
    ),
    rule(
        Publishes,
        "kubectl|oc apply|create|delete|replace|patch|scale|rollout|drain|set",
        Always,
        "changes the cluster",
    ),
    rule(Publishes, "helm install|upgrade|uninstall|rollback", Always, "changes the cluster"),
    rule(
        Publishes,
        "vercel|netlify|fly|flyctl|wrangler|firebase|serverless|sls|heroku deploy|publish|launch",
        Always,
        "deploys",
    ),
    rule(Publishes, "vercel", With("--prod"), "deploys"),
    rule(Publishes, "ansible-playbook", Always, "changes other machines"),
    rule(Publishes, "aws s3 cp|mv|rm|sync|rb", Always, "changes files in S3"),
    rule(
        Publishes,
        "gsutil|gcloud cp|mv|rm|rsync|rb|deploy",
        Always,
        "changes files or services in the cloud",
    ),
    // Downloads. `hosts` has the programs that name a host.
    rule(
        Network,
        "npm|pnpm|yarn|bun install|i|add|ci|update|up|upgrade",
        Always,
        "downloads packages and may run their scripts",
    ),
    rule(Network, "yarn|bundle|composer", Nothing, "downloads packages"),
    rule(Network, "bundle|composer install|update|require", Always, "downloads packages"),
    rule(
        Network,
        "pip|pip3|pipx|uv|conda|mamba|poetry|pdm|gem|luarocks install|add|download|sync|upgrade|update",
        Always,
        "downloads packages and may run their code",
    ),
    rule(Network, "uv pip install|sync", Always, "downloads packages and may run their code"),
    rule(
        Network,
        "python|python3 pip install|download",
        With("-m"),
        "downloads packages and may run their code",
    ),
    rule(Network, "cargo install|add|update|fetch|search", Always, "downloads packages"),
    rule(Network, "go get|install", Always, "downloads packages"),
    rule(Network, "go mod", With("download tidy"), "downloads packages"),
    rule(
        Network,
        "rustup|nvm|pyenv|rbenv|sdk|asdf|mise|volta install|update|add|use",
        Always,
        "downloads programs",
    ),
    rule(Network, "docker|podman|nerdctl pull", Always, "downloads an image"),
    rule(
        Network,
        "gh api|repo|pr|issue|run|release|gist|search|workflow|browse|codespace|cs",
        Always,
        "contacts GitHub",
    ),
    rule(Network, "aws|gcloud|az|gsutil|doctl|linode-cli|hcloud", Always, "contacts a cloud provider"),
    rule(Network, "ansible|mosh|ngrok|cloudflared|tailscale", Always, "connects to another machine"),
    rule(RunsDownloadedCode, "npx", With("^-y ^--yes ^-p ^--package"), "downloads a package and runs it"),
    rule(RunsDownloadedCode, "npx", With("*@*"), "downloads a package and runs it"),
    rule(
        RunsDownloadedCode,
        "npm|pnpm exec|x",
        With("-y --yes --package *@*"),
        "downloads a package and runs it",
    ),
    rule(RunsDownloadedCode, "bun x", Always, "downloads a package and runs it"),
    rule(RunsDownloadedCode, "bunx|pnpx|uvx", Always, "downloads a package and runs it"),
    rule(RunsDownloadedCode, "pnpm|yarn dlx", Always, "downloads a package and runs it"),
    rule(RunsDownloadedCode, "pipx run", Always, "downloads a package and runs it"),
    rule(RunsDownloadedCode, "deno run", With("http*"), "downloads code and runs it"),
    rule(RunsDownloadedCode, "go run", With("*@*"), "downloads code and runs it"),
    rule(RunsDownloadedCode, "nix run", With("*:*"), "downloads code and runs it"),
    rule(RunsDownloadedCode, "docker|podman run", Always, "may download an image and runs it"),
    // Code that is not analysed.
    rule(Unclear, "python|python3|pypy|pypy3", With("^-c"), "runs code that is not analysed"),
    rule(
        Unclear,
        "node|nodejs|bun|ruby|perl|osascript|lua|Rscript|elixir|tsx|ts-node",
        With("^-e ^-E ^-p ^--eval ^--print"),
        "runs code that is not analysed",
    ),
    rule(Unclear, "php", With("^-r"), "runs code that is not analysed"),
    rule(Unclear, "deno eval", Always, "runs code that is not analysed"),
    rule(
        Unclear,
        "psql|mysql|mariadb|sqlite3|mongosh|redis-cli",
        Always,
        "runs statements that are not analysed",
    ),
    rule(
        Unclear,
        "python|python3|pypy|pypy3|node|nodejs|ruby|perl|php|lua|Rscript|osascript",
        Nothing,
        "runs code from its input",
    ),
    rule(
        Unclear,
        "python|python3|pypy|pypy3|node|nodejs|ruby|perl|php|lua|Rscript|osascript",
        With("^-"),
        "runs code from its input",
    ),
];

/// Options that may run a command, but whose values are checked by rules in `COMMANDS`.
pub(super) const CHECKED_OPTIONS: &[(&str, &str)] = &[("git", "-c")];

const COMPOSE_OPTIONS: &[&str] = &[
    "-f",
    "--file",
    "-p",
    "--project-name",
    "--profile",
    "--env-file",
    "--project-directory",
    "--parallel",
    "--ansi",
    "--progress",
];

/// Options of programs that take the next word as their value, before the next subcommand.
pub(super) const VALUE_OPTIONS: &[(&str, &[&str])] = &[
    ("aws", &["--profile", "--region", "--endpoint-url", "--output"]),
    ("cargo", &["--config", "-C", "-Z", "--color", "--manifest-path"]),
    ("docker compose", COMPOSE_OPTIONS),
    ("docker-compose", COMPOSE_OPTIONS),
    ("podman compose", COMPOSE_OPTIONS),
    ("docker", &["-H", "--host", "-c", "--context", "--config", "-l", "--log-level"]),
    ("gcloud", &["--project", "--account", "--configuration"]),
    ("gh", &["-R", "--repo"]),
    (
        "git",
        &[
            "-C",
            "-c",
            "--git-dir",
            "--work-tree",
            "--namespace",
            "--exec-path",
            "--config-env",
            "--super-prefix",
        ],
    ),
    ("go", &["-C"]),
    ("helm", &["-n", "--namespace", "--kube-context", "--kubeconfig"]),
    ("kubectl", &["-n", "--namespace", "--context", "--cluster", "--kubeconfig", "--user", "-s", "--server"]),
    ("npm", &["--prefix", "-C", "-w", "--workspace", "--registry"]),
    ("pnpm", &["--filter", "-F", "-C", "--dir"]),
    ("node", &["-r", "--require", "--import", "--loader", "-C", "--conditions"]),
    ("podman", &["-c", "--connection", "--url"]),
    ("python", &["-W", "-X"]),
    ("python3", &["-W", "-X"]),
    ("ruby", &["-I", "-r"]),
    ("uv", &["--directory", "--project"]),
    ("yarn", &["--cwd"]),
];
