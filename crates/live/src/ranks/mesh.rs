//! How ranks connect: first to the conductor, then to each other. Both ends of each connection authenticate.
//!
//! A rank opens its own listener before it dials the conductor, so all listeners are open before any address is
//! announced. It dials the ranks below it and accepts those above. Rank 0 dials none, so there is no circular wait.

use std::time::{Duration, Instant};

use crosswind_access::Access;
use crosswind_agent::frame::{Frame, Refusal};

use super::channel::Channel;
use super::settings::{Admission, RanksSettings};
use crate::dial::{Entered, Handshake, PeerRole};
use crate::error::LiveError;
use crate::listener::{AuthenticatedPeer, Listener};
use crate::log::Log;
use crosswind_linux::{self as linux, now_ns, watch};

/// Interval between two checks whether the run is still wanted, ns.
const LOOK_NS: u64 = 100_000_000;

/// Configuration of one rank for joining a run.
pub struct RankConfig {
    pub rank: u32,
    pub conductor: String,
    /// Where other ranks connect: HOST:PORT, port 0 for a free one.
    pub listen: String,
    /// Credentials that the conductor and the ranks use to authenticate each other.
    pub access: Access,
    /// How long to wait for the conductor and for other ranks, s.
    pub patience_s: f64,
    /// Whether the end of standard input ends the rank.
    pub watch_input: bool,
    pub log: Log,
}

/// A rank that the conductor has accepted. It has the run's settings, and is not connected to other ranks yet.
pub struct Joined {
    pub(super) config: RankConfig,
    pub(super) settings: RanksSettings,
    pub(super) peers: Vec<String>,
    pub(super) conductor: Channel,
    pub(super) listener: Listener,
}

/// Returns the name that a rank uses to authenticate.
pub(super) fn name(rank: u32) -> String {
    format!("rank-{rank}")
}

/// Returns the rank with a name. `None` if it is not one of `ranks` ranks.
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

/// Sends the welcome to an authenticated peer.
pub(super) fn welcome(proof: [u8; 32], channel: &mut Channel, settings: Vec<u8>) -> std::io::Result<()> {
    let mut bytes = Vec::new();
    Frame::Welcome { proof, settings }.encode(0, &mut bytes);
    channel.send_raw(&bytes)
}

impl Joined {
    /// Opens a listener and joins the run. The conductor accepts once all ranks have connected to it.
    ///
    /// # Errors
    /// When the conductor cannot be reached, refuses, or sends invalid settings.
    pub fn join(config: RankConfig) -> Result<Self, LiveError> {
        let listener = Listener::open(&config.listen, config.access.clone())?;
        let own = listener.address().map_err(LiveError::system("listening"))?;
        let patience = Duration::from_secs_f64(config.patience_s.clamp(0.1, 1e6));
        let wanted = || !config.watch_input || !linux::input_has_ended(0);
        let name = name(config.rank);
        let Entered { stream, settings, rest } =
            handshake(&config.conductor, &name, &own, &config.access, patience, &wanted)?;
        let refused = |why: String| LiveError::refused(&config.conductor, why);
        let admission: Admission = serde_json::from_slice(&settings).map_err(|error| refused(error.to_string()))?;
        admission.run.check()?;
        if admission.peers.len() != admission.run.ranks as usize || config.rank >= admission.run.ranks {
            return Err(refused(format!("{} addresses for {} ranks", admission.peers.len(), admission.run.ranks)));
        }
        let conductor = Channel::new(stream, &rest).map_err(LiveError::system("talking to the conductor"))?;
        Ok(Self { settings: admission.run, peers: admission.peers, conductor, listener, config })
    }

    /// Returns the settings of the run.
    #[must_use]
    pub fn settings(&self) -> &RanksSettings {
        &self.settings
    }

    /// Reports to the conductor that this rank cannot take part.
    pub fn give_up(mut self, why: &str) {
        // If the conductor is gone, the message is not needed.
        let _ = self.conductor.send_wire(&super::wire::Wire::Abort { why: why.into() }, 0);
    }

    /// Connects to all other ranks. The result has an entry for each rank; its own is `None`.
    pub(super) fn mesh(&mut self) -> Result<Vec<Option<Channel>>, LiveError> {
        let own = self.config.rank;
        let patience = Duration::from_secs_f64(self.config.patience_s.clamp(0.1, 1e6));
        let until = Instant::now() + patience;
        let (fd, watches) = (self.conductor.fd(), self.config.watch_input);
        // Before all ranks are connected, the conductor sends nothing except the end of the run.
        let wanted = || {
            let mut watched = [watch(fd, true, false)];
            let over = linux::wait(&mut watched, Some(0)).is_err() || linux::readable(&watched[0]);
            !(over || watches && linux::input_has_ended(0))
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
            for peer in self.listener.attend(now_ns(), &mut |_, line| log.note_once(line)) {
                let above = number(&peer.name, self.settings.ranks).filter(|&above| above > own);
                let Some(place) = above.map(|above| &mut links[above as usize]).filter(|place| place.is_none()) else {
                    let why = format!("{:?} is not waited for here", peer.name);
                    crate::listener::refuse(peer.stream, Refusal::Final, &why);
                    continue;
                };
                let AuthenticatedPeer { stream, rest, proof, .. } = peer;
                let mut link = Channel::new(stream, &rest).map_err(LiveError::system("talking to a rank"))?;
                welcome(proof, &mut link, Vec::new()).map_err(LiveError::system("talking to a rank"))?;
                *place = Some(link);
            }
        }
        Ok(links)
    }
}
