//! From a prompt to what the agent does: the script language of [`super`], and the demo's script for plain text. A
//! script that cannot be read is an error that names the step, never a guess.

use std::path::PathBuf;

use serde::Deserialize;
use serde_json::{Map, Value, json};

#[derive(Debug, PartialEq)]
pub(super) enum Step {
    Say(String),
    Tools { calls: Vec<Call>, order: Order },
    Flood { events: usize, bytes: usize },
    BigLine { bytes: usize },
    Raw(Vec<u8>),
    CancelOpen { once: Option<PathBuf> },
    UnknownRequest(String),
    Stderr(String),
    WaitFile(PathBuf),
    ResultError(String),
    Exit(i32),
}

#[derive(Debug, PartialEq, Clone)]
pub(super) struct Call {
    pub tool: String,
    pub input: Map<String, Value>,
    pub id: Option<String>,
    /// Why it says that it asks.
    pub reason: Option<String>,
    pub conduct: Conduct,
}

/// Whether a call heeds the gate.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub(super) enum Conduct {
    Obeys,
    SkipsGate,
    IgnoresDenial,
    IgnoresQuestion,
}

/// How the calls of one message follow each other.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub(super) enum Order {
    OneByOne,
    AtOnce,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum ScriptError {
    #[error("the script cannot be read: {0}")]
    Json(#[from] serde_json::Error),
    #[error("step {step} of the script {problem}")]
    Step { step: usize, problem: String },
}

/// The steps that a prompt asks for.
pub(super) fn parse(prompt: &str) -> Result<Vec<Step>, ScriptError> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Script {
        steps: Vec<StepForm>,
    }
    let prompt = prompt.trim();
    let forms = match prompt.chars().next() {
        Some('{') => serde_json::from_str::<Script>(prompt)?.steps,
        Some('[') => serde_json::from_str(prompt)?,
        // The hub's own words, to a session that it wakes.
        _ if prompt.starts_with("Plexus: ") => return Ok(vec![Step::Say("I am awake.".to_owned())]),
        _ => return Ok(demo(prompt)),
    };
    let steps = forms.into_iter().enumerate();
    steps.map(|(step, form)| form.step().map_err(|problem| ScriptError::Step { step, problem })).collect()
}

/// One step as written. All keys are fields here, rather than variants of an enum, for the sake of the error messages.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct StepForm {
    say: Option<String>,
    tool: Option<String>,
    input: Map<String, Value>,
    id: Option<String>,
    reason: Option<String>,
    big_input: usize,
    skip_gate: bool,
    ignore_denial: bool,
    ignore_question: bool,
    tools: Option<Vec<StepForm>>,
    parallel: bool,
    flood: Option<FloodForm>,
    big_line: Option<usize>,
    raw: Option<String>,
    raw_partial: Option<Value>,
    cancel_open: bool,
    unknown_request: Option<String>,
    stderr: Option<String>,
    wait_file: Option<PathBuf>,
    result_error: Option<String>,
    exit: Option<i32>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FloodForm {
    events: usize,
    bytes: usize,
}

impl StepForm {
    fn step(mut self) -> Result<Step, String> {
        let order = if self.parallel { Order::AtOnce } else { Order::OneByOne };
        let once = if self.cancel_open { self.wait_file.take() } else { None };
        let mut steps: Vec<Step> = [
            self.say.take().map(Step::Say),
            self.flood.take().map(|FloodForm { events, bytes }| Step::Flood { events, bytes }),
            self.big_line.map(|bytes| Step::BigLine { bytes }),
            self.raw.take().map(|line| Step::Raw(format!("{line}\n").into_bytes())),
            self.raw_partial.take().map(bytes).transpose()?.map(Step::Raw),
            self.cancel_open.then_some(Step::CancelOpen { once }),
            self.unknown_request.take().map(Step::UnknownRequest),
            self.stderr.take().map(Step::Stderr),
            self.wait_file.take().map(Step::WaitFile),
            self.result_error.take().map(Step::ResultError),
            self.exit.map(Step::Exit),
        ]
        .into_iter()
        .flatten()
        .collect();
        if let Some(calls) = self.tools.take() {
            let calls = calls.into_iter().map(StepForm::call).collect::<Result<_, _>>()?;
            steps.push(Step::Tools { calls, order });
        }
        if self.tool.is_some() {
            steps.push(Step::Tools { calls: vec![self.call()?], order });
        }
        match (steps.pop(), steps.pop()) {
            (Some(step), None) => Ok(step),
            (None, _) => Err("does nothing".to_owned()),
            (Some(_), Some(_)) => Err("does more than one thing".to_owned()),
        }
    }

    fn call(mut self) -> Result<Call, String> {
        let conduct = match (self.skip_gate, self.ignore_denial, self.ignore_question) {
            (false, false, false) => Conduct::Obeys,
            (true, false, false) => Conduct::SkipsGate,
            (false, true, false) => Conduct::IgnoresDenial,
            (false, false, true) => Conduct::IgnoresQuestion,
            _ => return Err("bypasses the gate in more than one way".to_owned()),
        };
        if self.big_input > 0 {
            self.input.insert("padding".to_owned(), "x".repeat(self.big_input).into());
        }
        let tool = self.tool.ok_or("names no tool")?;
        Ok(Call { tool, input: self.input, id: self.id, reason: self.reason, conduct })
    }
}

fn bytes(raw: Value) -> Result<Vec<u8>, String> {
    match raw {
        Value::String(text) => Ok(text.into_bytes()),
        numbers => serde_json::from_value(numbers)
            .map_err(|_| "has neither text nor bytes in raw_partial".to_owned()),
    }
}

fn demo(prompt: &str) -> Vec<Step> {
    let call = |tool: &str, input: Value| Step::Tools {
        calls: vec![Call {
            tool: tool.to_owned(),
            input: input.as_object().cloned().unwrap_or_default(),
            id: None,
            reason: None,
            conduct: Conduct::Obeys,
        }],
        order: Order::OneByOne,
    };
    let first_line: String = prompt.lines().next().unwrap_or_default().chars().take(80).collect();
    vec![
        Step::Say(format!("You asked: \"{first_line}\". I will look around first, then leave you a note.")),
        call("Bash", json!({"command":"ls -la","description":"List the files in this folder"})),
        call(
            "Write",
            json!({"file_path":"hello-from-plexus.txt","content":"This file was written with your permission.\n"}),
        ),
        Step::Say("Done: the note is in hello-from-plexus.txt, if you allowed it.".to_owned()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_read_step_by_step() {
        let steps = parse(
            r#"{"steps":[{"say":"a"},{"tool":"Bash","input":{"command":"ls"},"id":"t1"},
            {"tools":[{"tool":"Read"},{"tool":"Read","skip_gate":true}],"parallel":true},
            {"raw_partial":[195]},{"raw_partial":"x"},{"cancel_open":true,"wait_file":"f"},{"wait_file":"g"},{"exit":3}]}"#,
        )
        .unwrap();
        assert_eq!(steps.len(), 8);
        assert!(
            matches!(&steps[2], Step::Tools { calls, order: Order::AtOnce } if calls[1].conduct == Conduct::SkipsGate)
        );
        assert_eq!(steps[3], Step::Raw(vec![195]));
        assert_eq!(steps[5], Step::CancelOpen { once: Some("f".into()) });
        assert_eq!(steps[6], Step::WaitFile("g".into()));
        assert_eq!(parse(r#"[{"exit":3}]"#).unwrap(), [Step::Exit(3)]);
    }

    #[test]
    fn a_script_with_a_mistake_is_refused_by_step() {
        let problem = |script| parse(script).unwrap_err().to_string();
        assert!(problem(r#"[{"say":"a"},{"sya":"b"}]"#).contains("unknown field `sya`"));
        assert_eq!(problem(r#"[{"say":"a"},{}]"#), "step 1 of the script does nothing");
        assert_eq!(problem(r#"[{"say":"a","exit":1}]"#), "step 0 of the script does more than one thing");
        assert!(problem("{not json").contains("cannot be read"));
    }

    #[test]
    fn plain_text_gets_the_demo() {
        let tools: Vec<_> = parse("please help")
            .unwrap()
            .into_iter()
            .filter_map(
                |step| if let Step::Tools { calls, .. } = step { Some(calls[0].tool.clone()) } else { None },
            )
            .collect();
        assert_eq!(tools, ["Bash", "Write"]);
    }
}
