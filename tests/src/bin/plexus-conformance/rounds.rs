//! Answers in rounds (MRTR): a request that needs something of its client says what, and the client tries again with
//! the answers. Where there are several rounds, the state that travels with them is a handle that only we can have
//! made, so that no other is taken.

use rmcp::ErrorData;
use rmcp::model::{ClientCapabilities, InputRequest, InputRequests, InputRequiredResult, InputResponses};
use serde_json::Value;
use uuid::Uuid;

/// What a try brought along.
pub struct Try<'a> {
    pub responses: Option<&'a InputResponses>,
    pub state: Option<&'a str>,
    pub capabilities: Option<ClientCapabilities>,
}

/// What becomes of a try.
pub enum Outcome {
    /// Everything is there.
    Complete(InputResponses),
    /// Something is missing.
    Required(InputRequiredResult),
}

/// The rounds of one tool or prompt.
pub struct Rounds {
    requests: Vec<InputRequests>,
    /// One for each round, or none where the answers alone say it all.
    handles: Vec<String>,
}

impl Rounds {
    /// One round, without a state.
    pub fn one(requests: InputRequests) -> Self {
        Self { requests: vec![requests], handles: Vec::new() }
    }

    /// Rounds that are told apart by the state.
    pub fn with_state(requests: Vec<InputRequests>) -> Self {
        let handles = requests.iter().map(|_| Uuid::new_v4().to_string()).collect();
        Self { requests, handles }
    }

    /// Looks at a try: the next round, the same one again, or the end.
    pub fn after(&self, tried: &Try<'_>) -> Result<Outcome, ErrorData> {
        let round = match tried.state {
            Some(state) => self
                .handles
                .iter()
                .position(|handle| handle == state)
                .ok_or_else(|| ErrorData::invalid_params("this requestState is not one of ours", None))?,
            None => 0,
        };
        let state_is_there = tried.state.is_some() || self.handles.is_empty();
        let answered = |key| {
            let response = tried.responses.and_then(|responses| responses.get(key));
            response.is_some_and(Value::is_object)
        };
        let done = state_is_there && self.requests[round].keys().all(answered);
        let round = if done { round + 1 } else { round };
        let Some(requests) = self.requests.get(round) else {
            return Ok(Outcome::Complete(tried.responses.cloned().unwrap_or_default()));
        };
        let able = tried.capabilities.clone().unwrap_or_default();
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
