//! Parses a prompt into steps: the script language that the crate documentation describes, the caller's scripts for prompts in
//! plain text, and the default script for any other text. An invalid script is an error that names the step.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::Scripts;

#[derive(Debug, PartialEq)]
pub(crate) enum Step {
    Say(String),
    Tools { calls: Vec<Call>, order: Order },
    Flood { events: usize, bytes: usize },
    Clock { events: usize, every: Duration },
    Replay(PathBuf),
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
pub(crate) struct Call {
    pub tool: String,
    pub input: Map<String, Value>,
    pub id: Option<String>,
    /// The reason in its permission request.
    pub reason: Option<String>,
    pub conduct: Conduct,
}

/// How a call reacts to the gate.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub(crate) enum Conduct {
    Obeys,
    /// As `Obeys`, but a denial ends the turn.
    StopsWhenDenied,
    SkipsGate,
    IgnoresDenial,
    IgnoresQuestion,
}

/// How the calls of one message follow each other.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub(crate) enum Order {
    OneByOne,
    AtOnce,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum ScriptError {
    #[error("the script cannot be read: {0}")]
    Json(#[from] serde_json::Error),
    #[error("step {step} of the script {problem}")]
    Step { step: usize, problem: String },
}

/// The steps of a prompt.
pub(crate) fn parse(prompt: &str, working_dir: &Path, scripts: Scripts) -> Result<Vec<Step>, ScriptError> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Script {
        steps: Vec<StepForm>,
    }
    let prompt = prompt.trim();
    let forms = match prompt.chars().next() {
        Some('{') => serde_json::from_str::<Script>(prompt)?.steps,
        Some('[') => serde_json::from_str(prompt)?,
        // The hub wakes a session with its own prompt.
        _ if prompt.starts_with("Plexus: ") => return Ok(vec![Step::Say("I am awake.".to_owned())]),
        _ => match scripts(prompt, working_dir) {
            Some(steps) => serde_json::from_value(steps)?,
            None => return Ok(default_script(prompt)),
        },
    };
    let steps = forms.into_iter().enumerate();
    steps.map(|(step, form)| form.step().map_err(|problem| ScriptError::Step { step, problem })).collect()
}

/// One step as written. All keys are fields instead of enum variants, because the error messages are better.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct StepForm {
    say: Option<String>,
    tool: Option<String>,
    input: Map<String, Value>,
    id: Option<String>,
    reason: Option<String>,
    big_input: usize,
    stop_when_denied: bool,
    skip_gate: bool,
    ignore_denial: bool,
    ignore_question: bool,
    tools: Option<Vec<StepForm>>,
    parallel: bool,
    flood: Option<FloodForm>,
    clock: Option<ClockForm>,
    replay: Option<PathBuf>,
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

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ClockForm {
    events: usize,
    every_ms: u64,
}

impl ClockForm {
    fn step(self) -> Step {
        Step::Clock { events: self.events, every: Duration::from_millis(self.every_ms) }
    }
}

impl StepForm {
    fn step(mut self) -> Result<Step, String> {
        let order = if self.parallel { Order::AtOnce } else { Order::OneByOne };
        let once = if self.cancel_open { self.wait_file.take() } else { None };
        let mut steps: Vec<Step> = [
            self.say.take().map(Step::Say),
            self.flood.take().map(|FloodForm { events, bytes }| Step::Flood { events, bytes }),
            self.clock.take().map(ClockForm::step),
            self.replay.take().map(Step::Replay),
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
        let chosen = [
            self.stop_when_denied.then_some(Conduct::StopsWhenDenied),
            self.skip_gate.then_some(Conduct::SkipsGate),
            self.ignore_denial.then_some(Conduct::IgnoresDenial),
            self.ignore_question.then_some(Conduct::IgnoresQuestion),
        ];
        let mut chosen = chosen.into_iter().flatten();
        let conduct = match (chosen.next(), chosen.next()) {
            (None, _) => Conduct::Obeys,
            (Some(conduct), None) => conduct,
            (Some(_), Some(_)) => return Err("reacts to the gate in more than one way".to_owned()),
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

/// The steps for a prompt in plain text without a script: one Bash call and one Write.
fn default_script(prompt: &str) -> Vec<Step> {
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

    fn parse(prompt: &str) -> Result<Vec<Step>, ScriptError> {
        let scripts: Scripts =
            |prompt, working_dir| (prompt == "where").then(|| json!([{"say": working_dir}]));
        super::parse(prompt, Path::new("/work"), scripts)
    }

    #[test]
    fn a_script_is_parsed_step_by_step() {
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
        let clock = Step::Clock { events: 2, every: Duration::from_millis(5) };
        assert_eq!(parse(r#"[{"clock":{"events":2,"every_ms":5}}]"#).unwrap(), [clock]);
    }

    #[test]
    fn an_invalid_script_is_refused_with_the_step() {
        let problem = |script| parse(script).unwrap_err().to_string();
        assert!(problem(r#"[{"say":"a"},{"sya":"b"}]"#).contains("unknown field `sya`"));
        let two_ways = r#"[{"tool":"Bash","skip_gate":true,"stop_when_denied":true}]"#;
        assert_eq!(problem(two_ways), "step 0 of the script reacts to the gate in more than one way");
        assert_eq!(problem(r#"[{"say":"a"},{}]"#), "step 1 of the script does nothing");
        assert_eq!(problem(r#"[{"say":"a","exit":1}]"#), "step 0 of the script does more than one thing");
        assert!(problem("{not json").contains("cannot be read"));
    }

    #[test]
    fn a_prompt_that_the_caller_knows_gets_the_callers_script() {
        assert_eq!(parse(" where\n").unwrap(), [Step::Say("/work".to_owned())]);
    }

    #[test]
    fn other_plain_text_gets_the_default_script() {
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
