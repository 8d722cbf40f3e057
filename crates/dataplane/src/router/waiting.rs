//! How a router with nothing to do waits for packets from outside.

use std::os::fd::RawFd;

use elements::device::Wake;

use super::{Router, Task};
use crate::clock::PATIENCE;
use crate::io::{Polling, Waiter, sleep_until_readable};
use crate::thread_owned;

impl Router {
    /// There was something to do, so that it is worth being awake.
    #[inline]
    pub fn worked(&mut self) {
        self.waiter.worked();
    }

    /// What tells that an element will have something to do.
    fn wait_on(&self) -> impl Iterator<Item = Wake> + '_ {
        let running = self.tasks.iter().map(|turn| &self.nodes.nodes[turn.node]);
        let running = running.filter(|node| node.task == Task::Running);
        running.filter_map(|node| node.cell.as_ref()?.element.wait_on())
    }

    /// Whether packets may come from outside though there is nothing to do now.
    pub(crate) fn awaits(&self) -> bool {
        self.wait_on().next().is_some()
    }

    /// How to wait for packets from outside.
    pub fn set_polling(&mut self, polling: Polling) {
        self.waiter = Waiter::new(polling);
    }

    /// Waits for packets from outside, for a descriptor to become readable, and until a time, or a
    /// while less.
    pub fn wait(&mut self, until: Option<u64>, bell: Option<RawFd>) {
        let mut on = std::mem::take(&mut self.waits_on);
        on.clear();
        let mut polled = false;
        on.extend(self.wait_on().filter_map(|wake| match wake {
            Wake::Readable(descriptor) => Some(descriptor),
            Wake::Polled => {
                polled = true;
                None
            }
        }));
        on.extend(bell);
        if polled || !on.is_empty() {
            let waiter = &mut self.waiter;
            self.clock.wait(until, &mut |left, own| {
                on.extend(own);
                let left = left.filter(|left| *left < PATIENCE);
                let longest = left.map_or(PATIENCE, |left| waiter.ahead_of(left));
                waiter.wait(&on, polled, longest);
            });
        } else if let Some(time) = until {
            thread_owned::release();
            self.clock.wait_until(time);
        }
        self.waits_on = on;
    }

    /// Sleeps until a descriptor becomes readable, or a while less: nothing is to be done before.
    pub(crate) fn sleep(&mut self, bell: RawFd) {
        self.clock.wait(None, &mut |_, own| match own {
            Some(own) => sleep_until_readable(&[bell, own]),
            None => sleep_until_readable(&[bell]),
        });
    }

    /// Waits a little for something to come from outside.
    pub fn doze(&mut self) {
        thread_owned::release();
        let soon = self.clock.now() + 10_000_000;
        self.clock.wait_until(soon);
    }
}
