//! Bytes as what an end with certificates hears before anything is proved, whether it dialled or listened: never a panic,
//! never let in, and memory for what came only.
#![no_main]

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::OnceLock;

use crosswind_access::authority::{Node, make};
use crosswind_access::greeting::{Greeting, Protocol};
use crosswind_access::{Tls, Transport};
use libfuzzer_sys::fuzz_target;

fn tls() -> &'static Tls {
    static TLS: OnceLock<Tls> = OnceLock::new();
    TLS.get_or_init(|| {
        let directory = std::env::temp_dir().join(format!("crosswind-fuzz-{}", std::process::id()));
        let node = Node { name: "node".into(), hosts: Vec::new(), parent: true };
        make(&directory, &[node], 1).expect("made");
        let tls = Tls::of_directory(&directory.join("node")).expect("whole");
        std::fs::remove_dir_all(&directory).expect("made above");
        tls
    })
}

fn hears(bytes: &[u8], over: impl FnOnce(TcpStream) -> std::io::Result<Transport>) {
    let (mut stranger, own) = UnixStream::pair().expect("descriptors");
    stranger.write_all(bytes).expect("a socket takes so little");
    stranger.shutdown(Shutdown::Write).expect("a connected socket");
    let mut transport = over(TcpStream::from(OwnedFd::from(own))).expect("begun");
    let mut read = [0; 4096];
    assert!(!matches!(transport.read(&mut read), Ok(1..)), "an end without a certificate is refused");
    assert!(transport.names("node").is_err());
}

fuzz_target!(|bytes: &[u8]| {
    for (magic, version) in [(*b"XWFM", 5), (*b"XWND", 3)] {
        let protocol = Protocol { magic, version };
        if let Ok(Some(greeting)) = Greeting::decode(bytes, protocol) {
            assert_eq!(greeting.encode(protocol), bytes[..40]);
        }
    }
    hears(bytes, |socket| Transport::accepted(socket, Some(tls())));
    hears(bytes, |socket| Transport::dialled(socket, Some(tls())));
});
