//! The namespaces of methods. One verb is one file; an activation lists its verbs.

mod arbor;
mod audit;
mod claudecode;
mod loopback;
mod policy;
mod token;

pub use arbor::Arbor;
pub use audit::Audit;
pub use claudecode::ClaudeCode;
pub use loopback::Loopback;
pub use policy::Policy;
pub use token::Token;
