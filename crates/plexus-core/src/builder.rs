//! Builds a hub. This is the only place where activations are registered.

use std::sync::Arc;

use plexus_store::{Store, StoreError};

use crate::activations::{Arbor, Audit, ClaudeCode, Host, Loopback, Policy, Template, Token};
use crate::audit::anchor::AuditAnchor;
use crate::hub::Registry;
use crate::method::Activation;
use crate::processes::sandbox::SandboxSetup;
use crate::{Address, Hub, Settings};

/// Why a hub could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The journals of children, or their disk, cannot be watched.
    #[error("cannot watch the journals of children or their disk: {0}")]
    Watch(#[from] std::io::Error),
}

/// The methods of a standard hub. They are available without a running hub, for instance to the relay.
pub fn standard_methods() -> Registry {
    let activations: [&dyn Activation<Hub>; 8] =
        [&ClaudeCode, &Loopback, &Arbor, &Policy, &Template, &Token, &Audit, &Host];
    let mut registry = Registry::default();
    activations.into_iter().for_each(|activation| registry.add(activation));
    registry
}

/// Builds a hub from its settings, store, methods and audit anchors.
pub struct HubBuilder {
    settings: Settings,
    address: Address,
    store: Arc<dyn Store>,
    registry: Registry,
    audit_anchors: Vec<Box<dyn AuditAnchor>>,
}

impl HubBuilder {
    /// A hub on this store, without any methods yet.
    pub fn new(settings: Settings, address: Address, store: Arc<dyn Store>) -> Self {
        Self { settings, address, store, registry: Registry::default(), audit_anchors: Vec::new() }
    }

    /// A hub with the standard methods.
    pub fn standard(settings: Settings, address: Address, store: Arc<dyn Store>) -> Self {
        Self { registry: standard_methods(), ..Self::new(settings, address, store) }
    }

    /// Registers the methods of an activation.
    #[must_use]
    pub fn with(mut self, activation: &dyn Activation<Hub>) -> Self {
        self.registry.add(activation);
        self
    }

    /// Adds a destination that receives heads of the audit log.
    #[must_use]
    pub fn audit_anchor(mut self, anchor: Box<dyn AuditAnchor>) -> Self {
        self.audit_anchors.push(anchor);
        self
    }

    /// Starts the hub and recovers the children of an earlier one.
    pub async fn start(self) -> Result<Arc<Hub>, StartError> {
        let sandbox = SandboxSetup::tried(&self.settings).await;
        let hub =
            Hub::new(self.settings, self.address, self.store, self.registry, sandbox, self.audit_anchors)
                .await?;
        hub.recover().await?;
        Ok(hub)
    }
}
