//! Methods: each is declared once, with its types. All doors, the schema and the tools for agents are derived from that
//! declaration. The registry looks up a method, parses its parameters and serialises its result; the activation
//! implements the method.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use plexus_protocol::schema::{self, NamedSchemas};
use plexus_protocol::{Error, ErrorKind, Object};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::callers::access::{Admitted, Needs};

/// Marks a parameter in a schema that only the operator may pass. It is not part of the tools of agents.
const OPERATOR_ONLY: &str = "x-plexus-operator";

/// Who gets a method as a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audience {
    /// Programs and people, only on `/rpc`.
    Programs,
    /// Parent agents as well, on `/mcp`.
    Agents,
    /// The supervised children themselves: the permission prompt.
    Children,
}

/// The user of the tools, which determines the tools that are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolUser {
    /// The operator's programs, and parent agents outside the hub.
    Parent,
    /// A supervised child: it may only request permission.
    Child,
    /// A supervised child that also has the hub's tools.
    ChildWithHubTools,
}

impl ToolUser {
    fn is_shown(self, audience: Audience) -> bool {
        match audience {
            Audience::Programs => false,
            Audience::Agents => self != Self::Child,
            Audience::Children => self != Self::Parent,
        }
    }
}

/// Whether a client may repeat a call that got no response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeat {
    /// It may: the method only reads, or is idempotent.
    Safe,
    /// It may not: the call could take effect twice.
    Unsafe,
}

/// Which hub executes a method, if several share a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The hub that is called.
    AnyHub,
    /// The hub of the host that runs the session: it has the processes and the files.
    HostOf(Subject, IfUnreachable),
}

/// What the parameters of a method name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// A session, as `session_id` or `name`.
    Session,
    /// An approval, as `approval_id`.
    Approval,
    /// A host, as `host`; none for the host of the hub that is called.
    Host,
}

/// What becomes of a call if the host of its session is unreachable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfUnreachable {
    /// It fails.
    Fail,
    /// The hub that is called executes the method, without the files of the host.
    ExecuteHere,
    /// The same, if the host was declared lost. Otherwise it fails.
    ExecuteHereIfLost,
}

type Handler<C> =
    Arc<dyn Fn(Arc<C>, Admitted, Value) -> BoxFuture<'static, Result<Value, Error>> + Send + Sync>;

/// A declared method. `C` is the context of its function: the hub.
pub struct Method<C> {
    /// Its name, such as `claudecode.create`.
    pub name: &'static str,
    /// What it does, for people and agents.
    pub summary: &'static str,
    /// Who gets it as a tool.
    pub audience: Audience,
    /// The access that it needs.
    pub needs: Needs,
    /// Whether a client may repeat a call that got no response.
    pub repeat: Repeat,
    /// Which hub executes it.
    pub place: Place,
    /// The schema of its parameters.
    pub params: Object,
    /// The schema of its result.
    pub result: Object,
    types: fn(&mut NamedSchemas) -> MethodTypes,
    handler: Handler<C>,
}

/// The types of a method, as schemas that refer to other types by name.
#[derive(Debug, Clone)]
pub struct MethodTypes {
    /// The parameters.
    pub params: Value,
    /// The result.
    pub result: Value,
}

impl<C: Send + Sync + 'static> Method<C> {
    /// Declares a method: its name, its summary, its audience, the access it needs, and its function.
    pub fn new<P, R, F, Fut>(
        name: &'static str,
        summary: &'static str,
        audience: Audience,
        needs: Needs,
        function: F,
    ) -> Self
    where
        P: DeserializeOwned + JsonSchema + Send + 'static,
        R: Serialize + JsonSchema,
        F: Fn(Arc<C>, Admitted, P) -> Fut + Send + Sync + Copy + 'static,
        Fut: Future<Output = Result<R, Error>> + Send + 'static,
    {
        let known = schema::of::<P>();
        Self::raw::<P, _, _, _>(name, summary, audience, needs, move |hub, caller, value| {
            let parsed = read_params::<P>(&known, value);
            async move { function(hub, caller, parsed?).await }
        })
    }

    /// Declares a method that parses its parameters itself, because it has a result even for invalid ones.
    pub fn raw<P, R, F, Fut>(
        name: &'static str,
        summary: &'static str,
        audience: Audience,
        needs: Needs,
        function: F,
    ) -> Self
    where
        P: JsonSchema,
        R: Serialize + JsonSchema,
        F: Fn(Arc<C>, Admitted, Value) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, Error>> + Send + 'static,
    {
        let handler: Handler<C> = Arc::new(move |hub, caller, value| {
            let answer = function(hub, caller, value);
            // An async block would store `answer` twice: as a captured value, and while it waits for it.
            answer.map(|answer| write_result(&answer?)).boxed()
        });
        Self {
            name,
            summary,
            audience,
            needs,
            repeat: Repeat::Unsafe,
            place: Place::AnyHub,
            params: schema::of::<P>(),
            result: schema::of::<R>(),
            types: |schemas| MethodTypes { params: schemas.read::<P>(), result: schemas.written::<R>() },
            handler,
        }
    }

    /// Declares that a client may repeat a call that got no response.
    #[must_use]
    pub fn repeatable(mut self) -> Self {
        self.repeat = Repeat::Safe;
        self
    }

    /// Declares that the hub of the host that runs the session executes the method.
    #[must_use]
    pub fn on_host_of(mut self, subject: Subject, if_unreachable: IfUnreachable) -> Self {
        self.place = Place::HostOf(subject, if_unreachable);
        self
    }

    /// The types of its parameters and result, for generated clients.
    pub fn types(&self, schemas: &mut NamedSchemas) -> MethodTypes {
        (self.types)(schemas)
    }

    /// The schema of its parameters as an MCP tool, without the parameters that only the operator may pass.
    pub fn tool_params(&self) -> Object {
        let mut params = self.params.clone();
        if let Some(properties) = params.get_mut("properties").and_then(Value::as_object_mut) {
            properties.retain(|_, property| property.get(OPERATOR_ONLY).is_none());
        }
        params
    }

    /// The name of this method as an MCP tool.
    pub fn tool_name(&self) -> String {
        self.name.replace('.', "_")
    }
}

fn write_result(result: &impl Serialize) -> Result<Value, Error> {
    serde_json::to_value(result)
        .map_err(|error| Error::new(ErrorKind::Internal, format!("cannot serialize the result: {error}")))
}

impl<C> Clone for Method<C> {
    fn clone(&self) -> Self {
        Self {
            params: self.params.clone(),
            result: self.result.clone(),
            handler: Arc::clone(&self.handler),
            ..*self
        }
    }
}

/// A group of methods under one namespace, registered with the builder.
pub trait Activation<C> {
    /// The methods, each with its full name.
    fn methods(&self) -> Vec<Method<C>>;
}

/// All methods of a hub, by name.
pub struct Registry<C> {
    methods: BTreeMap<&'static str, Method<C>>,
}

impl<C> Default for Registry<C> {
    fn default() -> Self {
        Self { methods: BTreeMap::new() }
    }
}

impl<C: Send + Sync + 'static> Registry<C> {
    /// Adds the methods of an activation.
    pub fn add(&mut self, activation: &dyn Activation<C>) {
        for method in activation.methods() {
            self.methods.insert(method.name, method);
        }
    }

    /// Every method, by name.
    pub fn all(&self) -> impl Iterator<Item = &Method<C>> {
        self.methods.values()
    }

    /// The methods that are listed as tools for this user.
    pub fn tools_of(&self, user: ToolUser) -> impl Iterator<Item = &Method<C>> {
        self.all().filter(move |method| user.is_shown(method.audience))
    }

    /// The method with this name.
    pub fn get(&self, name: &str) -> Option<&Method<C>> {
        self.methods.get(name)
    }

    /// The method of an MCP tool. Agents are shown few tools, because each one has a cost for them; they may call any.
    pub fn tool(&self, tool_name: &str) -> Option<&Method<C>> {
        self.methods.values().find(|method| method.tool_name() == tool_name)
    }

    /// Calls a method for an admitted caller.
    pub(crate) async fn call(
        &self,
        context: Arc<C>,
        caller: Admitted,
        name: &str,
        params: Value,
    ) -> Result<Value, Error> {
        let method = self.get(name).ok_or_else(|| method_not_found(name))?;
        let handler = Arc::clone(&method.handler);
        handler(context, caller, params).await
    }

    /// The OpenRPC document.
    pub fn openrpc(&self) -> Value {
        let methods: Vec<Value> = self.all().map(describe).collect();
        json!({
            "openrpc": "1.3.2",
            "info": {"title": "Plexus", "version": env!("CARGO_PKG_VERSION")},
            "methods": methods,
        })
    }
}

/// The error for an unknown method.
pub fn method_not_found(name: &str) -> Error {
    Error::new(
        ErrorKind::MethodNotFound,
        format!("method `{name}` does not exist; `rpc.discover` lists all methods"),
    )
}

fn describe<C>(method: &Method<C>) -> Value {
    let required = method.params.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    let params: Vec<Value> = method
        .params
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .map(|(name, schema)| {
            json!({"name": name, "required": required.iter().any(|r| r == name), "schema": schema})
        })
        .collect();
    json!({
        "name": method.name,
        "summary": method.summary,
        "paramStructure": "by-name",
        "params": params,
        "result": {"name": "result", "schema": method.result},
        "x-plexus-params": method.params,
        "x-plexus-for": match method.audience {
            Audience::Programs => "programs",
            Audience::Agents => "agents",
            Audience::Children => "children",
        },
    })
}

/// Parses parameters. The error message names the invalid field.
fn read_params<P: DeserializeOwned>(schema: &Object, value: Value) -> Result<P, Error> {
    let value = if value.is_null() { json!({}) } else { value };
    if !value.is_object() {
        return Err(Error::new(ErrorKind::InvalidParams, "`params` must be an object with named parameters"));
    }
    serde_path_to_error::deserialize(value).map_err(|error| {
        let path = error.path().to_string();
        let text = error.inner().to_string();
        // At the top level the schema has the known fields: it omits fields that are not implemented yet.
        let quoted = |text: &str| text.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
        if text.starts_with("unknown field `") {
            let nested = path.contains('.');
            let known = if nested { quoted(&text).split_off(1) } else { properties(schema) };
            return Error::new(
                ErrorKind::UnknownField,
                format!("unknown field `{path}`; the known fields are {known:?}"),
            )
            .with("field", path);
        }
        if let (true, [field]) = (text.starts_with("missing field `"), quoted(&text).as_slice()) {
            let field = if path == "." { field.clone() } else { format!("{path}.{field}") };
            return Error::invalid(&field, "is missing");
        }
        Error::invalid(&path, text)
    })
}

fn properties(schema: &Object) -> Vec<String> {
    let properties = schema.get("properties").and_then(Value::as_object);
    properties.into_iter().flat_map(|properties| properties.keys().cloned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use plexus_protocol::claudecode::CreateParams;

    fn read(value: Value) -> Error {
        read_params::<CreateParams>(&schema::of::<CreateParams>(), value).expect_err("refused")
    }

    #[test]
    fn an_invalid_parameter_is_named_in_the_error() {
        let unknown = read(json!({"name": "a", "working_dir": "/", "colour": 1}));
        assert_eq!(
            (unknown.kind, unknown.details["field"].as_str()),
            (ErrorKind::UnknownField, Some("colour"))
        );
        let missing = read(json!({"name": "a"}));
        assert_eq!(
            (missing.kind, missing.details["field"].as_str()),
            (ErrorKind::InvalidParams, Some("working_dir"))
        );
        let typed = read(json!({"name": "a", "working_dir": 7}));
        assert_eq!(typed.details["field"], "working_dir");
        let nested = read(json!({"name": "a", "working_dir": "/", "env": {"A": 1}}));
        assert_eq!(nested.details["field"], "env.A");
        let unknown =
            read(json!({"name": "a", "working_dir": "/", "isolation": {"type": "worktree", "colour": 1}}));
        assert_eq!(
            (unknown.kind, unknown.details["field"].as_str()),
            (ErrorKind::UnknownField, Some("isolation.colour"))
        );
        assert!(unknown.message.contains("setup") && !unknown.message.contains("working_dir"), "{unknown}");
        let missing = read(json!({"name": "a", "working_dir": "/", "isolation": {"setup": "make"}}));
        assert_eq!(missing.details["field"], "isolation.type");
        let typed =
            read(json!({"name": "a", "working_dir": "/", "isolation": {"type": "worktree", "copy": "x"}}));
        assert_eq!(typed.details["field"], "isolation.copy");
        assert_eq!(
            read(json!({"name": "a", "working_dir": "/", "isolation": "vm"})).details["field"],
            "isolation"
        );
        assert_eq!(read(json!([1])).kind, ErrorKind::InvalidParams);
    }
}
