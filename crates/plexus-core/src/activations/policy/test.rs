//! `policy.test`: the outcome of a tool call under the current rules, and the rule that matches.

use std::sync::Arc;

use plexus_protocol::Error;
use plexus_protocol::policy::{Outcome, TestParams, TestResult};

use crate::Hub;
use crate::callers::access::{self, Admitted, Needs};
use crate::hub::Method;
use crate::method::{Audience, IfUnreachable, Subject};
use crate::policy::GateDecision;
use crate::policy::view;

pub(super) fn method() -> Method {
    Method::new(
        "policy.test",
        "Shows what would happen to a tool call of a session, and which rules decide it. Runs nothing and \
         requests no approval.",
        Audience::Programs,
        Needs::Read,
        test,
    )
    .repeatable()
    .on_host_of(Subject::Session, IfUnreachable::Fail)
}

async fn test(hub: Arc<Hub>, caller: Admitted, params: TestParams) -> Result<TestResult, Error> {
    let name = params.name.as_deref();
    let session = access::find_session(hub.store(), &caller, params.session_id, name).await?;
    let cwd = params.cwd.unwrap_or_else(|| session.config.working_dir.clone());
    let ruling = hub.policy().ruling(session, &params.tool_name, &params.input, &cwd).await?;
    let rules =
        ruling.rules.iter().filter_map(|number| view(&hub.policy().in_force.rule(*number)?)).collect();
    let outcome = match ruling.decision {
        GateDecision::Allow => Outcome::Allow,
        GateDecision::Deny => Outcome::Deny,
        GateDecision::Ask => Outcome::Ask,
        GateDecision::NoOpinion => Outcome::OwnCourse,
    };
    Ok(TestResult::Ok { outcome, why: ruling.why, rules })
}
