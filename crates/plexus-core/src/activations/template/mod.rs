//! `template`: parameters for new sessions that the operator stores under a name. Only the operator may read, change and use
//! templates: they contain prompts and the secrets of MCP servers.

mod delete;
mod list;
mod save;
mod use_in_create;

use crate::Hub;
use crate::hub::Method;
use crate::method::Activation;

pub(super) use use_in_create::TemplateUse;

/// The activation.
pub struct Template;

impl Activation<Hub> for Template {
    fn methods(&self) -> Vec<Method> {
        vec![save::method(), list::method(), delete::method()]
    }
}
