//! TAP: an interface of the host's own whose other end is this process, frame by frame through a
//! character device. It is made when it is opened, and goes with the process.

use std::io::{Error, ErrorKind, Result};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;

use net::{Batch, Pool};

use super::netdev::explain;
use super::port::{ETHERNET, Losses, NO_ROOM, OVERSIZE, Port, REFUSED, RUNT, recycle_first};
use super::sys::{self, InterfaceRequest, Question};

const IFF_TAP: u16 = 0x0002;
const IFF_MULTI_QUEUE: u16 = 0x0100;
/// Frames come without anything in front of them.
const IFF_NO_PI: u16 = 0x1000;

/// Bytes for VLAN tags, which the MTU does not count.
const TAGS: usize = 8;

/// One queue of a TAP interface.
pub(super) struct Tap {
    file: OwnedFd,
    /// The longest frame.
    most: usize,
}

impl Tap {
    /// Opens a queue of the interface of this name, which is made if there is none; with several
    /// workers each opens one.
    ///
    /// # Errors
    /// A message with the mend.
    pub(super) fn open(name: &str, workers: usize) -> std::result::Result<Self, String> {
        let open = || {
            let mut options = std::fs::OpenOptions::new();
            options.read(true).write(true).custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC);
            let file = OwnedFd::from(options.open("/dev/net/tun")?);
            let mut request = InterfaceRequest::new(name)?;
            let several = if workers > 1 { IFF_MULTI_QUEUE } else { 0 };
            request.value[..2].copy_from_slice(&(IFF_TAP | IFF_NO_PI | several).to_ne_bytes());
            sys::ask(&file, Question::MakeTap, &mut request)?;
            Ok(file)
        };
        let file = open().map_err(|e: Error| match sys::number(&e) {
            libc::ENOENT | libc::ENXIO => {
                format!("{e}: /dev/net/tun: this kernel has no TAP interfaces (CONFIG_TUN)")
            }
            libc::EINVAL => format!("{name} is there already, and no TAP interface"),
            libc::EBUSY => format!("another program has the TAP interface {name}"),
            _ => explain(&e, "CAP_NET_ADMIN"),
        })?;
        Ok(Self { file, most: 0 })
    }

    /// Says how long the interface's packets are at most.
    pub(super) fn set_mtu(&mut self, mtu: usize) {
        self.most = mtu + ETHERNET + TAGS;
    }
}

impl Port for Tap {
    fn receive(
        &mut self,
        most: usize,
        batch: &mut Batch,
        pool: &mut Pool,
        losses: &mut Losses,
    ) -> Result<()> {
        for _ in 0..most {
            let mut packet = pool.alloc(self.most);
            let result = sys::read(&self.file, packet.data_mut());
            let length = *result.as_ref().unwrap_or(&0);
            packet.truncate(length);
            if length >= ETHERNET {
                batch.push(packet);
                continue;
            }
            pool.recycle(packet);
            match result {
                Ok(length) => losses.received(RUNT, 1, length as u64),
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                    break;
                }
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    fn send(&mut self, batch: &mut Batch, pool: &mut Pool, losses: &mut Losses) -> Result<()> {
        let mut done = 0;
        let mut result = Ok(());
        for packet in batch.iter() {
            let length = packet.len();
            let why = if length > self.most {
                Some(OVERSIZE)
            } else if let Err(error) = sys::write(&self.file, packet.data()) {
                match sys::number(&error) {
                    libc::EAGAIN | libc::EINTR => break,
                    libc::ENOBUFS | libc::ENOMEM => Some(NO_ROOM),
                    libc::EINVAL if length < ETHERNET => Some(RUNT),
                    libc::EIO | libc::EBADFD => {
                        result = Err(error);
                        break;
                    }
                    _ => Some(REFUSED),
                }
            } else {
                None
            };
            if let Some(why) = why {
                losses.sent(why, 1, length as u64);
            }
            done += 1;
        }
        recycle_first(done, batch, pool);
        result
    }

    fn waiting(&mut self) -> Option<u64> {
        None
    }

    fn descriptors(&self) -> Vec<RawFd> {
        vec![self.file.as_raw_fd()]
    }

    fn spread_by(&mut self, program: &OwnedFd) -> Result<()> {
        // It holds for all queues, which have the numbers of their workers.
        sys::steer_tap(&self.file, program)
    }
}
