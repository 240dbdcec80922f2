//! A TCP connection, plain or sealed by TLS, for loops that never wait and for those that do.
//!
//! Plain connections are handed out as they are ([`Transport::plain`]), so that what the kernel does without copies stays
//! so. A sealed one is read and written here; what waits inside it is what a loop must ask for beside the socket:
//! [`Transport::holds`] (bytes that were read and not handed out) and [`Transport::wants_room`] (bytes that were taken and
//! not written).

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsRawFd, RawFd};
use std::time::{Duration, Instant};

use rustls::Connection;
use rustls::pki_types::CertificateDer;

use crate::tls::{self, PARENT, Tls};

/// Outgoing bytes that may wait inside an encrypted connection.
const WAITING: usize = 256 << 10;
/// Bytes that are read from the socket at once.
const AT_ONCE: usize = 64 << 10;
/// First byte of an alert, and of a greeting, of TLS.
const OF_TLS: std::ops::RangeInclusive<u8> = 0x14..=0x17;

#[derive(Debug)]
pub struct Transport {
    socket: TcpStream,
    /// Nothing is waited for beyond, where the socket waits at all.
    until: Option<Instant>,
    sealed: Option<Box<Sealed>>,
}

#[derive(Debug)]
struct Sealed {
    session: Connection,
    input: Vec<u8>,
    from: usize,
    to: usize,
    holds: bool,
}

impl From<TcpStream> for Transport {
    fn from(socket: TcpStream) -> Self {
        Self { socket, until: None, sealed: None }
    }
}

impl Transport {
    /// Over a connection that was dialled; sealed where there is TLS. Nothing is sent yet.
    ///
    /// # Errors
    /// When TLS cannot begin.
    pub fn dialled(socket: TcpStream, tls: Option<&Tls>) -> io::Result<Self> {
        Self::over(socket, tls.map(Tls::dialling))
    }

    /// Over a connection that was accepted.
    ///
    /// # Errors
    /// When TLS cannot begin.
    pub fn accepted(socket: TcpStream, tls: Option<&Tls>) -> io::Result<Self> {
        Self::over(socket, tls.map(Tls::listening))
    }

    fn over(socket: TcpStream, session: Option<Result<Connection, rustls::Error>>) -> io::Result<Self> {
        let sealed = session.transpose().map_err(io::Error::other)?.map(|mut session| {
            session.set_buffer_limit(Some(WAITING));
            Box::new(Sealed { session, input: Vec::new(), from: 0, to: 0, holds: false })
        });
        Ok(Self { socket, until: None, sealed })
    }

    /// The socket, to be watched and asked; not to be read or written.
    #[must_use]
    pub fn socket(&self) -> &TcpStream {
        &self.socket
    }

    #[must_use]
    pub fn fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// The socket, where its bytes are those that are meant.
    #[must_use]
    pub fn plain(&self) -> Option<&TcpStream> {
        self.sealed.is_none().then_some(&self.socket)
    }

    /// The socket of a connection that is not sealed.
    #[must_use]
    pub fn into_plain(self) -> Option<TcpStream> {
        self.sealed.is_none().then_some(self.socket)
    }

    /// From now on, waits no longer than until then; none: for ever.
    ///
    /// # Errors
    /// When the socket is gone.
    pub fn wait_until(&mut self, until: Option<Instant>) -> io::Result<()> {
        self.until = until;
        if until.is_none() { self.socket.set_read_timeout(None) } else { Ok(()) }
    }

    /// Completes the TLS handshake, where the connection is encrypted and blocking: then the other end's name is known.
    ///
    /// # Errors
    /// When the other end speaks no TLS, has no certificate of this authority, or the time is over.
    pub fn shake_hands(&mut self) -> io::Result<()> {
        while self.sealed.as_ref().is_some_and(|sealed| sealed.session.is_handshaking()) {
            self.flush()?;
            if self.take_in()? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        self.flush().map(drop)
    }

    /// Whether the other end's certificate names it so. Without TLS there are no proved names, and this is no error.
    ///
    /// # Errors
    /// Says what is wrong.
    pub fn names(&self, name: &str) -> Result<(), String> {
        match self.certificate() {
            Some(certificate) if !tls::names(certificate, name) => {
                Err(format!("its certificate does not name {name:?}"))
            }
            None if self.sealed.is_some() => Err("it has shown no certificate".into()),
            _ => Ok(()),
        }
    }

    /// Whether the other end may start code here. Without TLS every end that knows the token may.
    ///
    /// # Errors
    /// Says what is wrong.
    pub fn may_send_code(&self) -> Result<(), String> {
        self.names(PARENT).map_err(|_| "its certificate is not a parent's: it may not have others run code".into())
    }

    fn certificate(&self) -> Option<&CertificateDer<'static>> {
        self.sealed.as_ref()?.session.peer_certificates()?.first()
    }

    /// What only the two ends of a sealed connection know, once hands are shaken; zeros where it is plain.
    #[must_use]
    pub fn channel(&self) -> [u8; 32] {
        let drawn = |sealed: &Sealed| sealed.session.export_keying_material([0; 32], b"EXPORTER-crosswind", None).ok();
        self.sealed.as_deref().and_then(drawn).unwrap_or_default()
    }

    /// Whether bytes wait that were read from the socket: it need not become readable for them.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.sealed.as_ref().is_some_and(|sealed| sealed.holds)
    }

    /// Whether bytes wait for room in the socket.
    #[must_use]
    pub fn wants_room(&self) -> bool {
        self.sealed.as_ref().is_some_and(|sealed| sealed.session.wants_write())
    }

    /// Takes bytes of two slices, as many as there is room for; what the socket does not take at once waits here.
    ///
    /// # Errors
    /// `WouldBlock` where nothing was taken; or the connection's end.
    pub fn send(&mut self, first: &[u8], second: &[u8]) -> io::Result<usize> {
        if !self.try_flush()? {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let Some(sealed) = &mut self.sealed else { return (&self.socket).write(first) };
        let mut taken = sealed.session.writer().write(first)?;
        if taken == first.len() {
            taken += sealed.session.writer().write(second)?;
        }
        self.try_flush()?;
        Ok(taken)
    }

    /// Writes what waits here; whether all of it has gone.
    ///
    /// # Errors
    /// When the connection is at its end.
    pub fn try_flush(&mut self) -> io::Result<bool> {
        let Some(sealed) = &mut self.sealed else { return Ok(true) };
        while sealed.session.wants_write() {
            match sealed.session.write_tls(&mut &self.socket) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Says that no more will come, where that can still be said.
    pub fn hang_up(&mut self) {
        if let Some(sealed) = &mut self.sealed {
            sealed.session.send_close_notify();
        }
        // If the other end is gone, the alert is not needed.
        let _ = self.try_flush();
        let _ = self.socket.shutdown(Shutdown::Write);
    }

    /// Reads from the socket once, and opens what came; 0 at its end.
    fn take_in(&mut self) -> io::Result<usize> {
        self.be_patient()?;
        let Some(sealed) = &mut self.sealed else { return Ok(0) };
        if sealed.from == sealed.to {
            sealed.input.resize(AT_ONCE, 0);
            (sealed.from, sealed.to) = (0, (&self.socket).read(&mut sealed.input)?);
            if sealed.to == 0 {
                return Ok(0);
            }
        }
        let mut rest = &sealed.input[sealed.from..sealed.to];
        let first = rest[0];
        let read = sealed.session.read_tls(&mut rest)?;
        sealed.from += read;
        if let Err(error) = sealed.session.process_new_packets() {
            let shaking = sealed.session.is_handshaking();
            // The other end is told why, if it takes that.
            let _ = self.try_flush();
            return Err(io::Error::new(io::ErrorKind::InvalidData, told(&error, shaking && !OF_TLS.contains(&first))));
        }
        Ok(read)
    }

    fn be_patient(&self) -> io::Result<()> {
        let Some(until) = self.until else { return Ok(()) };
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.socket.set_read_timeout(Some(left.max(Duration::from_millis(1))))
    }
}

impl Read for Transport {
    /// Reads what is there; waits for the first byte where the socket waits. 0: the other end says no more.
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.sealed.is_none() {
            self.be_patient()?;
            return self.socket.read(into);
        }
        loop {
            let Some(sealed) = &mut self.sealed else { return Ok(0) };
            match sealed.session.reader().read(into) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => sealed.holds = sealed.from < sealed.to,
                // Frames say themselves where they end: a connection cut short is one at its end.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(0),
                result => {
                    sealed.holds = true;
                    return result;
                }
            }
            self.try_flush()?;
            if self.take_in()? == 0 {
                return Ok(0);
            }
        }
    }
}

impl Write for Transport {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.send(bytes, &[])
    }

    /// Writes what waits; of a socket that never waits, as much as it takes.
    fn flush(&mut self) -> io::Result<()> {
        self.try_flush().map(drop)
    }
}

/// The error in words for the user who set up the two ends.
fn told(error: &rustls::Error, is_plain: bool) -> String {
    use rustls::{AlertDescription as Alert, CertificateError, Error};
    match error {
        _ if is_plain => "speaks no TLS, and this end does".into(),
        Error::AlertReceived(Alert::UnknownCA | Alert::BadCertificate | Alert::DecryptError) => {
            "does not take our certificate: another authority has signed it".into()
        }
        // TLS has one alert for a certificate whose time is over and for one whose time has not come.
        Error::AlertReceived(Alert::CertificateExpired) => {
            "does not take our certificate: by its clock, the certificate is not valid yet or no longer".into()
        }
        Error::InvalidCertificate(CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. }) => {
            "shows a certificate that is not valid yet by this host's clock: compare the clocks of both hosts".into()
        }
        Error::InvalidCertificate(CertificateError::Expired | CertificateError::ExpiredContext { .. }) => {
            "shows a certificate that has expired by this host's clock: make new ones, or compare the clocks".into()
        }
        Error::InvalidCertificate(why) => format!("shows a certificate that is not to be trusted: {why:?}"),
        other => format!("breaks TLS: {other}"),
    }
}

/// Whether the first byte of a connection is one of TLS, where no TLS is spoken.
#[must_use]
pub fn is_tls(first: u8) -> bool {
    OF_TLS.contains(&first)
}
