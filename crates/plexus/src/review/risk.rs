//! Formats the risk marks of an approval and the agent's own reason for the call. Marks warn; they decide nothing.

use plexus_protocol::{Approval, Decider, RiskKind, RiskMark};

use super::approval::span;
use super::row::{Row, Tone};

/// The longest reason of an agent that is shown, in characters. `loopback.get` has more.
const MAX_SAID: usize = 240;

/// One row for each mark, and one for what the agent said.
pub(super) fn rows(approval: &Approval, now: u64) -> Vec<Row> {
    let marks = approval.risks.iter().flatten();
    let mut rows: Vec<Row> =
        marks.map(|mark| Row::led(Tone::Warn, "risk: ", &mark_text(mark, now))).collect();
    rows.extend(approval.said.as_deref().map(|said| Row::exact(Tone::Dim, "agent says: ", &end_of(said))));
    rows
}

/// The kinds of the marks for a list: `[force push, network] `, or nothing.
pub(crate) fn labels(approval: &Approval) -> String {
    let mut labels: Vec<&str> = approval.risks.iter().flatten().map(|mark| label(mark.kind)).collect();
    labels.dedup();
    if labels.is_empty() { String::new() } else { format!("[{}] ", labels.join(", ")) }
}

fn mark_text(mark: &RiskMark, now: u64) -> String {
    let mut text = format!("{}: {}", label(mark.kind), mark.reason);
    if let Some(denial) = &mark.denial {
        let by = match &denial.by {
            Decider::Operator => "you".to_owned(),
            Decider::Hub => "a rule".to_owned(),
            other => other.key(),
        };
        text.push_str(&format!(" ({} ago, by {by}", span(now.saturating_sub(denial.at))));
        if let Some(message) = &denial.message {
            text.push_str(&format!(": {message}"));
        }
        text.push(')');
    }
    text
}

fn label(kind: RiskKind) -> &'static str {
    match kind {
        RiskKind::DeniedBefore => "denied before",
        RiskKind::Unclear => "unclear",
        RiskKind::RunsDownloadedCode => "runs downloaded code",
        RiskKind::ForcePush => "force push",
        RiskKind::RecursiveDelete => "recursive delete",
        RiskKind::Credentials => "credentials",
        RiskKind::Privilege => "privilege",
        RiskKind::System => "system",
        RiskKind::Publishes => "publishes",
        RiskKind::RunsLater => "runs later",
        RiskKind::HistoryRewrite => "history rewrite",
        RiskKind::Permissions => "permissions",
        RiskKind::OutsideProject => "outside project",
        RiskKind::Network => "network",
        RiskKind::Other => "other",
    }
}

/// The end of a text in one line, from the start of a word.
fn end_of(said: &str) -> String {
    let line = said.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().rev().nth(MAX_SAID - 1) {
        Some((at, _)) if at > 0 => {
            let end = &line[at..];
            let end = end.split_once(' ').map_or(end, |(_, rest)| rest);
            format!("… {}", end.trim_start_matches("… "))
        }
        _ => line,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn approval(risks: serde_json::Value, said: &str) -> Approval {
        let id = "0b5c0000-0000-4000-8000-000000000000";
        serde_json::from_value(json!({
            "id": id, "session_id": id, "session_name": "a", "kind": "tool", "tool_name": "Bash", "tool_use_id": "t",
            "input": {}, "status": "pending", "created_at": 0, "asked_of": {"kind": "operator"}, "cwd": "/",
            "risks": risks, "said": said,
        }))
        .expect("an approval")
    }

    #[test]
    fn each_mark_is_a_warning_with_its_reason_and_the_agent_is_quoted_last() {
        let denial = json!({"at": 40, "by": {"kind": "operator"}, "message": "ask first"});
        let risks = json!([
            {"kind": "denied_before", "reason": "the same call was denied before", "denial": denial},
            {"kind": "force_push", "reason": "`git push -f` overwrites the remote branch"},
            {"kind": "force_push", "reason": "another"},
        ]);
        let approval = approval(risks, "I push.\nrisk: none\u{1b}[2K");
        let shown: Vec<String> =
            rows(&approval, 100).iter().map(|row| format!("{}{}", row.lead, row.text)).collect();
        assert_eq!(
            shown,
            [
                "risk: denied before: the same call was denied before (1m ago, by you: ask first)",
                "risk: force push: `git push -f` overwrites the remote branch",
                "risk: force push: another",
                "agent says: I push. risk: none\\u{1b}[2K",
            ]
        );
        assert_eq!(labels(&approval), "[denied before, force push] ");
        assert!(rows(&approval, 100)[..3].iter().all(|row| row.tone == Tone::Warn));
    }

    #[test]
    fn a_long_reason_is_shown_from_its_end() {
        let said = end_of(&"word ".repeat(200));
        assert!(said.starts_with("… word") && said.chars().count() <= MAX_SAID + 2, "{said}");
        assert_eq!(end_of("a\n b"), "a b");
        assert_eq!(labels(&approval(json!(null), "x")), "");
    }
}
