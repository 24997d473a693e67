//! Machines on a network of their own: network namespaces behind a bridge, for tests of several hubs. A process in a namespace reaches the addresses of the
//! bridge and nothing else. Needs root and `ip` (iproute2). Dropping a [`Network`] removes it.

use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::thread;

use anyhow::{Context as _, ensure};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use tokio::net::UnixStream;
use tokio::task::JoinHandle;

/// The address of the bridge, and of the machines after it. The range is reserved for tests of networks.
const RANGE: [u8; 2] = [198, 18];

/// A bridge with machines.
#[derive(Debug)]
pub struct Network {
    /// Distinguishes its devices from those of other tests.
    id: String,
    third: u8,
    machines: Vec<Machine>,
}

/// A network namespace that is connected to the bridge.
#[derive(Debug, Clone)]
pub struct Machine {
    namespace: String,
    /// The end of its cable at the bridge.
    cable: String,
}

/// Why a test of a network cannot run here; `None` if it can.
pub fn missing() -> Option<&'static str> {
    if !rustix::process::geteuid().is_root() {
        return Some("root, for network namespaces");
    }
    let found = Command::new("ip").arg("-V").output().is_ok_and(|output| output.status.success());
    (!found).then_some("iproute2")
}

impl Network {
    /// Creates a bridge with this many machines.
    ///
    /// # Errors
    /// If `ip` fails.
    pub fn create(machines: u8) -> anyhow::Result<Self> {
        let id = uuid::Uuid::new_v4();
        let third = id.as_bytes()[0];
        let mut network = Self { id: id.simple().to_string()[..8].to_owned(), third, machines: Vec::new() };
        let bridge = network.bridge();
        ip(&["link", "add", &bridge, "type", "bridge"])?;
        ip(&["address", "add", &format!("{}/24", network.address()), "dev", &bridge])?;
        ip(&["link", "set", &bridge, "up"])?;
        for i in 0..machines {
            network.add(i)?;
        }
        Ok(network)
    }

    fn add(&mut self, i: u8) -> anyhow::Result<()> {
        let Self { id, third, .. } = &*self;
        let machine = Machine { namespace: format!("plexus-{id}-{i}"), cable: format!("px{id}{i}") };
        let (namespace, cable) = (machine.namespace.as_str(), machine.cable.as_str());
        let [first, second] = RANGE;
        let address = format!("{first}.{second}.{third}.{}/24", i + 2);
        ip(&["netns", "add", namespace])?;
        // From here on, dropping the network removes the namespace.
        self.machines.push(machine.clone());
        ip(&["link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns", namespace])?;
        ip(&["link", "set", cable, "master", &self.bridge(), "up"])?;
        ip(&["-n", namespace, "address", "add", &address, "dev", "eth0"])?;
        ip(&["-n", namespace, "link", "set", "eth0", "up"])?;
        ip(&["-n", namespace, "link", "set", "lo", "up"])
    }

    /// The address by which machines reach the processes of the test.
    #[must_use]
    pub fn address(&self) -> Ipv4Addr {
        let [first, second] = RANGE;
        Ipv4Addr::new(first, second, self.third, 1)
    }

    /// The machines.
    #[must_use]
    pub fn machines(&self) -> &[Machine] {
        &self.machines
    }

    /// Forwards a port of the bridge to a socket.
    ///
    /// # Errors
    /// If no port can be bound.
    pub async fn forward_to_socket(&self, socket: PathBuf) -> anyhow::Result<Forward> {
        let listener = tokio::net::TcpListener::bind((self.address(), 0)).await?;
        let address = listener.local_addr()?;
        let task = tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let socket = socket.clone();
                tokio::spawn(async move {
                    if let Ok(mut server) = UnixStream::connect(&socket).await {
                        // Either side may end the connection.
                        let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
                    }
                });
            }
        });
        Ok(Forward { address, task })
    }

    fn bridge(&self) -> String {
        format!("px{}", self.id)
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for machine in &self.machines {
            // Removes its cable too.
            let _ = ip(&["link", "delete", &machine.cable]);
            let _ = ip(&["netns", "delete", &machine.namespace]);
        }
        let _ = ip(&["link", "delete", &self.bridge()]);
    }
}

impl Machine {
    /// Writes a program that starts another one on this machine.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn wrap(&self, program: &Path, wrapper: &Path) -> anyhow::Result<()> {
        let (namespace, program) = (self.path(), program.display());
        let script = format!("#!/bin/sh\nexec nsenter --net={} {program} \"$@\"\n", namespace.display());
        crate::executable::write(wrapper, &script)?;
        Ok(())
    }

    /// Unplugs the cable: packets to and from the machine are lost.
    ///
    /// # Errors
    /// If `ip` fails.
    pub fn unplug(&self) -> anyhow::Result<()> {
        ip(&["link", "set", &self.cable, "down"])
    }

    /// Plugs the cable in again.
    ///
    /// # Errors
    /// If `ip` fails.
    pub fn plug(&self) -> anyhow::Result<()> {
        ip(&["link", "set", &self.cable, "up"])
    }

    /// Lets processes of this machine reach a server of the test at the same address of 127.0.0.1.
    ///
    /// # Errors
    /// If the port is in use on the machine.
    pub fn offer(&self, server: SocketAddr) -> anyhow::Result<Forward> {
        let listener = self.within(move || TcpListener::bind(server))?;
        Forward::start(listener, Arc::new(move || TcpStream::connect(server)))
    }

    /// Lets the test reach a server of this machine at the same address of 127.0.0.1.
    ///
    /// # Errors
    /// If the port is in use.
    pub fn reach(&self, server: SocketAddr) -> anyhow::Result<Forward> {
        let machine = self.clone();
        let connect = move || machine.within(move || TcpStream::connect(server));
        Forward::start(TcpListener::bind(server)?, Arc::new(connect))
    }

    /// Does something on a thread that is on this machine. A socket stays where it was opened.
    fn within<T: Send>(&self, act: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        let enter = || {
            let namespace = File::open(self.path())?;
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
            act()
        };
        thread::scope(|scope| scope.spawn(enter).join())
            .unwrap_or_else(|_| Err(io::Error::other("the thread has panicked")))
    }

    fn path(&self) -> PathBuf {
        Path::new("/run/netns").join(&self.namespace)
    }
}

/// Forwards connections until it is dropped.
#[derive(Debug)]
pub struct Forward {
    /// The address at which it listens.
    pub address: SocketAddr,
    task: JoinHandle<()>,
}

type Connect = Arc<dyn Fn() -> io::Result<TcpStream> + Send + Sync>;

impl Forward {
    fn start(listener: TcpListener, connect: Connect) -> anyhow::Result<Self> {
        let address = listener.local_addr()?;
        listener.set_nonblocking(true)?;
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let task = tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let connect = Arc::clone(&connect);
                tokio::spawn(async move {
                    let connected = tokio::task::spawn_blocking(move || connect()).await;
                    let Ok(Ok(server)) = connected else { return };
                    if server.set_nonblocking(true).is_ok()
                        && let Ok(mut server) = tokio::net::TcpStream::from_std(server)
                    {
                        // Either side may end the connection.
                        let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
                    }
                });
            }
        });
        Ok(Self { address, task })
    }
}

impl Drop for Forward {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn ip(args: &[&str]) -> anyhow::Result<()> {
    let output = Command::new("ip").args(args).output().context("ip")?;
    ensure!(output.status.success(), "ip {}: {}", args.join(" "), String::from_utf8_lossy(&output.stderr));
    Ok(())
}
