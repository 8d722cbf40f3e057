//! Faults on purpose: a device that loses, doubles, swaps, corrupts and cuts frames, and whose
//! link goes down, to see how a chain takes it.

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use elements::device::{Device, Event, OwnedPorts, Received, Wake};
use ir::Reason;
use net::{Batch, Packet, Pool};

use super::port::{LINK_DOWN, Losses};

/// A fault that was asked for with `--faults`.
const FAULT: Reason = Reason("fault");

/// How often each fault happens, from 0 to 1, to a frame; and the seed of the choice. Written as
/// `drop=0.01,duplicate=0.01,seed=7`, or `none`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Faults {
    /// A frame is lost.
    pub drop: f64,
    /// A frame comes twice.
    pub duplicate: f64,
    /// A frame comes after the next one.
    pub reorder: f64,
    /// A byte of a frame is changed.
    pub corrupt: f64,
    /// A frame is cut at any place.
    pub short: f64,
    /// The link goes down for the next hundred frames, or for a second if fewer come.
    pub down: f64,
    /// Seed of the choice.
    pub seed: u64,
}

/// Frames that are lost while the link is down.
const DOWN: u32 = 100;
/// How long that is at most: hosts that hear of no neighbour send next to nothing.
const LONGEST: Duration = Duration::from_secs(1);
/// What no faults are written as.
const NONE: &str = "none";

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { drop, duplicate, reorder, corrupt, short, down, seed } = self;
        let shares = [
            ("drop", drop),
            ("duplicate", duplicate),
            ("reorder", reorder),
            ("corrupt", corrupt),
            ("short", short),
            ("down", down),
        ];
        let happen: Vec<String> = shares
            .iter()
            .filter(|(_, share)| **share > 0.0)
            .map(|(name, share)| format!("{name}={share}"))
            .collect();
        match happen.is_empty() {
            true => f.write_str(NONE),
            false => write!(f, "{},seed={seed}", happen.join(",")),
        }
    }
}

/// Faults that can become others while devices have them; clones are of the same.
#[derive(Clone, Debug, Default)]
pub struct FaultInjection(Arc<Injection>);

#[derive(Debug, Default)]
struct Injection {
    faults: Mutex<Faults>,
    /// How often they became others.
    changes: AtomicU64,
}

impl FaultInjection {
    /// These faults.
    pub fn new(faults: Faults) -> Self {
        let injection = Self::default();
        *injection.lock() = faults;
        injection
    }

    fn lock(&self) -> MutexGuard<'_, Faults> {
        self.0.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The faults that happen now.
    pub fn get(&self) -> Faults {
        self.lock().clone()
    }

    /// Has other faults happen from now on.
    pub fn set(&self, faults: Faults) {
        *self.lock() = faults;
        self.0.changes.fetch_add(1, Ordering::Release);
    }

    fn changes(&self) -> u64 {
        self.0.changes.load(Ordering::Acquire)
    }
}

impl FromStr for Faults {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut faults = Self::default();
        for setting in text.split(',').filter(|s| !s.is_empty() && text != NONE) {
            let Some((key, value)) = setting.split_once('=') else {
                return Err(format!("'{setting}' is not KEY=VALUE"));
            };
            if key == "seed" {
                faults.seed = value.parse().map_err(|_| format!("seed={value}: not a number"))?;
                continue;
            }
            let to = match key {
                "drop" => &mut faults.drop,
                "duplicate" => &mut faults.duplicate,
                "reorder" => &mut faults.reorder,
                "corrupt" => &mut faults.corrupt,
                "short" => &mut faults.short,
                "down" => &mut faults.down,
                _ => {
                    return Err(format!(
                        "there is no fault '{key}'; there are drop, duplicate, reorder, corrupt, \
                         short, down, and the seed"
                    ));
                }
            };
            let share = value.parse().ok().filter(|share| (0.0..=1.0).contains(share));
            *to = share.ok_or_else(|| format!("{key}={value}: not from 0 to 1"))?;
        }
        Ok(faults)
    }
}

/// A device with faults, in what it receives and in what it sends.
pub(super) struct Faulty {
    device: Box<dyn Device + Send>,
    injection: FaultInjection,
    /// How often they had become others when these were the ones.
    changes: u64,
    faults: Faults,
    random: fastrand::Rng,
    /// Frames that will be lost before the link is up again, and when it went down.
    down: u32,
    went_down: Instant,
    /// A frame that is to come after the next one.
    late: Option<Packet>,
    /// Packets after faults.
    after: Batch,
    losses: Losses,
}

impl Faulty {
    /// Puts faults on a device.
    pub(super) fn new(device: Box<dyn Device + Send>, injection: FaultInjection) -> Self {
        let (changes, faults) = (injection.changes(), injection.get());
        let random = fastrand::Rng::with_seed(faults.seed);
        let (late, losses) = (None, Losses::default());
        Self {
            device,
            injection,
            changes,
            faults,
            random,
            down: 0,
            went_down: Instant::now(),
            late,
            after: Batch::new(),
            losses,
        }
    }

    #[cold]
    fn become_others(&mut self, changes: u64) {
        (self.changes, self.faults, self.down) = (changes, self.injection.get(), 0);
        self.random.seed(self.faults.seed);
    }

    fn happens(&mut self, share: f64) -> bool {
        share > 0.0 && self.random.f64() < share
    }

    /// Puts the packets of a batch through faults, from the `from`th on.
    fn spoil(&mut self, batch: &mut Batch, from: usize, pool: &mut Pool, sending: bool) {
        let changes = self.injection.changes();
        if changes != self.changes {
            self.become_others(changes);
        }
        if self.down > 0 && self.went_down.elapsed() >= LONGEST {
            self.down = 0;
        }
        let mut before = Batch::default();
        batch.split_to(from, &mut before);
        for mut packet in before.drain() {
            if self.down == 0 && self.happens(self.faults.down) {
                (self.down, self.went_down) = (DOWN, Instant::now());
            }
            let lost = match self.down {
                0 => self.happens(self.faults.drop).then_some(FAULT),
                _ => Some(LINK_DOWN),
            };
            self.down = self.down.saturating_sub(1);
            if let Some(why) = lost {
                match sending {
                    true => self.losses.sent(why, 1, packet.len() as u64),
                    false => self.losses.received(why, 1, packet.len() as u64),
                }
                pool.recycle(packet);
                continue;
            }
            if self.happens(self.faults.corrupt) && packet.len() > 0 {
                let at = self.random.usize(..packet.len());
                packet.data_mut()[at] ^= self.random.u8(1..);
            }
            if self.happens(self.faults.short) {
                let length = self.random.usize(..=packet.len());
                packet.truncate(length);
            }
            if self.happens(self.faults.duplicate) {
                self.after.push(pool.copy(&packet));
            }
            if self.late.is_none() && self.happens(self.faults.reorder) {
                self.late = Some(packet);
                continue;
            }
            self.after.push(packet);
            self.after.extend(self.late.take());
        }
        batch.append(&mut self.after);
    }
}

impl Device for Faulty {
    fn receive(
        &mut self,
        burst: usize,
        batch: &mut Batch,
        pool: &mut Pool,
    ) -> Result<Received, String> {
        let from = batch.len();
        let received = self.device.receive(burst, batch, pool);
        self.spoil(batch, from, pool, false);
        if matches!(received, Ok(Received::End) | Err(_)) {
            batch.extend(self.late.take());
        }
        received
    }

    fn send(&mut self, batch: &mut Batch, pool: &mut Pool) -> Result<(), String> {
        self.spoil(batch, 0, pool, true);
        self.device.send(batch, pool)
    }

    fn flush(&mut self) -> Result<(), String> {
        self.device.flush()
    }

    fn wait_on(&self) -> Option<Wake> {
        self.device.wait_on()
    }

    fn steer(&mut self, owned: &[OwnedPorts]) -> Result<(), String> {
        self.device.steer(owned)
    }

    fn next_event(&mut self) -> Option<Event> {
        let own = self.losses.next(true).or_else(|| self.losses.next(false));
        own.or_else(|| self.device.next_event())
    }

    fn burst(&self) -> Option<usize> {
        self.device.burst()
    }

    fn rate(&self) -> Option<u64> {
        self.device.rate()
    }

    fn link_type(&self) -> u32 {
        self.device.link_type()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives frames with their numbers in them, and takes what is sent.
    #[derive(Default)]
    struct Numbers(u32, Vec<Vec<u8>>);

    impl Device for Numbers {
        fn receive(
            &mut self,
            burst: usize,
            batch: &mut Batch,
            pool: &mut Pool,
        ) -> Result<Received, String> {
            for _ in 0..burst {
                batch.push(pool.packet(&self.0.to_be_bytes()));
                self.0 += 1;
            }
            Ok(if self.0 < 10_000 { Received::More } else { Received::End })
        }

        fn send(&mut self, batch: &mut Batch, pool: &mut Pool) -> Result<(), String> {
            self.1.extend(batch.iter().map(|p| p.data().to_vec()));
            batch.drain().for_each(|p| pool.recycle(p));
            Ok(())
        }
    }

    /// What comes of 10,000 frames, and how many are reported as lost.
    fn through(text: &str) -> (Vec<Vec<u8>>, u64) {
        let injection = FaultInjection::new(text.parse().unwrap());
        let mut device = Faulty::new(Box::new(Numbers::default()), injection);
        let (mut pool, mut batch) = (Pool::new(), Batch::new());
        let (mut came, mut lost) = (Vec::new(), 0);
        loop {
            let received = device.receive(32, &mut batch, &mut pool).unwrap();
            came.extend(batch.iter().map(|p| p.data().to_vec()));
            batch.drain().for_each(|p| pool.recycle(p));
            while let Some(event) = device.next_event() {
                if let Event::Lost { packets, .. } = event {
                    lost += packets;
                }
            }
            if received == Received::End {
                assert_eq!(pool.outstanding(), 0);
                return (came, lost);
            }
        }
    }

    #[test]
    fn each_fault_happens_as_often_as_it_is_told_and_nothing_else() {
        let number = |frame: &Vec<u8>| u32::from_be_bytes(frame[..].try_into().unwrap());
        let (all, lost) = through("");
        let count = all.len() as u64;
        assert!(lost == 0 && all.iter().map(number).eq(0..all.len() as u32));
        let (came, lost) = through("drop=0.1,seed=1");
        assert!((900..1100).contains(&lost), "{lost}");
        assert_eq!(came.len() as u64 + lost, count);
        assert!(came.iter().map(number).is_sorted());
        let (came, lost) = through("duplicate=0.1");
        assert!((900..1100).contains(&(came.len() as u64 - count)) && lost == 0);
        let (mut came, _) = through("reorder=0.1");
        assert!(!came.iter().map(number).is_sorted());
        came.sort();
        assert!(came == all);
        let (came, _) = through("corrupt=0.1");
        let wrong = came.iter().zip(&all).filter(|(a, b)| a != b).count();
        assert!((900..1100).contains(&wrong), "{wrong}");
        let (came, _) = through("short=0.1");
        assert!(came.iter().any(|frame| frame.is_empty()) && came.len() as u64 == count);
        let (came, lost) = through("down=0.001");
        assert!(lost > 0 && lost.is_multiple_of(100) && came.len() as u64 + lost == count);
    }

    #[test]
    fn a_link_comes_up_again_though_next_to_nothing_comes() {
        let injection = FaultInjection::new("down=1".parse().unwrap());
        let mut device = Faulty::new(Box::new(Numbers::default()), injection);
        let (mut pool, mut batch) = (Pool::new(), Batch::new());
        device.receive(1, &mut batch, &mut pool).unwrap();
        assert_eq!(device.down, DOWN - 1);
        device.went_down -= LONGEST;
        device.receive(0, &mut batch, &mut pool).unwrap();
        assert_eq!((device.down, batch.len()), (0, 0));
    }

    #[test]
    fn the_seed_decides() {
        assert!(through("drop=0.1,seed=1") == through("drop=0.1,seed=1"));
        assert!(through("drop=0.1,seed=1") != through("drop=0.1,seed=2"));
    }

    #[test]
    fn faults_become_others_and_end() {
        let injection = FaultInjection::new("drop=1".parse().unwrap());
        let mut device = Faulty::new(Box::new(Numbers::default()), injection.clone());
        let (mut pool, mut batch) = (Pool::new(), Batch::new());
        device.receive(100, &mut batch, &mut pool).unwrap();
        assert_eq!(batch.len(), 0);
        injection.set("none".parse().unwrap());
        device.receive(100, &mut batch, &mut pool).unwrap();
        assert_eq!(batch.len(), 100);
        assert_eq!(injection.get(), Faults::default());
    }

    #[test]
    fn faults_are_written_as_they_are_read() {
        for text in ["none", "drop=0.25,seed=0", "duplicate=0.01,reorder=1,down=0.0005,seed=7"] {
            assert_eq!(text.parse::<Faults>().unwrap().to_string(), text);
        }
        assert_eq!("drop=0,seed=3".parse::<Faults>().unwrap().to_string(), "none");
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for text in ["drop", "none,drop=1", "drop=2", "drop=x", "lose=0.1", "seed=-1"] {
            assert!(text.parse::<Faults>().is_err(), "{text}");
        }
    }
}
