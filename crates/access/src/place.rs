//! Which addresses only this machine reaches.

use std::net::IpAddr;

/// Whether HOST:PORT is one that only this machine reaches. A name other than `localhost` counts as one that others reach
/// too, whatever it stands for at the moment; so does an address of a network namespace of this machine.
#[must_use]
pub fn is_loopback(address: &str) -> bool {
    if !address.contains(':') {
        return false;
    }
    let host = host(address);
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// The host of HOST:PORT, as a certificate names it.
#[must_use]
pub fn host(address: &str) -> &str {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    host.trim_start_matches('[').trim_end_matches(']')
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
}
