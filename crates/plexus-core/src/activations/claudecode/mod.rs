//! `claudecode`: sessions and their turns.

mod chat;
mod chat_async;
mod create;
mod delete;
mod event;
mod get;
mod list;
mod poll;
mod rename;
mod stop;
mod streams;

use crate::method::{Activation, Method};

/// The activation.
pub struct ClaudeCode;

impl Activation for ClaudeCode {
    fn methods(&self) -> Vec<Method> {
        vec![
            create::method(),
            get::method(),
            list::method(),
            rename::method(),
            delete::method(),
            chat::method(),
            chat_async::method(),
            poll::method(),
            event::method(),
            streams::method(),
            stop::method(),
        ]
    }
}
