//! A webhook as an anchor of the audit log. It receives each head in a POST request.

use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use plexus_core::AuditAnchor;

/// The time limit for the webhook's response.
const ANSWERS_WITHIN: Duration = Duration::from_secs(10);

/// A webhook that receives heads of the audit log.
pub(crate) struct AuditWebhook {
    pub(crate) url: String,
}

impl AuditAnchor for AuditWebhook {
    fn deliver(&self, head: String) -> BoxFuture<'_, Result<(), String>> {
        let url = self.url.clone();
        async move {
            let posted = tokio::task::spawn_blocking(move || post(&url, &head)).await;
            // The URL may contain a secret: it is not logged.
            let posted = posted.map_err(|error| error.to_string())?;
            posted.map_err(|error| format!("the webhook failed: {error}"))
        }
        .boxed()
    }
}

fn post(url: &str, line: &str) -> Result<(), ureq::Error> {
    let tls = ureq::tls::TlsConfig::builder().root_certs(ureq::tls::RootCerts::PlatformVerifier).build();
    let config = ureq::Agent::config_builder()
        .timeout_global(Some(ANSWERS_WITHIN))
        // A redirect would send the head to a host that the operator did not choose.
        .max_redirects(0)
        .tls_config(tls)
        .build();
    let request = ureq::Agent::new_with_config(config).post(url).content_type("application/json");
    let status = request.send(line)?.status();
    if status.is_success() { Ok(()) } else { Err(ureq::Error::StatusCode(status.as_u16())) }
}
