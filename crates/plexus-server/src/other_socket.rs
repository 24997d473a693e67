//! Detects sockets of other programs at the hub's port. A program that bound the port before the hub can still have
//! connections there: connections that it accepted, and connections that the kernel pairs with it instead of the hub's
//! listener when both ends connect at once (RFC 9293, simultaneous open). `/proc/net/tcp` does not list sockets that
//! are only bound, so this module queries the kernel with `sock_diag`.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with,
};
use rustix::net::{SocketAddrV4, bind};

const BY_FAMILY: u16 = 20;
const REQUEST_DUMP: u16 = 0x301;
const DONE: u16 = 3;
const ERROR: u16 = 2;
const HEADER: usize = 16;
const TCP: u8 = 6;
const LISTEN: u8 = 10;
/// A socket that is bound, and neither listening nor connected. Kernels before 6.8 do not list such sockets.
const BOUND: u8 = 13;

/// The result of the check of a port that was just bound.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum OtherSocket {
    /// No other program has a socket there.
    None,
    /// Another program has a socket there.
    Some,
    /// The kernel lists no such socket, but it does not list all sockets.
    Unknown,
}

/// Whether another program has a socket at an address where this process listens and has accepted no connection yet.
pub(crate) fn other_socket(address: SocketAddr) -> io::Result<OtherSocket> {
    let mut sockets = list(AddressFamily::INET)?;
    sockets.extend(list(AddressFamily::INET6)?);
    if sockets.iter().any(|socket| socket.competes(address)) {
        return Ok(OtherSocket::Some);
    }
    Ok(if lists_bound_sockets()? { OtherSocket::None } else { OtherSocket::Unknown })
}

#[derive(Debug)]
struct Socket {
    state: u8,
    local: SocketAddr,
    /// 0 for a socket without a process: it waits to be accepted, or is being closed.
    inode: u32,
}

impl Socket {
    fn competes(&self, address: SocketAddr) -> bool {
        let ip = self.local.ip().to_canonical();
        self.state != LISTEN
            && self.inode != 0
            && self.local.port() == address.port()
            && (ip == address.ip() || ip.is_unspecified())
    }
}

/// Whether the kernel lists sockets that are only bound. Tests this with a socket of its own.
fn lists_bound_sockets() -> io::Result<bool> {
    let probe = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    bind(&probe, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0))?;
    let local = TcpListener::from(probe.try_clone()?).local_addr()?;
    Ok(list(AddressFamily::INET)?.iter().any(|socket| socket.state == BOUND && socket.local == local))
}

/// All TCP sockets of a family.
fn list(family: AddressFamily) -> io::Result<Vec<Socket>> {
    let diag = socket_with(
        AddressFamily::NETLINK,
        SocketType::DGRAM,
        SocketFlags::CLOEXEC,
        Some(netlink::SOCK_DIAG),
    )?;
    send(&diag, &request(family), SendFlags::empty())?;
    let mut found = Vec::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let (count, _) = recv(&diag, &mut buffer, RecvFlags::empty())?;
        if read(&buffer[..count], &mut found)? == Answer::Complete {
            return Ok(found);
        }
    }
}

fn request(family: AddressFamily) -> [u8; 72] {
    let mut request = [0; 72];
    let length = u32::try_from(request.len()).unwrap_or_default();
    request[0..4].copy_from_slice(&length.to_ne_bytes());
    request[4..6].copy_from_slice(&BY_FAMILY.to_ne_bytes());
    request[6..8].copy_from_slice(&REQUEST_DUMP.to_ne_bytes());
    request[HEADER] = u8::try_from(family.as_raw()).unwrap_or_default();
    request[HEADER + 1] = TCP;
    // Request sockets in all states.
    request[HEADER + 4..HEADER + 8].copy_from_slice(&u32::MAX.to_ne_bytes());
    request
}

#[derive(Debug, PartialEq, Eq)]
enum Answer {
    Continues,
    Complete,
}

/// Parses the messages of one datagram.
fn read(mut datagram: &[u8], found: &mut Vec<Socket>) -> io::Result<Answer> {
    while let Some(header) = datagram.get(..HEADER) {
        let length = number(header, 0) as usize;
        let kind = u16::from_ne_bytes([header[4], header[5]]);
        let message = datagram.get(HEADER..length).ok_or(io::ErrorKind::InvalidData)?;
        match kind {
            DONE => return Ok(Answer::Complete),
            ERROR => {
                let code = message.get(..4).map_or(0, |_| number(message, 0).cast_signed());
                return Err(io::Error::from_raw_os_error(code.checked_neg().unwrap_or_default()));
            }
            BY_FAMILY => found.push(socket(message).ok_or(io::ErrorKind::InvalidData)?),
            _ => {}
        }
        datagram = datagram.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(Answer::Continues)
}

/// Parses an `inet_diag_msg`.
fn socket(message: &[u8]) -> Option<Socket> {
    let inode = number(message.get(..72)?, 68);
    let port = u16::from_be_bytes([message[4], message[5]]);
    let ip: [u8; 16] = message[8..24].try_into().ok()?;
    let local = match AddressFamily::from_raw(message[0].into()) {
        AddressFamily::INET => IpAddr::from([ip[0], ip[1], ip[2], ip[3]]),
        _ => IpAddr::from(Ipv6Addr::from(ip)),
    };
    Some(Socket { state: message[1], local: SocketAddr::new(local, port), inode })
}

/// The four bytes from `at` as a number. The caller has checked the length.
fn number(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[cfg(test)]
mod tests {
    use rustix::net::{connect, listen, sockopt};

    use super::*;

    fn bound(address: &str) -> rustix::fd::OwnedFd {
        let address: SocketAddr = address.parse().unwrap();
        let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let socket = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
        sockopt::set_socket_reuseaddr(&socket, true).unwrap();
        bind(&socket, &address).unwrap();
        socket
    }

    fn listening(address: &str) -> (rustix::fd::OwnedFd, SocketAddr) {
        let socket = bound(address);
        listen(&socket, 16).unwrap();
        let address = TcpListener::from(socket.try_clone().unwrap()).local_addr().unwrap();
        (socket, address)
    }

    #[test]
    fn a_listener_with_a_connection_that_waits_has_no_competitor() {
        let (_hub, address) = listening("127.0.0.1:0");
        let _waiting = std::net::TcpStream::connect(address).unwrap();
        assert_ne!(other_socket(address).unwrap(), OtherSocket::Some);
    }

    #[test]
    fn a_socket_that_was_bound_before_the_hub_is_found() {
        if !lists_bound_sockets().unwrap() {
            return;
        }
        for other in ["127.0.0.1", "0.0.0.0", "[::]"] {
            let (free, address) = listening("127.0.0.1:0");
            drop(free);
            let _impostor = bound(&format!("{other}:{}", address.port()));
            let (_hub, address) = listening(&address.to_string());
            assert_eq!(other_socket(address).unwrap(), OtherSocket::Some, "{other}");
        }
        let (_hub, address) = listening("127.0.0.1:0");
        let _elsewhere = bound(&format!("127.0.0.2:{}", address.port()));
        assert_eq!(other_socket(address).unwrap(), OtherSocket::None, "other addresses are ignored");
    }

    #[test]
    fn a_connection_that_another_program_accepted_or_opened_is_found() {
        let (impostor, address) = listening("127.0.0.1:0");
        let _peer = std::net::TcpStream::connect(address).unwrap();
        let _held = rustix::net::accept(&impostor).unwrap();
        drop(impostor);
        let (_hub, address) = listening(&address.to_string());
        assert_eq!(other_socket(address).unwrap(), OtherSocket::Some);

        let (free, address) = listening("127.0.0.1:0");
        drop(free);
        let (_target, other) = listening("127.0.0.1:0");
        let client = bound(&address.to_string());
        connect(&client, &other).unwrap();
        let (_hub, address) = listening(&address.to_string());
        assert_eq!(other_socket(address).unwrap(), OtherSocket::Some);
    }
}
