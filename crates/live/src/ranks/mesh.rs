//! How ranks connect: first to the conductor, then each to all others. Each connection is authenticated in both directions.
//!
//! A rank opens its own listener before it dials the conductor; so all listeners are open before any address is told. It dials
//! the ranks below it and accepts those above: rank 0 dials no rank, so there is no circular wait.

use std::time::{Duration, Instant};

use crosswind_access::Access;
use crosswind_agent::frame::Frame;

use super::channel::Channel;
use super::settings::{Admission, RanksSettings};
use crate::dial::{Entered, Handshake, PeerRole};
use crate::error::LiveError;
use crate::listener::{Caller, Listener};
use crate::log::Log;
use crosswind_linux::{self as linux, now_ns, watch};

/// Between two looks whether all this is still wanted.
const LOOK_NS: u64 = 100_000_000;

/// What a rank needs to find the others.
pub struct RankConfig {
    pub rank: u32,
    /// HOST:PORT of the conductor.
    pub conductor: String,
    /// Where other ranks connect: HOST:PORT, port 0 for a free one.
    pub listen: String,
    /// What others must show, and are shown.
    pub access: Access,
    /// How long others are waited for, s.
    pub patience_s: f64,
    /// Whether the end of the standard input ends the rank.
    pub watch_input: bool,
    pub log: Log,
}

/// A rank that the conductor has accepted; it knows the run's settings, and is not connected to other ranks yet.
pub struct Joined {
    pub(super) config: RankConfig,
    pub(super) settings: RanksSettings,
    pub(super) peers: Vec<String>,
    pub(super) conductor: Channel,
    pub(super) listener: Listener,
}

/// The name under which a rank shows the token.
pub(super) fn name(rank: u32) -> String {
    format!("rank-{rank}")
}

/// The rank of a name, where it is one of so many.
pub(super) fn number(name: &str, ranks: u32) -> Option<u32> {
    name.strip_prefix("rank-")?.parse().ok().filter(|&number| number < ranks)
}

fn handshake(
    address: &str,
    name: &str,
    about: &str,
    access: &Access,
    patience: Duration,
    still: &dyn Fn() -> bool,
) -> Result<Entered, LiveError> {
    Handshake { address, role: PeerRole::Host, name, about, access, patience, still }.enter()
}

/// Lets a caller in that has shown the token.
pub(super) fn welcome(proof: [u8; 32], channel: &mut Channel, settings: Vec<u8>) -> std::io::Result<()> {
    let mut bytes = Vec::new();
    Frame::Welcome { proof, settings }.encode(0, &mut bytes);
    channel.say_raw(&bytes)
}

impl Joined {
    /// Opens a listener and is let in by the conductor, once all ranks have connected there.
    ///
    /// # Errors
    /// When the conductor can't be reached, refuses, or says what can't be.
    pub fn join(config: RankConfig) -> Result<Self, LiveError> {
        let listener = Listener::open(&config.listen, config.access.clone())?;
        let own = listener.address().map_err(LiveError::system("listening"))?;
        let patience = Duration::from_secs_f64(config.patience_s.clamp(0.1, 1e6));
        let wanted = || !config.watch_input || !linux::input_has_ended();
        let name = name(config.rank);
        let Entered { stream, settings, rest } =
            handshake(&config.conductor, &name, &own, &config.access, patience, &wanted)?;
        let refused = |why: String| LiveError::Refused { peer: config.conductor.clone(), why };
        let admission: Admission = serde_json::from_slice(&settings).map_err(|error| refused(error.to_string()))?;
        admission.run.check()?;
        if admission.peers.len() != admission.run.ranks as usize || config.rank >= admission.run.ranks {
            return Err(refused(format!("{} addresses for {} ranks", admission.peers.len(), admission.run.ranks)));
        }
        let conductor = Channel::new(stream, &rest).map_err(LiveError::system("talking to the conductor"))?;
        Ok(Self { settings: admission.run, peers: admission.peers, conductor, listener, config })
    }

    /// What the run is about.
    #[must_use]
    pub fn settings(&self) -> &RanksSettings {
        &self.settings
    }

    /// Tells the conductor that nothing will come of this rank.
    pub fn give_up(mut self, why: &str) {
        // If the conductor is gone, the message is not needed.
        let _ = self.conductor.say(&super::wire::Wire::Abort { why: why.into() }, 0);
    }

    /// Connects with all other ranks; a place for each, its own empty.
    pub(super) fn mesh(&mut self) -> Result<Vec<Option<Channel>>, LiveError> {
        let own = self.config.rank;
        let patience = Duration::from_secs_f64(self.config.patience_s.clamp(0.1, 1e6));
        let until = Instant::now() + patience;
        let (fd, watches) = (self.conductor.fd(), self.config.watch_input);
        // The conductor says nothing before all are connected, but that it is over.
        let wanted = || {
            let mut watched = [watch(fd, true, false)];
            let over = linux::wait(&mut watched, Some(0)).is_err() || linux::readable(&watched[0]);
            !(over || watches && linux::input_has_ended())
        };
        let mut links: Vec<Option<Channel>> = self.peers.iter().map(|_| None).collect();
        for below in 0..own {
            let address = &self.peers[below as usize];
            let Entered { stream, rest, .. } =
                handshake(address, &name(own), "", &self.config.access, patience, &wanted)?;
            links[below as usize] = Some(Channel::new(stream, &rest).map_err(LiveError::system("talking to a rank"))?);
        }
        while let Some(missing) = (own + 1..self.settings.ranks).find(|&above| links[above as usize].is_none()) {
            if !wanted() {
                return Err(LiveError::Interrupted);
            }
            if Instant::now() > until {
                return Err(LiveError::Lost(format!("rank {missing} did not connect with rank {own} in time")));
            }
            let mut watched: Vec<_> = self.listener.fds().map(|fd| watch(fd, true, false)).collect();
            linux::wait(&mut watched, Some(LOOK_NS)).map_err(LiveError::system("waiting"))?;
            let log = &mut self.config.log;
            for caller in self.listener.attend(now_ns(), &mut |line| log.note_once(line)) {
                let above = number(&caller.name, self.settings.ranks).filter(|&above| above > own);
                let Some(place) = above.map(|above| &mut links[above as usize]).filter(|place| place.is_none()) else {
                    crate::listener::refuse(caller.stream, &format!("{:?} is not waited for here", caller.name));
                    continue;
                };
                let Caller { stream, rest, proof, .. } = caller;
                let mut link = Channel::new(stream, &rest).map_err(LiveError::system("talking to a rank"))?;
                welcome(proof, &mut link, Vec::new()).map_err(LiveError::system("talking to a rank"))?;
                *place = Some(link);
            }
        }
        Ok(links)
    }
}
