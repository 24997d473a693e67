//! The namespaces of methods. Each verb has its own file; an activation lists the verbs of its namespace.

mod arbor;
mod audit;
mod claudecode;
mod host;
mod loopback;
mod policy;
mod template;
mod token;

pub use arbor::Arbor;
pub use audit::Audit;
pub use claudecode::ClaudeCode;
pub use host::Host;
pub use loopback::Loopback;
pub use policy::Policy;
pub use template::Template;
pub use token::Token;
