//! Multi-round requests (MRTR): a request that needs input from its client returns what it needs, and the client repeats it with the
//! answers. With several rounds, the state is an unguessable handle, so that no other state is accepted.

use rmcp::ErrorData;
use rmcp::model::{ClientCapabilities, InputRequest, InputRequests, InputRequiredResult, InputResponses};
use serde_json::Value;
use uuid::Uuid;

/// The input of an attempt.
pub struct Attempt<'a> {
    pub responses: Option<&'a InputResponses>,
    pub state: Option<&'a str>,
    pub capabilities: Option<ClientCapabilities>,
}

/// The outcome of an attempt.
pub enum Outcome {
    /// All answers are present.
    Complete(InputResponses),
    /// Answers are missing.
    Required(InputRequiredResult),
}

/// The rounds of one tool or prompt.
pub struct Rounds {
    requests: Vec<InputRequests>,
    /// One per round, or none if the answers are enough.
    handles: Vec<String>,
}

impl Rounds {
    /// One round, without a state.
    pub fn one(requests: InputRequests) -> Self {
        Self { requests: vec![requests], handles: Vec::new() }
    }

    /// Rounds that are identified by the state.
    pub fn with_state(requests: Vec<InputRequests>) -> Self {
        let handles = requests.iter().map(|_| Uuid::new_v4().to_string()).collect();
        Self { requests, handles }
    }

    /// Evaluates an attempt: the next round, the same round again, or the end.
    pub fn after(&self, attempt: &Attempt<'_>) -> Result<Outcome, ErrorData> {
        let round = match attempt.state {
            Some(state) => self
                .handles
                .iter()
                .position(|handle| handle == state)
                .ok_or_else(|| ErrorData::invalid_params("this requestState is not one of ours", None))?,
            None => 0,
        };
        let state_is_there = attempt.state.is_some() || self.handles.is_empty();
        let answered = |key| {
            let response = attempt.responses.and_then(|responses| responses.get(key));
            response.is_some_and(Value::is_object)
        };
        let done = state_is_there && self.requests[round].keys().all(answered);
        let round = if done { round + 1 } else { round };
        let Some(requests) = self.requests.get(round) else {
            return Ok(Outcome::Complete(attempt.responses.cloned().unwrap_or_default()));
        };
        let able = attempt.capabilities.clone().unwrap_or_default();
        let requests: InputRequests = requests
            .iter()
            .filter(|(_, request)| can_answer(&able, request))
            .map(|(key, request)| (key.clone(), request.clone()))
            .collect();
        Ok(Outcome::Required(InputRequiredResult::new(Some(requests), self.handles.get(round).cloned())))
    }
}

fn can_answer(able: &ClientCapabilities, request: &InputRequest) -> bool {
    match request {
        InputRequest::CreateMessage(_) => able.sampling.is_some(),
        InputRequest::Elicitation(_) => able.elicitation.is_some(),
        InputRequest::ListRoots(_) => able.roots.is_some(),
        _ => false,
    }
}
