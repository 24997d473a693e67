//! `policy.preview`: the approvals that a rule would resolve if an answer created it.

use std::sync::Arc;

use plexus_protocol::policy::{PreviewParams, PreviewResult, Remember};
use plexus_protocol::{ApprovalKind, ApprovalStatus, Error};

use crate::Hub;
use crate::approvals::answer::right_of;
use crate::callers::access::{self, Admitted, Needs};
use crate::hub::Method;
use crate::method::{Audience, IfUnreachable, Subject};
use crate::policy::Preview;

pub(super) fn method() -> Method {
    Method::new(
        "policy.preview",
        "Shows what a rule would do if you added it with the answer to an approval: whether it matches that \
         call, and which other open approvals it would resolve. Changes nothing.",
        Audience::Programs,
        Needs::Decide,
        preview,
    )
    .repeatable()
    .on_host_of(Subject::Approval, IfUnreachable::Fail)
}

async fn preview(hub: Arc<Hub>, caller: Admitted, params: PreviewParams) -> Result<PreviewResult, Error> {
    let PreviewParams { approval_id, rule, effect, session_id } = params;
    let (row, relation) = access::find_approval(hub.store(), &caller, approval_id).await?;
    right_of(relation)?;
    if row.approval.status != ApprovalStatus::Pending {
        return Ok(PreviewResult::AlreadyResolved { approval_id, status: row.approval.status });
    }
    if row.approval.kind == ApprovalKind::Budget {
        return Err(Error::invalid(
            "approval_id",
            "is a budget approval; no rule can be added with its answer",
        ));
    }
    let remember = Remember { rule, session_id, expires_secs: None };
    let Preview { rule, covers, resolves } =
        hub.policy().preview(&caller, &row, effect.unwrap_or_default(), remember).await?;
    Ok(PreviewResult::Ok { rule, covers, settles: resolves })
}
