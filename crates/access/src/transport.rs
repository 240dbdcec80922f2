//! A TCP connection with or without TLS, for blocking and for non-blocking event loops.
//!
//! A plain connection is handed out as a socket ([`Transport::plain`]), so that zero-copy operations of the kernel
//! remain possible. A TLS connection is read and written through this type. Besides the socket's readiness, an event
//! loop must check [`Transport::holds`] (bytes read and not handed out) and [`Transport::wants_room`] (bytes accepted
//! and not written).

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsRawFd, RawFd};
use std::time::{Duration, Instant};

use rustls::Connection;
use rustls::pki_types::CertificateDer;

use crate::tls::{self, PARENT, Tls};

/// Maximum size of outgoing bytes buffered in a TLS connection.
const WAITING: usize = 256 << 10;
/// Maximum size of one read from the socket, bytes.
const AT_ONCE: usize = 64 << 10;
/// Content types of TLS records, which are their first bytes.
const OF_TLS: std::ops::RangeInclusive<u8> = 0x14..=0x17;

#[derive(Debug)]
pub struct Transport {
    socket: TcpStream,
    /// Deadline of blocking reads. `None`: no deadline.
    until: Option<Instant>,
    tls: Option<Box<TlsSession>>,
}

#[derive(Debug)]
struct TlsSession {
    session: Connection,
    input: Vec<u8>,
    from: usize,
    to: usize,
    holds: bool,
}

impl From<TcpStream> for Transport {
    fn from(socket: TcpStream) -> Self {
        Self { socket, until: None, tls: None }
    }
}

impl Transport {
    /// Wraps a dialled connection, with TLS if given. Nothing is sent yet.
    ///
    /// # Errors
    /// If the TLS session cannot be created.
    pub fn dialled(socket: TcpStream, tls: Option<&Tls>) -> io::Result<Self> {
        Self::over(socket, tls.map(Tls::dialling))
    }

    /// Wraps an accepted connection, with TLS if given.
    ///
    /// # Errors
    /// If the TLS session cannot be created.
    pub fn accepted(socket: TcpStream, tls: Option<&Tls>) -> io::Result<Self> {
        Self::over(socket, tls.map(Tls::listening))
    }

    fn over(socket: TcpStream, session: Option<Result<Connection, rustls::Error>>) -> io::Result<Self> {
        let tls = session.transpose().map_err(io::Error::other)?.map(|mut session| {
            session.set_buffer_limit(Some(WAITING));
            Box::new(TlsSession { session, input: Vec::new(), from: 0, to: 0, holds: false })
        });
        Ok(Self { socket, until: None, tls })
    }

    /// The socket, for polling and for its options. It must not be read or written.
    #[must_use]
    pub fn socket(&self) -> &TcpStream {
        &self.socket
    }

    #[must_use]
    pub fn fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// The socket of a connection without TLS. `None` with TLS.
    #[must_use]
    pub fn plain(&self) -> Option<&TcpStream> {
        self.tls.is_none().then_some(&self.socket)
    }

    /// Converts a connection without TLS to its socket. `None` with TLS.
    #[must_use]
    pub fn into_plain(self) -> Option<TcpStream> {
        self.tls.is_none().then_some(self.socket)
    }

    /// Sets the deadline of blocking reads. `None`: they wait for ever.
    ///
    /// # Errors
    /// If the socket rejects the option.
    pub fn wait_until(&mut self, until: Option<Instant>) -> io::Result<()> {
        self.until = until;
        if until.is_none() { self.socket.set_read_timeout(None) } else { Ok(()) }
    }

    /// Completes the TLS handshake of a blocking connection, after which the other end's names are known. Does nothing
    /// without TLS.
    ///
    /// # Errors
    /// If the other end does not speak TLS, has no certificate of this authority, or the deadline passes.
    pub fn shake_hands(&mut self) -> io::Result<()> {
        while self.tls.as_ref().is_some_and(|tls| tls.session.is_handshaking()) {
            self.flush()?;
            if self.take_in()? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        self.flush().map(drop)
    }

    /// Checks that the other end's certificate contains a name. Without TLS there are no proven names, and the check
    /// passes.
    ///
    /// # Errors
    /// If the certificate is missing or does not contain the name.
    pub fn names(&self, name: &str) -> Result<(), String> {
        match self.certificate() {
            Some(certificate) if !tls::names(certificate, name) => {
                Err(format!("its certificate does not name {name:?}"))
            }
            None if self.tls.is_some() => Err("it has shown no certificate".into()),
            _ => Ok(()),
        }
    }

    /// Checks that the other end may send code to be run here. Without TLS, every peer that knows the token may.
    ///
    /// # Errors
    /// If its certificate is not a parent's.
    pub fn may_send_code(&self) -> Result<(), String> {
        self.names(PARENT).map_err(|_| "its certificate is not a parent's: it may not have others run code".into())
    }

    fn certificate(&self) -> Option<&CertificateDer<'static>> {
        self.tls.as_ref()?.session.peer_certificates()?.first()
    }

    /// Returns a secret shared by the two ends of a TLS connection. Zeros without TLS.
    ///
    /// # Errors
    /// If the handshake is not complete. Zeros in its place would bind nothing to the connection.
    pub fn channel(&self) -> io::Result<[u8; 32]> {
        let Some(tls) = self.tls.as_deref() else { return Ok([0; 32]) };
        tls.session.export_keying_material([0; 32], b"EXPORTER-crosswind", None).map_err(io::Error::other)
    }

    /// Whether bytes that were read from the socket may wait here, without the socket being readable.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.holds)
    }

    /// Whether bytes wait here for room in the socket.
    #[must_use]
    pub fn wants_room(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.session.wants_write())
    }

    /// Sends bytes of two slices. Returns how many were accepted; the socket may take them later. Without TLS only
    /// `first` is written.
    ///
    /// # Errors
    /// `WouldBlock` if nothing was accepted, or the error of the connection.
    pub fn send(&mut self, first: &[u8], second: &[u8]) -> io::Result<usize> {
        if !self.try_flush()? {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let Some(tls) = &mut self.tls else { return (&self.socket).write(first) };
        let mut taken = tls.session.writer().write(first)?;
        if taken == first.len() {
            taken += tls.session.writer().write(second)?;
        }
        self.try_flush()?;
        Ok(taken)
    }

    /// Writes the bytes that wait here. Returns whether all were written.
    ///
    /// # Errors
    /// If the connection has failed.
    pub fn try_flush(&mut self) -> io::Result<bool> {
        let Some(tls) = &mut self.tls else { return Ok(true) };
        while tls.session.wants_write() {
            match tls.session.write_tls(&mut &self.socket) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Closes the sending direction, with a TLS alert if possible.
    pub fn hang_up(&mut self) {
        if let Some(tls) = &mut self.tls {
            tls.session.send_close_notify();
        }
        // If the other end is gone, it does not need the alert.
        let _ = self.try_flush();
        let _ = self.socket.shutdown(Shutdown::Write);
    }

    /// Reads from the socket once and decrypts what arrived. Returns 0 at the end of the connection.
    fn take_in(&mut self) -> io::Result<usize> {
        self.be_patient()?;
        let Some(tls) = &mut self.tls else { return Ok(0) };
        if tls.from == tls.to {
            tls.input.resize(AT_ONCE, 0);
            (tls.from, tls.to) = (0, (&self.socket).read(&mut tls.input)?);
            if tls.to == 0 {
                return Ok(0);
            }
        }
        let mut rest = &tls.input[tls.from..tls.to];
        let first = rest[0];
        let read = tls.session.read_tls(&mut rest)?;
        tls.from += read;
        if let Err(error) = tls.session.process_new_packets() {
            let shaking = tls.session.is_handshaking();
            // Send the alert that states the reason, if the other end still reads.
            let _ = self.try_flush();
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                explain(&error, shaking && !OF_TLS.contains(&first)),
            ));
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
    /// Reads what has arrived. Blocks for the first byte if the socket is blocking. 0: the other end has closed.
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.tls.is_none() {
            self.be_patient()?;
            return self.socket.read(into);
        }
        loop {
            let Some(tls) = &mut self.tls else { return Ok(0) };
            match tls.session.reader().read(into) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => tls.holds = tls.from < tls.to,
                // Frames carry their length, so a truncated connection can be treated like a closed one.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(0),
                result => {
                    tls.holds = true;
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

    /// Writes the bytes that wait here; on a non-blocking socket, as many as it takes.
    fn flush(&mut self) -> io::Result<()> {
        self.try_flush().map(drop)
    }
}

/// Describes the error for the user who configured the two ends.
fn explain(error: &rustls::Error, is_plain: bool) -> String {
    use rustls::{AlertDescription as Alert, CertificateError, Error};
    match error {
        _ if is_plain => "speaks no TLS, and this end does".into(),
        Error::AlertReceived(Alert::UnknownCA | Alert::BadCertificate | Alert::DecryptError) => {
            "does not take our certificate: another authority has signed it".into()
        }
        // TLS has a single alert for expired certificates and for those that are not valid yet.
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

/// Whether the first byte of a connection without TLS belongs to TLS.
#[must_use]
pub fn is_tls(first: u8) -> bool {
    OF_TLS.contains(&first)
}
