//! Connections between two ends with certificates: encrypted if both are from the same set, and rejected otherwise.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use crosswind_access::authority::{Node, make, show};
use crosswind_access::{Access, Transport};

struct Set(PathBuf);

impl Set {
    fn new() -> Self {
        let name = u64::from_ne_bytes(crosswind_access::token::random().expect("bytes"));
        let path = std::env::temp_dir().join(format!("crosswind-sealed-{name:016x}"));
        let node = |name: &str, parent| Node { name: name.into(), hosts: Vec::new(), parent };
        make(&path, &[node("root", true), node("leaf", false)], 1).expect("made");
        Self(path)
    }

    fn of(&self, node: &str) -> Access {
        Access::of(None, Some(&self.0.join(node))).expect("whole")
    }
}

impl Drop for Set {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let caller = TcpStream::connect(listener.local_addr().expect("bound")).expect("connects");
    (caller, listener.accept().expect("accepts").0)
}

fn shaken(stream: std::io::Result<Transport>) -> std::io::Result<Transport> {
    let mut stream = stream?;
    stream.wait_until(Some(Instant::now() + Duration::from_secs(5)))?;
    stream.shake_hands()?;
    Ok(stream)
}

/// Returns both ends, once the handshake is complete.
fn met(caller: &Access, listener: &Access) -> (std::io::Result<Transport>, std::io::Result<Transport>) {
    let (here, there) = pair();
    std::thread::scope(|scope| {
        let there = scope.spawn(|| shaken(Transport::accepted(there, listener.tls())));
        (shaken(Transport::dialled(here, caller.tls())), there.join().expect("no panic"))
    })
}

#[test]
fn ends_of_one_set_know_each_other_and_share_a_secret() {
    let set = Set::new();
    let (here, there) = met(&set.of("leaf"), &set.of("root"));
    let (here, there) = (here.expect("let in"), there.expect("let in"));
    assert_eq!(here.names("root"), Ok(()));
    assert_eq!(here.names("127.0.0.1"), Ok(()));
    assert_eq!(here.may_send_code(), Ok(()));
    assert_eq!(there.names("leaf"), Ok(()));
    assert!(there.names("root").is_err() && there.names("10.0.0.1").is_err() && there.may_send_code().is_err());
    let own = here.channel().expect("shaken hands");
    assert_eq!(own, there.channel().expect("shaken hands"));
    let (again, _) = met(&set.of("leaf"), &set.of("root"));
    assert_ne!(own, again.expect("let in").channel().expect("shaken hands"));
    assert_ne!(own, [0; 32]);
}

#[test]
fn bytes_come_as_they_were_sent_however_little_the_sockets_take() {
    let set = Set::new();
    let (here, there) = met(&set.of("leaf"), &set.of("root"));
    let (mut here, mut there) = (here.expect("let in"), there.expect("let in"));
    for end in [&here, &there] {
        end.socket().set_nonblocking(true).expect("a socket");
    }
    here.wait_until(None).expect("a socket");
    there.wait_until(None).expect("a socket");
    let sent: Vec<u8> = (0..5_000_000u32).map(|at| (at * 7 + at / 251) as u8).collect();
    let (mut at, mut got) = (0, Vec::new());
    let until = Instant::now() + Duration::from_secs(30);
    while got.len() < sent.len() {
        assert!(Instant::now() < until, "{} of {} bytes", got.len(), sent.len());
        let middle = (at + 1000).min(sent.len());
        match here.send(&sent[at..middle], &sent[middle..]) {
            Ok(taken) => at += taken,
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock),
        }
        let mut buffer = [0; 10_000];
        match there.read(&mut buffer) {
            Ok(read) => got.extend_from_slice(&buffer[..read]),
            Err(error) => {
                assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
                assert!(!there.holds(), "what is held is handed out first");
            }
        }
    }
    assert!(got == sent && !here.wants_room());
    here.hang_up();
    there.socket().set_nonblocking(false).expect("a socket");
    assert_eq!(there.read(&mut [0; 10]).expect("an end"), 0);
}

#[test]
fn another_authority_or_none_is_refused_at_both_ends() {
    let (own, other) = (Set::new(), Set::new());
    let (here, there) = met(&other.of("root"), &own.of("root"));
    let why = here.expect_err("of another authority").to_string();
    assert!(why.contains("not to be trusted"), "{why}");
    assert!(there.is_err());
    let (here, there) = met(&Access::default(), &own.of("root"));
    let mut here = here.expect("it does not know yet");
    here.write_all(b"XWFM, or something else that is no TLS").expect("taken");
    assert!(there.is_err());
}

#[test]
fn bytes_that_are_no_tls_are_told_and_a_silent_end_is_not_waited_for() {
    let set = Set::new();
    let access = set.of("root");
    let wrong: [&[u8]; 4] =
        [b"GET / HTTP/1.1\r\n\r\n", &[0x16, 3, 1, 0xff, 0xff, 1, 2, 3], &[0x16; 300], &[0xff; 70_000]];
    for bytes in wrong {
        let (mut here, there) = pair();
        let said = std::thread::scope(|scope| {
            let end = scope.spawn(|| shaken(Transport::accepted(there, access.tls())));
            // The other end may have closed before everything is written.
            let _ = here.write_all(bytes);
            let _ = here.shutdown(std::net::Shutdown::Write);
            end.join().expect("no panic").expect_err("no TLS").to_string()
        });
        assert!(bytes[0] == 0x16 || said.contains("speaks no TLS"), "{said}");
    }
    let (_here, there) = pair();
    let mut there = Transport::accepted(there, access.tls()).expect("begun");
    let began = Instant::now();
    there.wait_until(Some(began + Duration::from_millis(200))).expect("a socket");
    assert!(there.shake_hands().is_err());
    assert!(began.elapsed() >= Duration::from_millis(200));
}

#[test]
fn what_other_users_may_read_or_change_is_refused() {
    let set = Set::new();
    let leaf = set.0.join("leaf");
    let tried = [
        ("key.pem", 0o600, &[0o644, 0o640, 0o604, 0o660, 0o620, 0o602][..]),
        ("ca.pem", 0o644, &[0o664, 0o646, 0o666]),
        ("cert.pem", 0o644, &[0o664, 0o646]),
        ("", 0o755, &[0o775, 0o757, 0o777]),
    ];
    let change = |path: &std::path::Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("the test's own");
    };
    for (name, kept, loose) in tried {
        let path = if name.is_empty() { leaf.clone() } else { leaf.join(name) };
        for mode in loose {
            change(&path, *mode);
            let error = Access::of(None, Some(&leaf)).expect_err("loose");
            assert!(error.to_string().contains(&format!("mode {mode:04o}")), "{error}");
            assert!(error.code() == "certificate" && error.hint().starts_with("chmod "), "{}", error.hint());
        }
        change(&path, kept);
        Access::of(None, Some(&leaf)).expect("closed to others");
    }
    change(&leaf.join("key.pem"), 0o400);
    // The check applies to the file that is read, whatever symbolic links lead to it.
    let loose = set.0.join("loose.pem");
    std::fs::rename(leaf.join("key.pem"), &loose).expect("own");
    std::os::unix::fs::symlink(&loose, leaf.join("key.pem")).expect("own");
    Access::of(None, Some(&leaf)).expect("closed to others");
    change(&loose, 0o644);
    Access::of(None, Some(&leaf)).expect_err("loose");
    let error = Access::of(None, Some(&set.0.join("missing"))).expect_err("not there");
    assert!(error.to_string().contains("cert.pem"), "{error}");
}

#[test]
fn a_certificate_that_has_expired_is_refused_at_both_ends() {
    let set = Set::new();
    let nodes =
        [("old", false), ("oldest", true)].map(|(name, parent)| Node { name: name.into(), hosts: Vec::new(), parent });
    make(&set.0, &nodes, 0).expect("made, and over within the second");
    let until = show(&set.0).expect("there").iter().map(|one| one.valid_until).min().expect("some");
    let now = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970").as_secs() as i64;
    while now() <= until {
        std::thread::sleep(Duration::from_millis(50));
    }
    for (caller, listener) in [("old", "root"), ("leaf", "oldest")] {
        let (here, there) = met(&set.of(caller), &set.of(listener));
        // The end that receives the certificate reports why. The other one sees the rejection no later than with its
        // first bytes.
        let shown = if caller == "old" { there } else { here };
        let Err(why) = shown else { panic!("let in") };
        assert!(why.to_string().contains("has expired by this host's clock"), "{why}");
    }
    let (here, there) = met(&set.of("leaf"), &set.of("root"));
    assert!(here.is_ok() && there.is_ok());
}

#[test]
fn a_file_without_end_is_no_certificate_and_no_key() {
    let set = Set::new();
    for name in ["cert.pem", "ca.pem"] {
        let directory = set.0.join("leaf");
        let kept = std::fs::read(directory.join(name)).expect("there");
        std::fs::remove_file(directory.join(name)).expect("the file is the test's own");
        std::os::unix::fs::symlink("/dev/zero", directory.join(name)).expect("a link can be made");
        let error = Access::of(None, Some(&directory)).expect_err("endless").to_string();
        assert!(error.contains("no regular file"), "{error}");
        std::fs::remove_file(directory.join(name)).expect("the link is the test's own");
        std::fs::write(directory.join(name), kept).expect("the file can be written");
    }
    let key = set.0.join("leaf").join("key.pem");
    std::fs::OpenOptions::new()
        .append(true)
        .open(&key)
        .and_then(|mut file| file.write_all(&[b'x'; 2 << 20]))
        .expect("own");
    let error = Access::of(None, Some(&set.0.join("leaf"))).expect_err("long").to_string();
    assert!(error.contains("more than 1048576 bytes"), "{error}");
    // A named pipe without a writer: opening it must not block.
    std::fs::remove_file(&key).expect("own");
    assert!(std::process::Command::new("mkfifo").args(["-m", "600"]).arg(&key).status().expect("runs").success());
    let error = Access::of(None, Some(&set.0.join("leaf"))).expect_err("a pipe").to_string();
    assert!(error.contains("no regular file"), "{error}");
}
