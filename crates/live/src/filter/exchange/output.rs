//! Outgoing traffic: what applications send, and which of it goes to peers next.

use crosswind_schema::Class;

use super::Exchange;
use crate::filter::carrier::Ticket;
use crate::filter::connection::Connection;
use crate::filter::slab::Key;
use crate::filter::wire::{HEAD, Head, Kind};
use crosswind_linux::now_ns;

impl Exchange {
    /// Creates tickets for the bytes that an application has sent.
    pub(super) fn take_tickets(&mut self, key: Key) {
        let now = now_ns();
        let frame_bytes = self.settings.queue.frame_bytes as usize;
        let Some(connection) = self.connections.get_mut(key) else { return };
        let (class, number, at) = (connection.class, connection.number, connection.carrier);
        let Some(carrier) = self.carriers.get_mut(at) else { return };
        let mut any = false;
        while let Some(bytes) = connection.ticket(frame_bytes) {
            carrier.waiting.push(class, bytes as u32, Ticket { carrier: at, connection: key, made_ns: now, number });
            carrier.parallel_left += usize::from(class == Class::Parallel);
            self.counters.of(class).waiting_frames += 1;
            any = true;
        }
        let ends = connection.is_to_end();
        if any {
            self.pump(at);
        }
        if ends {
            self.announce_end(key);
        }
    }

    fn announce_end(&mut self, key: Key) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        connection.end_announced = true;
        let (carrier, number, class, over) =
            (connection.carrier, connection.number, connection.class, connection.is_over());
        self.send_control(carrier, Kind::End, class, number, &[]);
        if over {
            self.forget(key);
        }
    }

    /// Sends the frames that may leave to a peer, or puts them on the outgoing link.
    pub(super) fn pump(&mut self, key: Key) {
        let now = now_ns();
        if let Some(carrier) = self.carriers.get_mut(key) {
            if let Err(error) = carrier.flush(now) {
                return self.lost(key, &error);
            }
        }
        while let Some(carrier) = self.carriers.get_mut(key).filter(|carrier| carrier.has_room()) {
            let Some((class, bytes, ticket)) = carrier.waiting.pop(carrier.may_send()) else { return };
            if self.connections.get(ticket.connection).is_none() {
                carrier.parallel_left -= usize::from(class == Class::Parallel);
                let of = self.counters.of(class);
                of.waiting_frames = of.waiting_frames.saturating_sub(1);
                continue;
            }
            if let Some(credits) = &mut carrier.credits {
                credits.on_sent(class);
            }
            match &mut self.outgoing {
                Some(link) => link.push(class, bytes, ticket, now),
                None => self.send(class, bytes, ticket, now),
            }
        }
    }

    /// Sends the frame of a ticket.
    pub(super) fn send(&mut self, class: Class, bytes: u32, ticket: Ticket, now: u64) {
        let of = self.counters.of(class);
        of.waiting_frames = of.waiting_frames.saturating_sub(1);
        let Some(carrier) = self.carriers.get_mut(ticket.carrier) else { return };
        carrier.parallel_left -= usize::from(class == Class::Parallel);
        let frame = &mut self.frame[..HEAD + bytes as usize];
        // No data of a stream may follow its end, so a frame whose application is gone is not sent.
        let connection = self.connections.get_mut(ticket.connection);
        if connection.is_none_or(|connection| connection.redeem(&mut frame[HEAD..]).is_err()) {
            if let Some(credits) = &mut carrier.credits {
                credits.on_lost(class);
            }
            return self.reset(ticket.connection, "the application broke off");
        }
        let of = self.counters.of(class);
        let waited_s = now.saturating_sub(ticket.made_ns) as f64 * 1e-9;
        of.sent_frames += 1;
        of.sent_bytes += u64::from(bytes);
        of.waited_s += waited_s;
        of.longest_wait_s = of.longest_wait_s.max(waited_s);
        let last = class == Class::Parallel && carrier.parallel_left == 0;
        let head = Head { kind: Kind::Data, class, last, stream: ticket.number, bytes }.encode();
        frame[..HEAD].copy_from_slice(&head);
        if let Err(error) = carrier.send(frame, now) {
            return self.lost(ticket.carrier, &error);
        }
        if self.connections.get(ticket.connection).is_some_and(Connection::is_to_end) {
            self.announce_end(ticket.connection);
        }
    }
}
