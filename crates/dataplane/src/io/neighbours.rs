//! Neighbours' answers, for every worker. Workers share nothing, so each asks for itself who has
//! an address; but the answer is one frame, which comes to one worker. Each of the others hears
//! it on a socket of its own that nothing else comes to.

use std::ffi::c_int;
use std::io::Result;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::time::Duration;

use net::{Batch, Pool};

use super::af_packet::{accept, attach, receiving_socket};
use super::bpf;
use super::messages::Receiver;
use super::port::{Losses, MOST_WAITING, Port};
use super::sys;

/// Answers that are received at a time.
const MOST: usize = 8;
/// Rounds with other frames after which it is looked for answers.
const ROUNDS: u32 = 32;

const SO_ATTACH_BPF: c_int = 50;

/// A port that hears neighbours' answers, too.
pub(super) struct WithNeighbours {
    port: Box<dyn Port + Send>,
    socket: OwnedFd,
    receiver: Receiver,
    rounds: u32,
    /// Whether answers are counted as frames of this worker's.
    counts: bool,
}

impl WithNeighbours {
    /// Adds the answers that come to the interface with this number. One worker is to count them:
    /// the first.
    pub(super) fn new(port: Box<dyn Port + Send>, index: u32, counts: bool) -> Result<Self> {
        Self::hearing(port, index, counts, false)
    }

    /// The same for an interface whose other end this process is: there, what the host sends comes
    /// to the chain. The first worker's port has the answers already.
    pub(super) fn of_host(port: Box<dyn Port + Send>, index: u32) -> Result<Self> {
        Self::hearing(port, index, false, true)
    }

    fn hearing(
        port: Box<dyn Port + Send>,
        index: u32,
        counts: bool,
        sent_by_host: bool,
    ) -> Result<Self> {
        let socket = receiving_socket()?;
        sys::set::<c_int>(&socket, libc::SOL_PACKET, libc::PACKET_VNET_HDR, &1)?;
        sys::set::<c_int>(&socket, libc::SOL_PACKET, libc::PACKET_AUXDATA, &1)?;
        let filter = bpf::only_neighbours(sent_by_host)?;
        sys::set(&socket, libc::SOL_SOCKET, SO_ATTACH_BPF, &filter.as_raw_fd())?;
        attach(&socket, index, None)?;
        let ignored = c_int::from(!sent_by_host);
        sys::set(&socket, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, &ignored)?;
        Ok(Self { port, socket, receiver: Receiver::new(MOST), rounds: 0, counts })
    }
}

impl Port for WithNeighbours {
    fn receive(
        &mut self,
        most: usize,
        batch: &mut Batch,
        pool: &mut Pool,
        losses: &mut Losses,
    ) -> Result<()> {
        let before = batch.len();
        self.port.receive(most, batch, pool, losses)?;
        self.rounds = self.rounds.wrapping_add(1);
        if batch.len() == before || self.rounds.is_multiple_of(ROUNDS) {
            let (frames, bytes) = (batch.len(), batch.bytes());
            // An error is the port's, too, which tells of it.
            let _ = self.receiver.receive(&self.socket, MOST, pool, |packet, message, pool| {
                accept(packet, message, batch, pool, losses);
            });
            if batch.len() > frames && !self.counts {
                losses.heard((batch.len() - frames) as u64, batch.bytes() - bytes);
            }
        }
        Ok(())
    }

    fn send(&mut self, batch: &mut Batch, pool: &mut Pool, losses: &mut Losses) -> Result<()> {
        self.port.send(batch, pool, losses)
    }

    fn descriptors(&self) -> Vec<RawFd> {
        let mut descriptors = self.port.descriptors();
        descriptors.push(self.socket.as_raw_fd());
        descriptors
    }

    fn spread_by(&mut self, program: &OwnedFd) -> Result<()> {
        self.port.spread_by(program)
    }

    fn waiting(&mut self) -> Option<u64> {
        self.port.waiting()
    }

    fn mark(&mut self) {
        self.port.mark();
    }

    /// Answers of long ago may not be true any more.
    fn forget(&mut self) {
        self.port.forget();
        let mut left = MOST_WAITING;
        while left > 0 && sys::wait_readable(&[self.socket.as_raw_fd()], Duration::ZERO) {
            // An error is the port's, too, which tells of it.
            let _ = sys::read(&self.socket, &mut [0]);
            left -= 1;
        }
    }

    fn is_drained(&mut self) -> bool {
        self.port.is_drained()
    }

    fn is_sent(&mut self) -> bool {
        self.port.is_sent()
    }

    fn count_overruns(&mut self, losses: &mut Losses) {
        self.port.count_overruns(losses);
    }
}
