//! Addresses: which ones only this machine can reach, and their resolution.

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

/// Whether only this machine can reach HOST:PORT. Names other than `localhost` count as reachable from outside,
/// whatever they resolve to at the moment. So do addresses of this machine's network namespaces.
#[must_use]
pub fn is_loopback(address: &str) -> bool {
    if !address.contains(':') {
        return false;
    }
    let host = host(address);
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// Returns the host of HOST:PORT as certificates name it: without the brackets and the zone of an IPv6 address.
#[must_use]
pub fn host(address: &str) -> &str {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host.split_once('%').map_or(host, |(address, _)| address)
}

/// Resolves HOST:PORT to socket addresses, in the order in which to try them.
///
/// An IPv6 address is written in brackets and may have a zone, `[fe80::1%eth0]:7117`. The standard library resolves the
/// zone only without brackets.
///
/// # Errors
/// If the name is unknown, or the port is not a number.
pub fn resolve(address: &str) -> io::Result<Vec<SocketAddr>> {
    let bracketed = address.strip_prefix('[').and_then(|rest| rest.rsplit_once("]:"));
    match bracketed.and_then(|(host, port)| port.parse::<u16>().ok().map(|port| (host, port))) {
        Some(place) => place.to_socket_addrs().map(Iterator::collect),
        None => address.to_socket_addrs().map(Iterator::collect),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_and_localhost_are_out_of_reach_of_other_hosts() {
        for inside in ["127.0.0.1:7117", "127.8.8.8:0", "localhost:1", "[::1]:7117"] {
            assert!(is_loopback(inside), "{inside}");
        }
        for outside in
            ["0.0.0.0:7117", "[::]:7117", "10.0.0.1:1", "127.example.org:1", "localhost.example.org:1", "x", ""]
        {
            assert!(!is_loopback(outside), "{outside}");
        }
    }

    #[test]
    fn the_host_of_an_address_has_no_port_no_brackets_and_no_zone() {
        for (address, expected) in [("[fe80::1%eth0]:7117", "fe80::1"), ("[::1]:1", "::1"), ("node7:7117", "node7")] {
            assert_eq!(host(address), expected);
        }
    }

    #[test]
    fn an_address_of_a_link_is_resolved_with_its_zone() -> io::Result<()> {
        // Interface 1 is the loopback of each network namespace.
        for (given, zone) in [("[fe80::1%lo]:7117", 1), ("[fe80::1%1]:7117", 1), ("[::1]:7117", 0)] {
            match resolve(given)?[..] {
                [SocketAddr::V6(found), ..] => assert_eq!((found.scope_id(), found.port()), (zone, 7117), "{given}"),
                ref other => panic!("{given}: {other:?}"),
            }
        }
        assert_eq!(resolve("127.0.0.1:80")?, ["127.0.0.1:80".parse().map_err(io::Error::other)?]);
        assert!(
            resolve("[fe80::1%nothing0]:7117").is_err() && resolve("[::1]:x").is_err() && resolve("[::1]").is_err()
        );
        Ok(())
    }
}
