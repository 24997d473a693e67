//! A hub that serves, from the data directory it takes to the doors it closes. It puts store, core and doors
//! together; signals, terminals and environments are the binary's.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use plexus_core::{Address, DoorName, Hub, HubBuilder, Settings, ShutDown, StartError};
use plexus_store::{Durability, SqliteStore, StoreError};
use rmcp::ServerHandler;
use rustix::process::{Resource, getrlimit};
use thiserror::Error;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::accept::serve;
use crate::audit_webhook::AuditWebhook;
use crate::callers::Callers;
use crate::connections::Waiting;
use crate::console_link::{ConsoleLink, remove_old_pages};
use crate::data_dir::{DataDir, DataDirError};
use crate::doors::{Doors, Way};
use crate::identity::Identity;
use crate::limits::DoorLimits;
use crate::listen::{ListenError, listen};
use crate::mcp;
use crate::site::{Scheme, Site};
use crate::socket::CheckedSocket;
use crate::tls::{TlsDoor, TlsError, TlsListener};

/// How long answers that are on their way may take once the doors are closing.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// The configuration of a serving hub: the hub itself and its doors.
#[derive(Debug, Clone)]
pub struct Config {
    /// The configuration of the hub.
    pub hub: Settings,
    /// Where to listen; port 0 takes a free one, the same at every start.
    pub listen: SocketAddr,
    /// How long peers may take, and how much is held for them.
    pub doors: DoorLimits,
    /// A URL that receives heads of the audit log.
    pub audit_webhook: Option<String>,
    /// What a commit survives.
    pub durability: Durability,
    /// Hosts, besides the loopback ones, by which browsers may reach the hub, as they stand in `Host`.
    pub allowed_hosts: Vec<String>,
    /// A door to the console for other machines; `None` for none.
    pub tls: Option<TlsDoor>,
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
            audit_webhook: None,
            durability: Durability::Full,
            allowed_hosts: Vec::new(),
            tls: None,
        })
    }
}

/// Why a hub cannot serve.
#[derive(Debug, Error)]
pub enum ServeError {
    /// Its data directory.
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    /// Its address.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// Its door for other machines.
    #[error("the console cannot be served to other machines: {0}")]
    Tls(#[from] TlsError),
    /// Its store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Its children, or what is known of them.
    #[error("the hub cannot be started: {0}")]
    Start(#[from] StartError),
    /// Its Unix socket.
    #[error("cannot listen on {path}: {source}")]
    Socket {
        /// Where.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

/// Someone asked, through the socket, that hub and children end.
#[derive(Debug)]
pub struct DownRequest {
    /// Told how many children were ended.
    pub done: oneshot::Sender<usize>,
}

/// A hub that serves.
pub struct Serving {
    hub: Arc<Hub>,
    url: String,
    dir: DataDir,
    doors: JoinSet<io::Result<()>>,
    /// No new connections from here on.
    close: CancellationToken,
    /// No more waiting either.
    stop: CancellationToken,
    down: mpsc::Receiver<DownRequest>,
}

impl Serving {
    /// Takes the data directory, listens, finds the children of an earlier hub again, and opens the doors.
    ///
    /// # Errors
    /// When any of that cannot be done; nothing is left behind then.
    pub async fn start(config: Config) -> Result<Self, ServeError> {
        Self::start_with(config, mcp::server).await
    }

    /// The same with another MCP server behind `/mcp`: the conformance suite wants tools that no hub has, behind the
    /// door that every hub has.
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
        let hub = start_core(config, &dir, &url, &identity).await?;

        let path = DataDir::socket(dir.path());
        let socket = CheckedSocket::bind(&path, Arc::clone(&hub))
            .map_err(|source| ServeError::Socket { path, source })?;
        let (close, stop) = (CancellationToken::new(), CancellationToken::new());
        let (ask_down, down) = mpsc::channel(1);
        let mcp = mcp::service(mcp_server(&hub), &stop);
        let callers = Callers::new(limits, hub.door_figures().clone());
        let doors_for = |way| Doors {
            hub: Arc::clone(&hub),
            way,
            limits,
            callers: Arc::clone(&callers),
            identity: Arc::clone(&identity),
            mcp: mcp.clone(),
            stop: stop.clone(),
            down: ask_down.clone(),
        };
        let waiting = |name| Waiting::new(name, limits.waiting, hub.door_figures().clone());
        let site = |address, scheme| Way::Tcp(Site::new(address, scheme, hosts.clone()));

        let mut doors = JoinSet::new();
        if let Some(tls) = tls {
            let address = tls.local_addr().map_err(|source| ListenError::Io { address, source })?;
            let router = doors_for(site(address, Scheme::Https)).console_router();
            doors.spawn(serve(tls, router, waiting(DoorName::Tls), limits, close.clone()));
        }
        let router = doors_for(site(address, Scheme::Http)).router();
        doors.spawn(serve(tcp, router, waiting(DoorName::Http), limits, close.clone()));
        let router = doors_for(Way::Socket).router();
        doors.spawn(serve(socket, router, waiting(DoorName::Socket), limits, close.clone()));
        dir.announce(&url, &identity.public())?;
        Ok(Self { hub, url, dir, doors, close, stop, down })
    }

    /// Where it listens.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The hub behind the doors.
    pub fn hub(&self) -> &Arc<Hub> {
        &self.hub
    }

    /// Waits until someone asks, through the socket, that hub and children end.
    pub async fn down_asked(&mut self) -> DownRequest {
        match self.down.recv().await {
            Some(request) => request,
            // The doors hold the other end for as long as they are open.
            None => std::future::pending().await,
        }
    }

    /// Closes the doors and ends the hub; says how many children were left, or ended.
    pub async fn stop(mut self, how: ShutDown) -> usize {
        self.close.cancel();
        let children = self.hub.shut_down(how).await;
        self.leave().await;
        children
    }

    /// Ends children and hub, and tells the one who asked before the doors close.
    pub async fn go_down(mut self, request: DownRequest) -> usize {
        let children = self.hub.shut_down(ShutDown::EndChildren).await;
        // Whoever asked may have left meanwhile; the work is done all the same.
        let _ = request.done.send(children);
        self.close.cancel();
        self.leave().await;
        children
    }

    async fn leave(&mut self) {
        self.stop.cancel();
        let all_closed = async { while self.doors.join_next().await.is_some() {} };
        if tokio::time::timeout(LAST_WORDS, all_closed).await.is_err() {
            tracing::debug!("some connections were cut off");
        }
        self.dir.retract();
    }
}

/// Ends the children that an earlier hub left, without opening any door; says how many there were.
///
/// # Errors
/// When a hub is running, or the data directory cannot be used.
pub async fn end_children(config: Config) -> Result<usize, ServeError> {
    let dir = DataDir::open(&config.hub.data_dir)?;
    let url = format!("http://{}", config.listen);
    let hub = start_core(config, &dir, &url, &Identity::open(&dir)?).await?;
    Ok(hub.shut_down(ShutDown::EndChildren).await)
}

async fn start_core(
    config: Config,
    dir: &DataDir,
    url: &str,
    identity: &Identity,
) -> Result<Arc<Hub>, ServeError> {
    let store = SqliteStore::open(&dir.store(), config.durability)?;
    let settings = Settings { data_dir: dir.path().to_owned(), ..config.hub };
    let address =
        Address { url: url.to_owned(), hub_key: identity.public().0, operator_token: dir.operator_token()? };
    remove_old_pages(dir.path());
    let mut builder = HubBuilder::standard(settings, address, Arc::new(store)).with(&ConsoleLink);
    if let Some(url) = config.audit_webhook {
        builder = builder.audit_anchor(Box::new(AuditWebhook { url }));
    }
    Ok(builder.start().await?)
}
