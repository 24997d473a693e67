//! Permission rules in Claude Code's own syntax, and what a chain of them says about a tool call. It owns the grammar of
//! rules, the reading of Bash command lines, the meaning of paths and the order of deny, ask and allow; who may make rules
//! and what becomes of a verdict is the hub's. The only thing it asks of the world is where symbolic links lead.

mod bash;
mod call;
mod entry;
mod input;
mod likeness;
mod paths;
mod policy;
mod rule;
mod subject;
mod tools;
mod wildcard;

pub use call::Call;
pub use entry::{RuleEffect, RuleEntry};
pub use likeness::Likeness;
pub use policy::{
    Authority, Decider, Level, Policy, PolicyError, Scope, ScopeChain, Verdict, VerdictEffect, covers,
};
pub use rule::{Rule, RuleError};
pub use tools::{ToolClass, class_of, is_hub_tool};
