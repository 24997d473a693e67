//! Evaluating a hostile command line is fast: the parser needs one pass with a bounded depth. A line beyond the bounds needs approval.
#![cfg(test)]

use std::path::Path;
use std::time::{Duration, Instant};

use plexus_policy::{Authority, Call, Level, Policy, RuleEffect, RuleEntry, VerdictEffect};
use serde_json::json;

/// A generous limit for a debug build on a busy machine. Without the bounds an evaluation would take hours.
const LIMIT: Duration = Duration::from_secs(10);

#[test]
fn every_command_line_is_evaluated_quickly() {
    let rules = (0..100).map(|number| {
        let rule = match number % 4 {
            0 => format!("Bash(* x{number})"),
            1 => format!("Bash(rm -rf a{number}:*)"),
            2 => format!("Read(**/*.key{number})"),
            _ => format!("Bash(sudo * b{number} *)"),
        };
        let entry = RuleEntry::parse(&rule, RuleEffect::Deny).expect("a rule");
        entry.anchored(Path::new("/w"), None)
    });
    let level = Level { name: "root".to_owned(), authority: Authority::Root, rules: rules.collect() };
    let policy = Policy::new(vec![level]).expect("a policy");
    let mut quoted = "rm a".to_owned();
    for quote in ['\'', '"'].into_iter().cycle().take(12) {
        quoted = format!("sudo {quote}{}{quote}", quoted.replace(quote, ""));
    }
    for line in [
        "(".repeat(9_000),
        "$(".repeat(4_000),
        format!("{}a{}", "$((".repeat(1_000), "))".repeat(1_000)),
        "sudo ".repeat(1_900),
        "env ".repeat(2_400),
        "nice nohup command ".repeat(500),
        "sudo -a ".repeat(1_200),
        "ssh -a b -c ".repeat(800),
        "docker exec -a b ".repeat(580),
        "find -exec a ".repeat(760),
        "a -b ".repeat(1_900),
        "a -b c; ".repeat(1_200),
        format!("a {}", "'b -c d; e' ".repeat(800)),
        format!("a '{}'", "b ".repeat(4_900)),
        "sudo a b c; ".repeat(800),
        format!("sudo {}", "'sudo a b; sudo c d' ".repeat(400)),
        format!("rm -rf {} $X", "a ".repeat(4_500)),
        "$X ".repeat(3_000),
        "a/$X ".repeat(1_900),
        "a;".repeat(4_900),
        "`".repeat(9_999),
        "\\\n".repeat(4_900),
        "<<E ".repeat(2_000),
        "case a in ".repeat(900),
        "{ ".repeat(4_900),
        "x=".repeat(4_900),
        "a".repeat(10_000_000),
        quoted,
    ] {
        let input = json!({ "command": line });
        let start = Instant::now();
        let verdict = policy.evaluate(&Call {
            tool_name: "Bash",
            input: &input,
            cwd: Path::new("/w"),
            home: None,
            now: 0,
        });
        assert!(verdict.effect <= VerdictEffect::Unmentioned, "nothing here is allowed");
        let took = start.elapsed();
        assert!(took < LIMIT, "{}… took {took:?}", line.chars().take(40).collect::<String>());
    }
}
