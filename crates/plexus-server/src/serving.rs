//! A serving hub, from opening the data directory to closing the doors. It combines the store, the core and the doors.
//! The binary handles signals, terminals and the environment.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use plexus_core::{Address, DoorName, Hub, HubBuilder, Settings, ShutDown, StartError};
use plexus_protocol::HostName;
use plexus_store::{Capacity, Durability, Host, PostgresAddress, SqlStore, StoreError};
use rmcp::ServerHandler;
use rustix::process::{Resource, getrlimit};
use thiserror::Error;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::accept::serve;
use crate::callers::Callers;
use crate::connections::WaitingConnections;
use crate::console_link::{ConsoleLink, remove_old_pages};
use crate::data_dir::{DataDir, DataDirError};
use crate::head_webhook::AuditWebhook;
use crate::identity::Identity;
use crate::limits::DoorLimits;
use crate::listen::{ListenError, listen};
use crate::mcp;
use crate::routes::{Doors, Transport};
use crate::site::{Scheme, Site};
use crate::socket::CheckedSocket;
use crate::tls::{TlsDoor, TlsError, TlsListener};

/// The time for pending responses once the doors are closing.
const CLOSE_WITHIN: Duration = Duration::from_secs(1);

/// The configuration of a serving hub: the hub itself and its doors.
#[derive(Debug, Clone)]
pub struct Config {
    /// The configuration of the hub.
    pub hub: Settings,
    /// The address to listen on. Port 0 takes a free port, the same at every start.
    pub listen: SocketAddr,
    /// How long peers may take, and how much the hub holds for them.
    pub doors: DoorLimits,
    /// A URL that receives heads of the audit log.
    pub head_webhook: Option<String>,
    /// Where the state is stored.
    pub store: StoreSetting,
    /// Which failures a commit survives, if the state is stored in a file.
    pub durability: Durability,
    /// Hosts, besides the loopback ones, by which browsers may reach the hub, as they appear in `Host`.
    pub allowed_hosts: Vec<String>,
    /// A door to the console for other machines, if any.
    pub tls: Option<TlsDoor>,
}

/// Where a hub stores its state.
#[derive(Debug, Clone)]
pub enum StoreSetting {
    /// In a file of the data directory.
    File,
    /// In a PostgreSQL database, which hubs of other hosts can share.
    Postgres {
        /// The address of the database.
        address: Box<PostgresAddress>,
        /// The name of this machine; by default the one that it has had so far, or its host name.
        host: Option<HostName>,
        /// What this machine offers to new sessions.
        capacity: Capacity,
    },
}

impl Config {
    /// The defaults, which are the safe choices: durable, on loopback, with this program as its own keeper and relay.
    ///
    /// # Errors
    /// When the path of this program is unknown.
    pub fn defaults(data_dir: PathBuf) -> io::Result<Self> {
        let home = std::env::var_os("HOME").map(PathBuf::from);
        Ok(Self {
            hub: Settings { home, ..Settings::defaults(data_dir, std::env::current_exe()?) },
            listen: (Ipv4Addr::LOCALHOST, 4445).into(),
            doors: DoorLimits::default(),
            head_webhook: None,
            store: StoreSetting::File,
            durability: Durability::Full,
            allowed_hosts: Vec::new(),
            tls: None,
        })
    }
}

/// Why a hub cannot serve.
#[derive(Debug, Error)]
pub enum ServeError {
    /// The data directory is unusable.
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    /// The address is unusable.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The door for other machines cannot be opened.
    #[error("cannot serve the console to other machines: {0}")]
    Tls(#[from] TlsError),
    /// The store cannot be opened.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The core cannot be started.
    #[error("cannot start the hub: {0}")]
    Start(#[from] StartError),
    /// The Unix socket cannot be bound.
    #[error("cannot listen on {path}: {source}")]
    Socket {
        /// The path of the socket.
        path: PathBuf,
        /// The I/O error.
        source: io::Error,
    },
}

/// A request, through the socket, to end the children and the hub.
#[derive(Debug)]
pub struct DownRequest {
    /// Receives the number of children that were ended.
    pub done: oneshot::Sender<usize>,
}

/// A hub that serves.
pub struct Serving {
    hub: Arc<Hub>,
    url: String,
    dir: DataDir,
    doors: JoinSet<io::Result<()>>,
    /// Cancelled to accept no more connections.
    close: CancellationToken,
    /// Cancelled to end all waiting requests too.
    stop: CancellationToken,
    down: mpsc::Receiver<DownRequest>,
}

impl Serving {
    /// Opens the data directory, listens, recovers the children of an earlier hub, and opens the doors.
    ///
    /// # Errors
    /// When any of these steps fails; nothing is left behind then.
    pub async fn start(config: Config) -> Result<Self, ServeError> {
        Self::start_with(config, mcp::server).await
    }

    /// Starts with another MCP server behind `/mcp`. The conformance suite needs tools that no hub has, behind the door
    /// that every hub has.
    ///
    /// # Errors
    /// As [`Serving::start`].
    pub async fn start_with<S: ServerHandler + Clone>(
        config: Config,
        mcp_server: impl FnOnce(&Arc<Hub>) -> S,
    ) -> Result<Self, ServeError> {
        let dir = DataDir::open(&config.hub.data_dir)?;
        let identity = Arc::new(Identity::open(&dir)?);
        let tcp = listen(config.listen, &dir).await?;
        let address =
            tcp.local_addr().map_err(|source| ListenError::Io { address: config.listen, source })?;
        let url = format!("http://{address}");
        let hosts = config.allowed_hosts.clone();
        let limits = config.doors.within_open_files(getrlimit(Resource::Nofile).current);
        let tls = match &config.tls {
            Some(door) => Some(TlsListener::bind(door).await?),
            None => None,
        };
        let claude = config.hub.claude.clone();
        let hub = start_core(config, &dir, &url, &identity).await?;

        let path = DataDir::socket(dir.path());
        let socket = CheckedSocket::bind(&path, Arc::clone(&hub))
            .map_err(|source| ServeError::Socket { path, source })?;
        let (close, stop) = (CancellationToken::new(), CancellationToken::new());
        let (down_sender, down) = mpsc::channel(1);
        let mcp = mcp::service(mcp_server(&hub), &stop);
        let callers = Callers::new(limits, hub.door_figures().clone());
        let doors_for = |transport| Doors {
            hub: Arc::clone(&hub),
            transport,
            limits,
            callers: Arc::clone(&callers),
            identity: Arc::clone(&identity),
            mcp: mcp.clone(),
            stop: stop.clone(),
            down: down_sender.clone(),
        };
        let waiting = |name| WaitingConnections::new(name, limits.waiting, hub.door_figures().clone());
        let site = |address, scheme| Transport::Tcp(Site::new(address, scheme, hosts.clone()));

        // A client that reaches the socket finds `hub.json`. The listeners are bound, so early connections wait in their queues.
        dir.announce(&url, &identity.public(), &claude)?;
        let mut doors = JoinSet::new();
        if let Some(tls) = tls {
            let address = tls.local_addr().map_err(|source| ListenError::Io { address, source })?;
            let router = doors_for(site(address, Scheme::Https)).console_router();
            doors.spawn(serve(tls, router, waiting(DoorName::Tls), limits, close.clone()));
        }
        let router = doors_for(site(address, Scheme::Http)).router();
        doors.spawn(serve(tcp, router, waiting(DoorName::Http), limits, close.clone()));
        let router = doors_for(Transport::Socket).router();
        doors.spawn(serve(socket, router, waiting(DoorName::Socket), limits, close.clone()));
        Ok(Self { hub, url, dir, doors, close, stop, down })
    }

    /// The URL of the hub.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The hub behind the doors.
    pub fn hub(&self) -> &Arc<Hub> {
        &self.hub
    }

    /// Waits for a request, through the socket, to end the children and the hub.
    pub async fn down_requested(&mut self) -> DownRequest {
        match self.down.recv().await {
            Some(request) => request,
            // The doors hold the sender while they are open.
            None => std::future::pending().await,
        }
    }

    /// Closes the doors and ends the hub. Returns the number of children that were left or ended.
    pub async fn stop(mut self, how: ShutDown) -> usize {
        self.close.cancel();
        let children = self.hub.shut_down(how).await;
        self.close_doors().await;
        children
    }

    /// Ends the children and the hub, and notifies the requester before the doors close.
    pub async fn stop_for(mut self, request: DownRequest) -> usize {
        let children = self.hub.shut_down(ShutDown::EndChildren).await;
        // The requester may have disconnected meanwhile.
        let _ = request.done.send(children);
        self.close.cancel();
        self.close_doors().await;
        children
    }

    async fn close_doors(&mut self) {
        self.stop.cancel();
        let all_closed = async { while self.doors.join_next().await.is_some() {} };
        if tokio::time::timeout(CLOSE_WITHIN, all_closed).await.is_err() {
            tracing::debug!("some connections were closed before they finished");
        }
        self.dir.retract();
    }
}

/// The children that were ended without a hub.
#[derive(Debug)]
pub struct EndedChildren {
    /// Their number.
    pub count: usize,
    /// Why the store does not say so yet. The next hub stores it.
    pub not_stored: Option<ServeError>,
}

/// Ends the children that an earlier hub left, without opening any door, also if the store cannot be used.
///
/// # Errors
/// When a hub is running, or the data directory is unusable; when the store is, and there are no children.
pub async fn end_children(config: Config) -> Result<EndedChildren, ServeError> {
    let dir = DataDir::open(&config.hub.data_dir)?;
    let url = format!("http://{}", config.listen);
    let identity = Identity::open(&dir)?;
    match start_core(config, &dir, &url, &identity).await {
        Ok(hub) => {
            let count = hub.shut_down(ShutDown::EndChildren).await;
            Ok(EndedChildren { count, not_stored: None })
        }
        Err(error) => match plexus_core::end_processes_in(dir.path()).await {
            0 => Err(error),
            count => Ok(EndedChildren { count, not_stored: Some(error) }),
        },
    }
}

async fn start_core(
    config: Config,
    dir: &DataDir,
    url: &str,
    identity: &Identity,
) -> Result<Arc<Hub>, ServeError> {
    let store = match &config.store {
        StoreSetting::File => SqlStore::sqlite(&dir.store()?, config.durability)?,
        StoreSetting::Postgres { address, host, capacity } => {
            let host = Host {
                name: dir.host_name(host.as_ref())?,
                machine: identity.public().0,
                commit_count: dir.commit_count(),
                capacity: capacity.clone(),
            };
            let store = SqlStore::postgres(address, &host)?;
            dir.joined(&host.name, address)?;
            store
        }
    };
    let settings = Settings { data_dir: dir.path().to_owned(), ..config.hub };
    let address =
        Address { url: url.to_owned(), hub_key: identity.public().0, operator_token: dir.operator_token()? };
    remove_old_pages(dir.path());
    let mut builder = HubBuilder::standard(settings, address, Arc::new(store)).with(&ConsoleLink);
    if let Some(url) = config.head_webhook {
        builder = builder.audit_anchor(Box::new(AuditWebhook { url }));
    }
    Ok(builder.start().await?)
}
