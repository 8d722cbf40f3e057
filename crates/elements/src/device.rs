//! Devices as elements see them: where frames come from and go to.
//!
//! Elements say what they need ([`DeviceRequest`]); whoever runs the chain opens it.

use std::os::fd::RawFd;
use std::sync::{Arc, OnceLock};

use ir::Reason;
use net::{Batch, Pool};

/// What an element asks to be opened.
#[derive(Clone, Debug, PartialEq)]
pub enum DeviceRequest {
    /// A capture file to read (pcap or pcapng, plain or gzip).
    CaptureIn {
        /// Its path as configured.
        path: String,
    },
    /// A capture file to write.
    CaptureOut {
        /// Its path as configured; a name ending in `.gz` is compressed.
        path: String,
        /// Bytes kept of each frame; 0 for all.
        snap_length: u32,
        /// Link type number (1 Ethernet, 101 raw IP …).
        link_type: u32,
        /// Whether timestamps have nanoseconds.
        nanoseconds: bool,
        /// Whether each burst is written out at once.
        unbuffered: bool,
    },
    /// A named interface, as the command line binds it.
    Interface {
        /// The interface's name.
        name: String,
        /// Whether frames are received from it, or sent to it.
        receive: bool,
    },
}

/// What a reception came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// Some packets, perhaps none, were appended; more may come.
    More,
    /// The same, and others came and were handed to other workers.
    HandedOn,
    /// The input has ended.
    End,
}

/// What signals that there is something to receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// This becomes readable.
    Readable(RawFd),
    /// Nothing does: the device must be asked again and again.
    Polled,
}

/// External addresses and ports (or identifiers of pings) that are allocated, by each worker from its
/// share ([`crate::configure::WorkerShare::share`]): packets to them are the worker's whose share they are in.
/// Both ends belong to the ranges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OwnedPorts {
    /// IPv4 addresses.
    pub addresses: (u32, u32),
    /// Ports.
    pub ports: (u16, u16),
}

impl OwnedPorts {
    /// Whether addresses are shared out, not the ports of one.
    pub fn by_address(&self) -> bool {
        self.addresses.0 < self.addresses.1
    }
}

/// What a device has to tell besides its packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Frames were lost: by the kernel before they could be received, or as they were sent.
    Lost {
        /// Why.
        reason: Reason,
        /// How many; 1 or more.
        packets: u64,
        /// Their bytes; 0 if nobody knows.
        bytes: u64,
        /// Whether they were to be sent.
        sending: bool,
    },
    /// Of the frames that were received, some came to another worker, too, which counts them.
    Heard {
        /// How many; 1 or more.
        packets: u64,
        /// Their bytes.
        bytes: u64,
    },
    /// A line for the user: a link went down, an interface was opened again.
    Notice(String),
}

/// A source or a sink of frames.
pub trait Device {
    /// Appends up to `burst` packets to the batch.
    ///
    /// # Errors
    /// A message, after which the device has ended; packets appended before stand.
    fn receive(
        &mut self,
        burst: usize,
        batch: &mut Batch,
        pool: &mut Pool,
    ) -> Result<Received, String>;

    /// Shows up to `burst` frames that are there, where they lie, and has done with them; how many these were. Nothing
    /// from a device that cannot do so: then [`Device::receive`] has them.
    ///
    /// # Errors
    /// As [`Device::receive`].
    fn receive_each(
        &mut self,
        _burst: usize,
        _read: &mut dyn FnMut(&[u8]),
    ) -> Result<Option<usize>, String> {
        Ok(None)
    }

    /// Sends the packets of the batch and recycles them. The last of them stay in the batch when
    /// there is no room for them now; some may be lost, of which [`Device::next_event`] tells.
    ///
    /// # Errors
    /// A message, after which the device has ended; the packets are recycled all the same.
    fn send(&mut self, batch: &mut Batch, pool: &mut Pool) -> Result<(), String>;

    /// Sends copies of the packets of the batch, which stay; of how many, counted from the first,
    /// is returned.
    ///
    /// # Errors
    /// A message.
    fn send_copies(&mut self, batch: &Batch, pool: &mut Pool) -> Result<usize, String> {
        let mut copies = Batch::new();
        copies.extend(batch.iter().map(|p| pool.copy(p)));
        self.send(&mut copies, pool)?;
        let taken = batch.len().saturating_sub(copies.len());
        pool.recycle_all(&mut copies);
        Ok(taken)
    }

    /// Fills memory of the device's own with copies of a frame, which [`Device::send_prepared`] sends without copying them
    /// again. Whether the device has such memory.
    fn prepare_copies(&mut self, _frame: &[u8]) -> bool {
        false
    }

    /// Sends up to `count` of the prepared copies, each after `write` has changed it; of how many the device had room is
    /// returned. Those that were changed and not sent come first at the next call, and are not changed again.
    ///
    /// # Errors
    /// A message.
    fn send_prepared(
        &mut self,
        _count: usize,
        _write: &mut dyn FnMut(&mut [u8]),
    ) -> Result<usize, String> {
        Ok(0)
    }

    /// The same device for another chain of the same worker, where several chains may hold it. The
    /// device itself keeps their packets apart.
    fn share(&self) -> Option<Box<dyn Device + Send>> {
        None
    }

    /// What signals that there is something to receive, for a device whose frames come from outside;
    /// `None` for one that needs no waiting for.
    fn wait_on(&self) -> Option<Wake> {
        None
    }

    /// Steers packets to what this worker allocates to it, where the device spreads packets
    /// over workers.
    ///
    /// # Errors
    /// A message.
    fn steer(&mut self, _owned: &[OwnedPorts]) -> Result<(), String> {
        Ok(())
    }

    /// The next thing that the device has to tell; to be asked for after each call.
    fn next_event(&mut self) -> Option<Event> {
        None
    }

    /// The most packets that the device wants to be asked for at a time where the configuration
    /// does not say; it then finds for itself how many suit the load.
    fn burst(&self) -> Option<usize> {
        None
    }

    /// Makes sure that what was sent has arrived.
    ///
    /// # Errors
    /// A message.
    fn flush(&mut self) -> Result<(), String> {
        Ok(())
    }

    /// Packets per second that the source wants to be asked for; `None` if as fast as it can.
    fn rate(&self) -> Option<u64> {
        None
    }

    /// Link type number of the frames (1 Ethernet, 101 raw IP …).
    fn link_type(&self) -> u32 {
        1
    }

    /// How far a file has been read, in bytes of what it holds when it is not compressed.
    fn position(&self) -> Option<u64> {
        None
    }

    /// Goes on reading a file elsewhere.
    ///
    /// # Errors
    /// A message.
    fn seek(&mut self, _position: u64) -> Result<(), String> {
        Err("not a file that can be read from another place".to_string())
    }

    /// Length of a file in bytes, if it is known.
    fn length(&self) -> Option<u64> {
        None
    }
}

/// Where a control socket listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ControlAddress {
    /// A TCP port.
    Tcp {
        /// The port.
        port: u16,
        /// Whether one of the next ports will do when it is taken.
        search: bool,
        /// Whether only this machine may connect.
        localhost: bool,
    },
    /// A socket in the file system.
    Unix {
        /// Its path.
        path: String,
    },
}

/// A control socket that an element asks to be opened.
#[derive(Clone, Debug)]
pub struct ControlSocketRequest {
    /// Where it listens.
    pub address: ControlAddress,
    /// Whether handlers may only be read.
    pub read_only: bool,
    /// Whether connections are announced.
    pub verbose: bool,
    /// How many more times opening is tried, once a second, before it counts as failed.
    pub retries: u32,
    /// Whether failed tries are announced.
    pub retry_warnings: bool,
    /// Receives the port that was opened.
    pub bound: Arc<OnceLock<u16>>,
}
