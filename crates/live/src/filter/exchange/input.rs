//! Incoming traffic: frames of peers, and their delivery to applications.

use std::io;

use crosswind_policy::queue::Grant;
use crosswind_schema::Class;

use super::{Arrived, Exchange, MOST_ON_LINK, TURN, Violation};
use crate::filter::connection::BEYOND_WINDOW;
use crate::filter::settings::{MOST_CONNECTIONS, is_target};
use crate::filter::slab::Key;
use crate::filter::wire::{self, Head, Kind};
use crosswind_linux::now_ns;

impl Exchange {
    /// Reads and handles what a peer has sent, up to [`TURN`] bytes.
    pub(super) fn read(&mut self, key: Key) {
        let mut left = TURN;
        loop {
            if self.incoming.as_ref().is_some_and(|link| link.len() >= MOST_ON_LINK) {
                return self.held_back.push(key);
            }
            let now = now_ns();
            let Some(carrier) = self.carriers.get_mut(key) else { return };
            match carrier.next() {
                Ok(Some((head, place))) => {
                    if let Err(offence) = self.on_peer_frame(key, head, place, now) {
                        return self.drop_carrier(key, Some(offence));
                    }
                    continue;
                }
                Ok(None) => {}
                Err(error) => return self.drop_carrier(key, Some(("lied", format!("sent {error}")))),
            }
            let Some(carrier) = self.carriers.get_mut(key) else { return };
            if left == 0 {
                return self.again.push(key);
            }
            match carrier.fill(now) {
                Ok(0) => return,
                Ok(read) => left = left.saturating_sub(read),
                Err(error) => return self.lost(key, &error),
            }
        }
    }

    fn on_peer_frame(
        &mut self,
        key: Key,
        head: Head,
        place: std::ops::Range<usize>,
        now: u64,
    ) -> Result<(), Violation> {
        let Some(carrier) = self.carriers.get_mut(key) else { return Ok(()) };
        let Head { kind, class, stream, bytes, .. } = head;
        let known = carrier.streams.get(&stream).copied();
        let payload = carrier.payload(place.clone());
        // A frame about a connection that is gone here was sent before the peer knew.
        match kind {
            Kind::Open => {
                let target = std::str::from_utf8(payload).unwrap_or_default().to_owned();
                let taken = known.is_some() || carrier.closing.contains_key(&stream);
                if taken || carrier.dialled.is_some() || !is_target(&target) {
                    return Err(("lied", "opened what cannot be opened".into()));
                }
                self.open(key, stream, class, target);
                // An honest peer never has more streams that it does not know to be reset.
                if self.carriers.get(key).is_some_and(|carrier| carrier.closing.len() > MOST_CONNECTIONS) {
                    return Err(("lied", format!("has more than {MOST_CONNECTIONS} connections that it did not end")));
                }
            }
            Kind::Opened => {}
            Kind::Data => return self.on_data(key, head, known, place, now),
            Kind::Window => {
                let more = wire::number(payload) as usize;
                if let Some(connection) = known.and_then(|known| self.connections.get_mut(known)) {
                    connection.may_send = connection.may_send.saturating_add(more);
                }
                known.into_iter().for_each(|known| self.take_tickets(known));
            }
            Kind::End => match known {
                Some(known) => {
                    if let Some(connection) = self.connections.get_mut(known) {
                        connection.peer_ended = true;
                    }
                    self.flush_connection(known);
                }
                None => drop(carrier.closing.remove(&stream)),
            },
            Kind::Reset => match known {
                Some(known) => {
                    if bytes > 0 {
                        let why = String::from_utf8_lossy(
                            self.carriers.get(key).map_or(&[], |from| from.payload(place.clone())),
                        )
                        .into_owned();
                        let peer = self.carriers.get(key).map(|from| from.peer.clone()).unwrap_or_default();
                        self.name(&peer, "reset", &format!("a connection through it was ended: {why}"));
                    }
                    self.forget(known);
                    self.send_control(key, Kind::End, class, stream, &[]);
                }
                None => drop(carrier.closing.remove(&stream)),
            },
            Kind::Credit => {
                let (frames, taken) = wire::grant(payload);
                if let Some(credits) = &mut carrier.credits {
                    credits.on_grant(Grant { class, frames, taken });
                }
                self.pump(key);
            }
        }
        Ok(())
    }

    fn on_data(
        &mut self,
        key: Key,
        head: Head,
        known: Option<Key>,
        place: std::ops::Range<usize>,
        now: u64,
    ) -> Result<(), Violation> {
        let (bytes, Head { class, last, .. }) = (place.len(), head);
        match known.and_then(|known| self.connections.get_mut(known)) {
            Some(connection) => connection.admit(class, bytes).map_err(|why| ("lied", why.to_owned()))?,
            None => self.admit_late(key, head.stream, bytes)?,
        }
        let of = self.counters.of(class);
        of.received_frames += 1;
        of.received_bytes += bytes as u64;
        self.count_arrival(key, class, last, now);
        let Some(carrier) = self.carriers.get(key) else { return Ok(()) };
        match (known.and_then(|known| self.connections.get_mut(known)), &mut self.incoming) {
            (Some(connection), Some(link)) => {
                connection.on_link += 1;
                let arrived = Arrived { carrier: key, connection: known, bytes: carrier.payload(place).to_vec() };
                link.push(class, bytes as u32, arrived, now);
            }
            (Some(connection), None) => {
                let result = connection.deliver(carrier.payload(place));
                self.delivered(key, known, class, result);
            }
            // A frame without an application is dropped and not put on the link, where no window would limit it.
            (None, _) => self.dequeued(key, class),
        }
        Ok(())
    }

    /// Checks a frame of a stream that was reset here. The peer may have sent it before it received the reset.
    fn admit_late(&mut self, key: Key, stream: u32, bytes: usize) -> Result<(), Violation> {
        let left = self.carriers.get_mut(key).and_then(|carrier| carrier.closing.get_mut(&stream));
        let Some(left) = left else { return Err(("lied", "sent data of a connection that is not open".into())) };
        *left = left.checked_sub(bytes).ok_or(("lied", BEYOND_WINDOW.to_owned()))?;
        Ok(())
    }

    /// Records a received frame in the limits of all connections to this receiver.
    fn count_arrival(&mut self, key: Key, class: Class, last: bool, now: u64) {
        if self.settings.credits.is_none() {
            return;
        }
        for other in self.carriers.keys() {
            let Some(carrier) = self.carriers.get_mut(other) else { continue };
            let Some(limits) = &mut carrier.limits else { continue };
            let grant = match class {
                _ if other == key => limits.on_frame(class, now, last),
                Class::Parallel => limits.on_parallel_elsewhere(now, last),
                Class::Local => None,
            };
            if let Some(grant) = grant {
                self.grant(other, grant);
            }
        }
    }

    pub(super) fn grant(&mut self, key: Key, grant: Grant) {
        self.counters.of(grant.class).credits_sent += 1;
        if let Some(carrier) = self.carriers.get_mut(key) {
            carrier.send_grant(grant);
            if let Err(error) = carrier.flush(now_ns()) {
                self.lost(key, &error);
            }
        }
    }

    /// Records that a frame has left the receiver's queue.
    pub(super) fn dequeued(&mut self, key: Key, class: Class) {
        let limits = self.carriers.get_mut(key).and_then(|carrier| carrier.limits.as_mut());
        if let Some(grant) = limits.and_then(|limits| limits.on_dequeue(class, now_ns())) {
            self.grant(key, grant);
        }
    }

    /// Updates credits and windows after a frame was passed to an application, or could not be.
    pub(super) fn delivered(&mut self, carrier: Key, known: Option<Key>, class: Class, result: io::Result<usize>) {
        let Some(key) = known else { return };
        match result {
            Ok(wait) => {
                self.counters.held_bytes += wait as u64;
                if wait == 0 {
                    self.dequeued(carrier, class);
                }
                self.make_good(key);
            }
            Err(_) => {
                self.dequeued(carrier, class);
                self.reset(key, "the application is gone");
            }
        }
    }

    pub(super) fn flush_connection(&mut self, key: Key) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        let (carrier, class, before) = (connection.carrier, connection.class, connection.held());
        match connection.flush() {
            Ok(frames) => {
                let gone = before - connection.held();
                let over = connection.is_over();
                self.counters.held_bytes = self.counters.held_bytes.saturating_sub(gone as u64);
                (0..frames).for_each(|_| self.dequeued(carrier, class));
                if over {
                    return self.forget(key);
                }
                self.make_good(key);
            }
            Err(_) => self.reset(key, "the application is gone"),
        }
    }

    /// Returns window to the peer for bytes that the application has accepted, once they amount to a quarter of the window.
    fn make_good(&mut self, key: Key) {
        let quarter = self.settings.window as usize / 4;
        let Some(connection) = self.connections.get_mut(key).filter(|connection| connection.owed >= quarter.max(1))
        else {
            return;
        };
        let owed = std::mem::take(&mut connection.owed);
        connection.may_come += owed;
        let (carrier, number, class) = (connection.carrier, connection.number, connection.class);
        self.send_control(carrier, Kind::Window, class, number, &(owed as u32).to_be_bytes());
    }
}
