//! Marks programs and URLs that contact another machine, with the host. This machine itself gets no mark.

use plexus_protocol::RiskKind;

use super::command_rules::{program_name, shown};
use super::file_table::LOCAL_HOSTS;
use super::{Marks, quoted};
use crate::bash::Word;
use crate::wildcard::name_matches;

/// Where the words of a program name the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HostIn {
    /// In a URL, or an operand that starts with a host.
    Url,
    /// The first operand, possibly after `user@`.
    First,
    /// Before a colon in any operand; without one, everything is local.
    Remote,
    /// Only in an operand with `://` or `user@host:`; otherwise a configured name.
    UrlOnly,
}

/// The programs that name a host.
const HOST_PROGRAMS: &[(&str, HostIn)] = &[
    ("aria2c", HostIn::Url),
    ("curl", HostIn::Url),
    ("curlie", HostIn::Url),
    ("http", HostIn::Url),
    ("https", HostIn::Url),
    ("httpie", HostIn::Url),
    ("lynx", HostIn::Url),
    ("w3m", HostIn::Url),
    ("wget", HostIn::Url),
    ("wget2", HostIn::Url),
    ("xh", HostIn::Url),
    ("yt-dlp", HostIn::Url),
    ("autossh", HostIn::First),
    ("ftp", HostIn::First),
    ("lftp", HostIn::First),
    ("nc", HostIn::First),
    ("ncat", HostIn::First),
    ("netcat", HostIn::First),
    ("nmap", HostIn::First),
    ("rlogin", HostIn::First),
    ("rsh", HostIn::First),
    ("sftp", HostIn::First),
    ("socat", HostIn::First),
    ("ssh", HostIn::First),
    ("ssh-copy-id", HostIn::First),
    ("telnet", HostIn::First),
    ("tftp", HostIn::First),
    ("rclone", HostIn::Remote),
    ("rsync", HostIn::Remote),
    ("scp", HostIn::Remote),
    ("git", HostIn::UrlOnly),
    ("svn", HostIn::UrlOnly),
    ("hg", HostIn::UrlOnly),
];

/// Whether a program downloads from a URL. Its output may be run as code.
pub(super) fn downloads(name: &str) -> bool {
    HOST_PROGRAMS.iter().any(|(program, host)| *program == name && *host == HostIn::Url)
}

/// Adds the mark of a command that contacts another machine.
pub(super) fn scan(words: &[Word], marks: &mut Marks) {
    let Some(name) = words.first().and_then(Word::literal).map(program_name) else { return };
    let Some((_, host_in)) = HOST_PROGRAMS.iter().find(|(program, _)| *program == name) else { return };
    let operands: Vec<&Word> =
        words[1..].iter().filter(|word| !word.known_start().starts_with('-')).collect();
    if operands.is_empty() {
        return;
    }
    let literal = || operands.iter().filter_map(|word| word.literal());
    let mut found: Vec<Option<String>> = match host_in {
        HostIn::Url => {
            let urls: Vec<_> = literal().filter(|word| word.contains("://")).map(host_of).collect();
            if urls.is_empty() {
                literal().find(|word| looks_like_host(word)).map(host_of).into_iter().collect()
            } else {
                urls
            }
        }
        HostIn::First => literal()
            .find(|word| looks_like_host(word))
            .or_else(|| literal().next())
            .map(host_of)
            .into_iter()
            .collect(),
        HostIn::Remote | HostIn::UrlOnly => {
            let only_urls = *host_in == HostIn::UrlOnly;
            let remote =
                |word: &&str| word.contains("://") || is_remote(word) && (!only_urls || word.contains('@'));
            literal().filter(remote).map(host_of).collect()
        }
    };
    // A word that is not known may name any host.
    let hidden =
        operands.iter().any(|word| word.literal().is_none() && host_of(word.known_start()).is_none());
    if found.is_empty() && matches!(host_in, HostIn::Url | HostIn::First) {
        found.push(None);
    }
    if hidden && matches!(host_in, HostIn::Url | HostIn::First) && found.iter().all(Option::is_none) {
        found = vec![None];
    }
    for word in operands.iter().filter(|word| word.literal().is_none() && word.known_start().contains("://"))
    {
        found.push(host_of(word.known_start()).filter(|_| word.known_start().matches('/').count() > 2));
    }
    for host in found {
        match host {
            Some(host) if is_local(&host) => {}
            Some(host) => marks.add(RiskKind::Network, format!("`{name}` connects to {}", quoted(&host))),
            None => marks.add(
                RiskKind::Network,
                format!("{} connects to a host that is not known before it runs", quoted(&shown(words))),
            ),
        }
    }
}

/// Adds the mark of a URL in the input of a tool.
pub(super) fn url(tool: &str, url: &str, marks: &mut Marks) {
    match host_of(url) {
        Some(host) if is_local(&host) => {}
        Some(host) => marks.add(RiskKind::Network, format!("{tool} connects to {}", quoted(&host))),
        None => {
            marks.add(RiskKind::Network, format!("{tool} contacts {}, whose host is unclear", quoted(url)))
        }
    }
}

/// Adds the mark of bash's own network connections: `> /dev/tcp/host/port`.
pub(super) fn device(path: &str, marks: &mut Marks) {
    let Some(rest) = path.strip_prefix("/dev/tcp/").or_else(|| path.strip_prefix("/dev/udp/")) else {
        return;
    };
    let host = rest.split('/').next().unwrap_or_default();
    if !is_local(host) {
        marks.add(RiskKind::Network, format!("the shell connects to {}", quoted(host)));
    }
}

pub(super) fn is_local(host: &str) -> bool {
    LOCAL_HOSTS.iter().any(|local| name_matches(local, host))
}

/// `host:path` or `user@host:path`, and not a path with a colon.
fn is_remote(word: &str) -> bool {
    word.split_once(':')
        .is_some_and(|(host, _)| !host.is_empty() && !host.contains('/') && !host.starts_with('.'))
}

fn looks_like_host(word: &str) -> bool {
    let host = word.split(['/', ':']).next().unwrap_or_default();
    let host = host.rsplit('@').next().unwrap_or(host);
    host == "localhost"
        || host.contains('.')
            && !host.starts_with('.')
            && host.bytes().all(|b| b.is_ascii_alphanumeric() || b"-.".contains(&b))
}

/// The host in a URL, in `user@host:path` or in `host/path`, in lower case.
fn host_of(text: &str) -> Option<String> {
    let rest = text.split_once("://").map_or(text, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = authority.rsplit('@').next()?;
    let host = match host.strip_prefix('[') {
        Some(v6) => v6.split(']').next()?,
        None => host.split(':').next()?,
    };
    let plain = !host.is_empty() && host.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._:".contains(&b));
    plain.then(|| host.trim_end_matches('.').to_ascii_lowercase())
}
