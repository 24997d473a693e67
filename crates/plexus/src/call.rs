//! `plexus NAMESPACE METHOD --flag value`: commands generated from the schema of the running hub, so that every method is a command with
//! its flags and help. A first word that is neither a verb nor a namespace may be a misspelt verb.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Command};
use plexus_server::methods;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::cli;
use crate::error::{ExpectedError, system};
use crate::hub::{HubClient, block_on};
use crate::output;
use crate::settings::DataDirArg;
use crate::suggest::closest;
use crate::terminal::one_line;

/// The id of the `--json` flag; no parameter has this name.
const JSON_FLAG: &str = "--json";

/// Calls the method named by the words.
pub(crate) fn run(words: Vec<OsString>) -> Result<(), ExpectedError> {
    let (words, data_dir) = take_data_dir(words)?;
    let hub = HubClient::of(&data_dir)?;
    block_on(async {
        let found = hub.client.call("rpc.discover", json!({})).await;
        // Without a hub, the methods of a hub of this version give help and find invalid words.
        let schema = found.as_ref().map_or_else(|_| Schema::of_this_version(), Schema::read)?;
        let (method, params) = parse(&schema, words)?;
        check_digests(&method, &params)?;
        found.map_err(|error| hub.explain(error))?;
        let result: Value = hub.call(&method, Value::Object(params)).await?;
        output::print(&serde_json::to_string_pretty(&result).map_err(system)?);
        Ok(())
    })
}

/// The error for a word that is neither a verb nor a namespace.
fn unknown(word: &str, namespaces: &[&str]) -> ExpectedError {
    let program = cli::command();
    let verbs = program.get_subcommands().filter(|verb| !verb.is_hide_set()).map(Command::get_name);
    let shown = one_line(word, 60);
    ExpectedError::Usage(match closest(word, verbs.chain(namespaces.iter().copied())) {
        Some(name) => format!("`{shown}` is not a command; did you mean `plexus {name}`?"),
        None => format!(
            "`{shown}` is neither a command nor a namespace of the hub; its namespaces are {}; `plexus --help` lists the commands",
            namespaces.join(", ")
        ),
    })
}

/// Extracts `--data-dir`, which selects the hub whose schema describes the other words.
pub(crate) fn take_data_dir(words: Vec<OsString>) -> Result<(Vec<OsString>, DataDirArg), ExpectedError> {
    let mut given = std::env::var_os("PLEXUS_DATA_DIR").map(PathBuf::from);
    let mut rest = Vec::with_capacity(words.len());
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        if word == "--data-dir" {
            let dir = words
                .next()
                .ok_or_else(|| ExpectedError::Usage("--data-dir needs a directory".to_owned()))?;
            given = Some(dir.into());
        } else if let Some(dir) = word.to_str().and_then(|word| word.strip_prefix("--data-dir=")) {
            given = Some(dir.into());
        } else {
            rest.push(word);
        }
    }
    Ok((rest, DataDirArg { data_dir: given }))
}

/// The part of the OpenRPC document that commands are generated from.
#[derive(Debug, Deserialize)]
pub(crate) struct Schema {
    methods: Vec<Method>,
}

#[derive(Debug, Deserialize)]
struct Method {
    name: String,
    #[serde(default)]
    summary: String,
    #[serde(default)]
    params: Vec<Param>,
}

#[derive(Debug, Deserialize)]
struct Param {
    name: String,
    #[serde(default)]
    required: bool,
    #[serde(default)]
    schema: Map<String, Value>,
}

impl Param {
    fn kind(&self) -> Option<&str> {
        self.schema.get("type").and_then(Value::as_str)
    }

    fn arg(&self) -> Arg {
        let help = self.schema.get("description").and_then(Value::as_str).unwrap_or_default().to_owned();
        let value_name = match self.kind() {
            Some("boolean") => "true|false",
            Some("integer" | "number") => "NUMBER",
            Some("object" | "array") => "JSON",
            _ => "TEXT",
        };
        let arg = Arg::new(self.name.clone())
            .long(kebab(&self.name))
            .aliases(wire_name(&self.name))
            .help(help)
            .value_name(value_name)
            .required(self.required)
            .allow_hyphen_values(true);
        // `--approve` alone means true.
        if self.kind() == Some("boolean") { arg.num_args(0..=1).default_missing_value("true") } else { arg }
    }

    /// The value of the flag as JSON for the method.
    fn value(&self, text: &str) -> Result<Value, ExpectedError> {
        let json = || serde_json::from_str::<Value>(text);
        let wrong =
            |wanted: &str| ExpectedError::Usage(format!("--{}: `{text}` is not {wanted}", kebab(&self.name)));
        match self.kind() {
            Some("string") if self.name == "working_dir" => {
                let path = std::path::absolute(text).map_err(|_| wrong("a path"))?;
                Ok(Value::String(path.to_string_lossy().into_owned()))
            }
            Some("string") => Ok(Value::String(text.to_owned())),
            Some("boolean") => text.parse().map(Value::Bool).map_err(|_| wrong("true or false")),
            Some("integer" | "number") => {
                json().ok().filter(Value::is_number).ok_or_else(|| wrong("a number"))
            }
            Some("object") => json().ok().filter(Value::is_object).ok_or_else(|| wrong("a JSON object")),
            Some("array") => json().ok().filter(Value::is_array).ok_or_else(|| wrong("a JSON array")),
            _ => Ok(json().unwrap_or_else(|_| Value::String(text.to_owned()))),
        }
    }
}

/// A wire name as a word of the command line.
fn kebab(name: &str) -> String {
    name.replace('_', "-")
}

/// The wire name, which is accepted as well, if it differs from the word.
fn wire_name(name: &str) -> Option<String> {
    name.contains('_').then(|| name.to_owned())
}

/// The flag of every other verb. A result of a method is always JSON.
fn json_arg() -> Arg {
    Arg::new(JSON_FLAG)
        .long("json")
        .action(ArgAction::SetTrue)
        .help("Accepted for consistency; the output is always JSON")
}

/// The method named by the words, and its parameters. Help and invalid words end the process here, as for the other verbs.
fn parse(schema: &Schema, words: Vec<OsString>) -> Result<(String, Map<String, Value>), ExpectedError> {
    let name = words.first().map(|word| word.to_string_lossy().into_owned()).unwrap_or_default();
    let namespace = schema.namespace(&name)?;
    let program = Command::new("plexus").subcommand(namespace).subcommand_required(true);
    let words = std::iter::once(OsString::from("plexus")).chain(words);
    let matches = program.try_get_matches_from(words).unwrap_or_else(|error| error.exit());
    let (verb, matches) = matches
        .subcommand()
        .and_then(|(_, matches)| matches.subcommand())
        .ok_or_else(|| ExpectedError::Usage(format!("`plexus {name} --help` lists the methods")))?;
    let full = format!("{name}.{}", verb.replace('-', "_"));
    let method = schema
        .methods
        .iter()
        .find(|method| method.name == full)
        .ok_or_else(|| ExpectedError::Usage(format!("the hub has no method `{full}`")))?;
    Ok((full, params(method, matches)?))
}

impl Schema {
    fn read(document: &Value) -> Result<Self, ExpectedError> {
        Self::deserialize(document).map_err(system)
    }

    /// The methods of a hub of this version.
    pub(crate) fn of_this_version() -> Result<Self, ExpectedError> {
        Self::read(&methods().openrpc())
    }

    /// Whether there is this method.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.methods.iter().any(|method| method.name == name)
    }

    /// The namespaces, each once.
    pub(crate) fn namespaces(&self) -> Vec<&str> {
        let mut known: Vec<&str> =
            self.methods.iter().filter_map(|method| Some(method.name.split_once('.')?.0)).collect();
        known.dedup();
        known
    }

    /// The command with the methods of this namespace as subcommands.
    pub(crate) fn namespace(&self, name: &str) -> Result<Command, ExpectedError> {
        let methods: Vec<(&str, &Method)> = self
            .methods
            .iter()
            .filter_map(|method| Some((method.name.strip_prefix(name)?.strip_prefix('.')?, method)))
            .collect();
        if methods.is_empty() {
            return Err(unknown(name, &self.namespaces()));
        }
        let command = Command::new(name.to_owned()).subcommand_required(true).arg_required_else_help(true);
        Ok(command.subcommands(methods.into_iter().map(|(verb, method)| {
            Command::new(kebab(verb))
                .aliases(wire_name(verb))
                .about(method.summary.clone())
                .args(method.params.iter().map(Param::arg))
                .arg(json_arg())
                .after_help("--data-dir DIR selects the hub of that data directory.")
        })))
    }
}

/// An answer that allows a call must contain the digest of the call, as with `plexus approve`: no command allows a call unseen.
fn check_digests(method: &str, params: &Map<String, Value>) -> Result<(), ExpectedError> {
    if method != "loopback.respond" {
        return Ok(());
    }
    let each = params.get("decisions").and_then(Value::as_array).into_iter().flatten();
    let answers = each.filter_map(Value::as_object).chain([params]);
    for answer in answers {
        if answer.get("approve") == Some(&Value::Bool(true)) && !answer.contains_key("digest") {
            let message = "an answer that allows a call needs the digest of the call you read: --digest, or `digest` in each of \
                           --decisions (`plexus approvals` prints it)";
            return Err(ExpectedError::Usage(message.to_owned()));
        }
    }
    Ok(())
}

fn params(method: &Method, matches: &ArgMatches) -> Result<Map<String, Value>, ExpectedError> {
    let mut params = Map::new();
    for param in &method.params {
        if let Some(text) = matches.get_one::<String>(&param.name) {
            params.insert(param.name.clone(), param.value(text)?);
        }
    }
    Ok(params)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema() -> Schema {
        serde_json::from_value(json!({"methods": [
            {"name": "claudecode.chat_async", "summary": "Starts a turn.", "params": [
                {"name": "name", "schema": {"type": "string"}},
                {"name": "prompt", "required": true, "schema": {"type": "string"}},
            ]},
            {"name": "claudecode.create", "params": [
                {"name": "working_dir", "required": true, "schema": {"type": "string"}},
                {"name": "env", "schema": {"type": "object"}},
                {"name": "channel", "schema": {"oneOf": []}},
            ]},
            {"name": "loopback.respond", "params": [
                {"name": "approve", "schema": {"type": "boolean"}},
                {"name": "cursor", "schema": {"type": "integer"}},
                {"name": "decisions", "schema": {"type": "array"}},
            ]},
        ]}))
        .unwrap()
    }

    fn parsed(line: &[&str]) -> Result<(String, Value), String> {
        parse(&schema(), line.iter().map(OsString::from).collect())
            .map(|(method, params)| (method, Value::Object(params)))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn flags_become_the_parameters_of_the_method() {
        let (method, params) =
            parsed(&["claudecode", "chat-async", "--name", "a", "--prompt", "-x 7"]).unwrap();
        assert_eq!(
            (method.as_str(), params),
            ("claudecode.chat_async", json!({"name": "a", "prompt": "-x 7"}))
        );
        let respond = ["loopback", "respond", "--approve", "false", "--cursor", "7", "--decisions", "[{}]"];
        assert_eq!(parsed(&respond).unwrap().1, json!({"approve": false, "cursor": 7, "decisions": [{}]}));
        assert_eq!(parsed(&["loopback", "respond", "--approve"]).unwrap().1, json!({"approve": true}));
    }

    #[test]
    fn names_of_the_wire_are_accepted_too() {
        let snake = parsed(&["claudecode", "chat_async", "--prompt", "x", "--json"]).unwrap();
        assert_eq!(snake, ("claudecode.chat_async".to_owned(), json!({"prompt": "x"})));
        let (_, params) = parsed(&["claudecode", "create", "--working_dir", "/w"]).unwrap();
        assert_eq!(params, json!({"working_dir": "/w"}));
    }

    #[test]
    fn no_command_allows_a_call_unseen() {
        let allowed = |params: Value| check_digests("loopback.respond", params.as_object().unwrap()).is_ok();
        assert!(!allowed(json!({"approve": true})));
        assert!(!allowed(json!({"approve": true, "updated_input": {}})));
        assert!(!allowed(json!({"decisions": [{"approve": true, "digest": "d"}, {"approve": true}]})));
        assert!(allowed(json!({"approve": true, "digest": "d"})));
        assert!(allowed(json!({"approve": false})));
        assert!(allowed(json!({"decisions": [{"approve": true, "digest": "d"}, {"approve": false}]})));
        assert!(check_digests("other.respond", json!({"approve": true}).as_object().unwrap()).is_ok());
    }

    #[test]
    fn a_relative_working_directory_starts_at_the_current_one() {
        let line =
            ["claudecode", "create", "--working-dir", ".", "--channel", "mcp", "--env", "{\"A\":\"1\"}"];
        let (_, params) = parsed(&line).unwrap();
        assert_eq!(params["working_dir"], std::env::current_dir().unwrap().to_string_lossy().as_ref());
        assert_eq!((&params["channel"], &params["env"]), (&json!("mcp"), &json!({"A": "1"})));
    }

    #[test]
    fn an_invalid_argument_is_named_in_the_error() {
        assert!(parsed(&["loopback", "respond", "--cursor", "soon"]).unwrap_err().contains("--cursor"));
        assert!(parsed(&["loopback", "respond", "--approve", "perhaps"]).unwrap_err().contains("perhaps"));
        assert!(
            parsed(&["claudecode", "create", "--working-dir", ".", "--env", "[]"])
                .unwrap_err()
                .contains("--env")
        );
        let unknown = parsed(&["frobnicate", "now"]).unwrap_err();
        assert!(unknown.contains("claudecode, loopback"), "{unknown}");
    }

    #[test]
    fn a_misspelt_verb_or_namespace_is_suggested() {
        for (typed, suggested) in
            [("aprove", "approve"), ("lst", "ls"), ("loopbak", "loopback"), ("statsu", "status")]
        {
            let message = parsed(&[typed]).unwrap_err();
            assert!(message.contains(&format!("did you mean `plexus {suggested}`?")), "{message}");
        }
        let unlike = parsed(&["frobnicate"]).unwrap_err();
        assert!(unlike.contains("`plexus --help` lists the commands"), "{unlike}");
    }

    #[test]
    fn the_data_dir_flag_may_be_at_any_position() {
        let words = |line: &[&str]| line.iter().map(OsString::from).collect::<Vec<_>>();
        let (rest, dir) = take_data_dir(words(&["a", "--data-dir", "/d", "b"])).unwrap();
        assert_eq!((rest, dir.data_dir), (words(&["a", "b"]), Some("/d".into())));
        let (rest, dir) = take_data_dir(words(&["a", "b", "--data-dir=/e"])).unwrap();
        assert_eq!((rest, dir.data_dir), (words(&["a", "b"]), Some("/e".into())));
        assert!(take_data_dir(words(&["a", "--data-dir"])).is_err());
    }
}
