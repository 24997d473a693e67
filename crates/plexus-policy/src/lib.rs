//! Permission rules in Claude Code's own syntax, and the verdict of a chain of rule lists on a tool call. This crate
//! owns the grammar of rules, the parsing of Bash command lines, the meaning of paths, the precedence of deny, ask
//! and allow, and the risk marks of a call. The hub decides who may create rules and what happens after a verdict. The only outside state that the
//! crate queries is where symbolic links lead.

mod bash;
mod call;
mod command_pattern;
mod entry;
mod input;
mod likeness;
mod paths;
mod policy;
mod risk;
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
pub use risk::risks;
pub use rule::{Rule, RuleError};
pub use tools::{ToolClass, class_of, is_hub_tool, known_tools};
