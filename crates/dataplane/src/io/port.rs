//! A port: frames between an interface and this process, in one I/O mode.

use std::io::Result;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::time::{Duration, Instant};

pub(super) use elements::configure::WorkerShare;
use elements::device::Event;
use ir::Reason;
use net::{Batch, Pool};

use super::sys;

/// The most packets that are received at a time.
pub(super) const MOST: usize = 256;

/// The kernel had no room for a frame that came.
pub(super) const OVERRUN: Reason = Reason("receive-queue-full");
/// The kernel took a frame and had no room for it.
pub(super) const NO_ROOM: Reason = Reason("send-queue-full");
/// A frame longer than the interface sends, or than a buffer holds.
pub(super) const OVERSIZE: Reason = Reason("oversize");
/// A frame without a whole Ethernet header.
pub(super) const RUNT: Reason = Reason("runt");
/// A frame of which the kernel handed over only a part.
pub(super) const TRUNCATED: Reason = Reason("truncated");
/// A super-frame that cannot be cut into frames.
pub(super) const NOT_SEGMENTED: Reason = Reason("not-segmented");
/// The interface is down or gone.
pub(super) const LINK_DOWN: Reason = Reason("link-down");
/// The kernel refused a frame, or handed over an entry that makes no sense.
pub(super) const REFUSED: Reason = Reason("refused");

/// Bytes of an Ethernet header.
pub(super) const ETHERNET: usize = 14;

/// Recycles the first packets of a batch; the others stay.
pub(super) fn recycle_first(count: usize, batch: &mut Batch, pool: &mut Pool) {
    if count >= batch.len() {
        return pool.recycle_all(batch);
    }
    batch.drain_first(count).for_each(|packet| pool.recycle(packet));
}

/// Carries frames. It holds only what belongs to the kernel, so that it can be thrown away and
/// opened anew when the interface was.
pub(super) trait Port {
    /// Appends what is there, up to `most` packets; never waits.
    ///
    /// # Errors
    /// The kernel's; the port may be of no use any more.
    fn receive(
        &mut self,
        most: usize,
        batch: &mut Batch,
        pool: &mut Pool,
        losses: &mut Losses,
    ) -> Result<()>;

    /// Shows up to `most` frames where they lie, and has done with them; see [`elements::device::Device::receive_each`].
    fn receive_each(
        &mut self,
        _most: usize,
        _read: &mut dyn FnMut(&[u8]),
        _losses: &mut Losses,
    ) -> Option<usize> {
        None
    }

    /// Sends packets and recycles them; those for which there is no room now stay.
    ///
    /// # Errors
    /// The kernel's; packets that stay in the batch were not sent.
    fn send(&mut self, batch: &mut Batch, pool: &mut Pool, losses: &mut Losses) -> Result<()>;

    /// Fills buffers of the port's own with copies of a frame; see [`elements::device::Device::prepare_copies`].
    fn prepare_copies(&mut self, _frame: &[u8]) -> bool {
        false
    }

    /// Sends prepared copies; see [`elements::device::Device::send_prepared`].
    fn send_prepared(
        &mut self,
        _count: usize,
        _write: &mut dyn FnMut(&mut [u8]),
        _losses: &mut Losses,
    ) -> usize {
        0
    }

    /// What becomes readable when a frame comes.
    fn descriptors(&self) -> Vec<RawFd>;

    /// Has frames spread over workers by this program, where the port lets a program do it.
    ///
    /// # Errors
    /// The kernel's.
    fn spread_by(&mut self, _program: &OwnedFd) -> Result<()> {
        Ok(())
    }

    /// How many frames wait to be received. None if the kernel does not say.
    fn waiting(&mut self) -> Option<u64>;

    /// Remembers what waits to be received now; see [`Port::is_drained`].
    fn mark(&mut self) {}

    /// Forgets what came while nobody received.
    fn forget(&mut self) {}

    /// Whether all has been received that waited at the last mark.
    fn is_drained(&mut self) -> bool {
        true
    }

    /// Whether the kernel has taken all frames that were sent.
    fn is_sent(&mut self) -> bool {
        true
    }

    /// Counts the frames that the kernel dropped since the last call.
    fn count_overruns(&mut self, _losses: &mut Losses) {}
}

/// What waits in a socket's buffer, of which the kernel does not tell how much it is: all has been
/// received once there is nothing to read, or so much came that it must be more.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    since: Option<Instant>,
    left: usize,
}

/// The most frames that fit the buffer of a socket.
pub(super) const MOST_WAITING: usize = 1 << 17;
/// The longest that a frame is in a ring before it can be read, with much to spare.
const LATENESS: Duration = Duration::from_millis(5);

impl Backlog {
    pub(super) fn mark(&mut self) {
        *self = Self { since: Some(Instant::now()), left: MOST_WAITING };
    }

    #[inline]
    pub(super) fn received(&mut self, frames: usize) {
        self.left = self.left.saturating_sub(frames);
    }

    pub(super) fn is_over(&self, socket: &OwnedFd) -> bool {
        let late = self.since.is_none_or(|since| since.elapsed() > LATENESS);
        self.left == 0 || (late && !sys::wait_readable(&[socket.as_raw_fd()], Duration::ZERO))
    }
}

/// Frames that were lost, by reason, and what else there is to tell, until somebody asks.
#[derive(Debug, Default)]
pub(super) struct Losses(Vec<Event>);

impl Losses {
    /// Counts frames that were lost when receiving.
    pub(super) fn received(&mut self, why: Reason, packets: u64, bytes: u64) {
        self.add(why, packets, bytes, false);
    }

    /// Counts frames that were lost when sending.
    pub(super) fn sent(&mut self, why: Reason, packets: u64, bytes: u64) {
        self.add(why, packets, bytes, true);
    }

    #[cold]
    fn add(&mut self, why: Reason, more: u64, octets: u64, send: bool) {
        if more == 0 {
            return;
        }
        for event in &mut self.0 {
            if let Event::Lost { reason, packets, bytes, sending } = event
                && (*reason, *sending) == (why, send)
            {
                *packets += more;
                *bytes += octets;
                return;
            }
        }
        self.0.push(Event::Lost { reason: why, packets: more, bytes: octets, sending: send });
    }

    /// Has it known that received frames came to another worker, too, which counts them.
    #[cold]
    pub(super) fn heard(&mut self, more: u64, octets: u64) {
        for event in &mut self.0 {
            if let Event::Heard { packets, bytes } = event {
                *packets += more;
                *bytes += octets;
                return;
            }
        }
        self.0.push(Event::Heard { packets: more, bytes: octets });
    }

    /// Whether there is nothing to report.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Reports something to the user.
    #[cold]
    pub(super) fn notice(&mut self, text: String) {
        self.0.push(Event::Notice(text));
    }

    /// The next event for who receives, or for who sends; notices are for both, whoever asks first.
    #[inline]
    pub(super) fn next(&mut self, for_sending: bool) -> Option<Event> {
        if self.0.is_empty() {
            return None;
        }
        let at = self.0.iter().position(|event| match event {
            Event::Lost { sending, .. } => *sending == for_sending,
            Event::Heard { .. } => !for_sending,
            Event::Notice(_) => true,
        })?;
        Some(self.0.remove(at))
    }
}

/// Gives up the packets of a batch as lost in sending.
pub(super) fn give_up(why: Reason, batch: &mut Batch, pool: &mut Pool, losses: &mut Losses) {
    losses.sent(why, batch.len() as u64, batch.bytes());
    pool.recycle_all(batch);
}

/// How many packets to ask for: one while little comes, so that each is handled at once; more
/// while as many come as are asked for, so that a system call is shared by many. It never waits
/// for packets to come.
#[derive(Debug)]
pub(super) struct Multiplexing {
    batch: usize,
    least: usize,
    most: usize,
}

impl Multiplexing {
    /// Follows the load, or always asks for the same number.
    pub(super) fn new(fixed: Option<usize>) -> Self {
        let (least, most) = fixed.map_or((1, MOST), |batch| (batch, batch));
        Self { batch: least, least, most }
    }

    /// How many to ask for, at most `most`.
    #[inline]
    pub(super) fn ask(&self, most: usize) -> usize {
        self.batch.min(most)
    }

    /// So many came of those that were asked for.
    #[inline]
    pub(super) fn came(&mut self, asked: usize, came: usize) {
        if came >= asked {
            self.batch = (self.batch * 2).min(self.most);
        } else if came < self.batch / 2 {
            self.batch = (self.batch / 2).max(self.least);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_batch_follows_the_load() {
        let mut asked = Multiplexing::new(None);
        assert_eq!(asked.ask(256), 1);
        for _ in 0..20 {
            let n = asked.ask(256);
            asked.came(n, n);
        }
        assert_eq!(asked.ask(256), 256);
        assert_eq!(asked.ask(32), 32);
        asked.came(256, 130);
        assert_eq!(asked.ask(256), 256, "more than half is no reason to ask for less");
        for _ in 0..20 {
            asked.came(asked.ask(256), 0);
        }
        assert_eq!(asked.ask(256), 1);
    }

    #[test]
    fn a_fixed_batch_stays() {
        let mut asked = Multiplexing::new(Some(32));
        asked.came(32, 32);
        assert_eq!(asked.ask(256), 32);
        asked.came(32, 0);
        assert_eq!((asked.ask(256), asked.ask(8)), (32, 8));
    }

    #[test]
    fn losses_are_summed_and_told_once_to_whom_they_concern() {
        let mut losses = Losses::default();
        losses.sent(NO_ROOM, 2, 120);
        losses.received(RUNT, 1, 3);
        losses.sent(NO_ROOM, 1, 60);
        losses.sent(OVERSIZE, 0, 0);
        let lost =
            |reason, packets, bytes, sending| Some(Event::Lost { reason, packets, bytes, sending });
        assert_eq!(losses.next(true), lost(NO_ROOM, 3, 180, true));
        assert_eq!(losses.next(true), None);
        assert_eq!(losses.next(false), lost(RUNT, 1, 3, false));
        assert_eq!(losses.next(false), None);
    }
}
