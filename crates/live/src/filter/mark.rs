//! Tests whether marks of packets reach the other end: connects with a mark, and the other end reports the mark that
//! arrived.

use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use crosswind_access::Access;
use crosswind_access::place::resolve;

use super::peers::NAME;
use super::settings::About;
use super::sockets::{arrived_mark, connect_marked};
use crate::dial::{Handshake, PeerRole};
use crate::error::LiveError;

/// Time limit for the other end.
const PATIENCE: Duration = Duration::from_secs(5);

/// Returns the type-of-service byte of a connection's first packet on arrival, when sent with `tos`. Without a peer it
/// uses this machine's loopback, otherwise a `crosswind filter` that listens at the address. `None` if the other end
/// cannot determine it.
///
/// # Errors
/// When the peer cannot be reached, or rejects this end.
pub fn arrives(tos: u8, peer: Option<(&str, &Access)>) -> Result<Option<u8>, LiveError> {
    let making = || LiveError::system("making a marked connection");
    let Some((address, access)) = peer else {
        let listener = TcpListener::bind("127.0.0.1:0").map_err(making())?;
        let _marked = connect_marked(listener.local_addr().map_err(making())?, tos).map_err(making())?;
        let (accepted, _) = listener.accept().map_err(making())?;
        return Ok(arrived_mark(&accepted));
    };
    let stream = marked(address, tos).map_err(|source| LiveError::Unreachable { peer: address.into(), source })?;
    let own = About { version: About::VERSION, window: 1, limits: None, tos: None };
    let about = own.to_json()?;
    let (role, name, patience) = (PeerRole::Host, NAME, PATIENCE);
    let entered =
        Handshake { address, role, name, about: &about, access, patience, still: &|| true }.enter_over(stream)?;
    About::decode(&entered.settings).map(|about| about.tos).map_err(|why| LiveError::refused(address, why))
}

fn marked(address: &str, tos: u8) -> std::io::Result<TcpStream> {
    let places = resolve(address)?;
    // The kernel reports the mark only for IPv4 connections.
    let place = places.iter().find(|place| place.is_ipv4()).or(places.first());
    place.map_or_else(|| Err(std::io::ErrorKind::NotFound.into()), |place| connect_marked(*place, tos))
}
