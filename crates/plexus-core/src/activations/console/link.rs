//! `console.link`: a link that signs in whoever opens it first.

use std::sync::Arc;

use plexus_protocol::Error;
use plexus_protocol::console::{LinkParams, LinkResult};

use crate::Hub;
use crate::access::{Admitted, Needs};
use crate::hub::Method;
use crate::method::Audience;
use crate::sign_in::GOOD_FOR;

pub(super) fn method() -> Method {
    Method::new(
        "console.link",
        "A link to the web console that signs in whoever opens it first, good once and for 30 seconds.",
        Audience::Programs,
        Needs::Rule,
        link,
    )
}

async fn link(hub: Arc<Hub>, _: Admitted, params: LinkParams) -> Result<LinkResult, Error> {
    let url = params.url.unwrap_or_else(|| hub.settings().url.clone());
    let url = url.trim_end_matches('/');
    let plain = |c: char| c.is_ascii_alphanumeric() || ":/.-_[]".contains(c);
    if !(url.starts_with("http://") || url.starts_with("https://")) || !url.chars().all(plain) {
        return Err(Error::invalid("url", "is no address such as https://hub.example:8443"));
    }
    let given = hub.links().give(&hub.settings().data_dir, url, hub.tasks())?;
    Ok(LinkResult::Ok {
        link: format!("{url}/#login={}", given.code),
        file: given.file.display().to_string(),
        expires_in_secs: GOOD_FOR.as_secs(),
    })
}
