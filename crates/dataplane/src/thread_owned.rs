//! Values that one worker at a time owns and uses without a lock.
//!
//! A worker's thread takes the value when it first uses it and keeps it until somebody else asks for it, the worker
//! sleeps, or another thread goes on in its place. So each use costs a look into the thread's own storage, where a
//! mutex would take two atomic operations. Other threads borrow the value for one use.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};

/// A value that threads hand to each other. Clones are of the same.
pub(crate) struct ThreadOwned<T>(Arc<Shared<T>>);

/// A reference that does not keep the value.
pub(crate) struct WeakOwned<T>(Weak<Shared<T>>);

struct Shared<T> {
    /// The value, while no thread has it.
    free: Mutex<Option<Box<T>>>,
    freed: Condvar,
    /// Threads that wait for the value.
    waiting: AtomicUsize,
}

/// A [`Shared`] of any type.
trait Lender {
    fn is_wanted(&self) -> bool;
    /// Takes the value back; one of another type is dropped.
    fn give_back(&self, value: Box<dyn Any>);
}

/// A value that this thread owns; absent while it is used.
struct Owned {
    lender: Arc<dyn Lender>,
    value: Option<Box<dyn Any>>,
}

thread_local! {
    static KEEPS: Cell<bool> = const { Cell::new(false) };
    static OWNED: RefCell<Vec<Owned>> = const { RefCell::new(Vec::new()) };
}

/// Has this thread keep the values that it uses from now on, or gives up all. A thread that keeps values must call
/// [`yield_wanted`] often, and [`release`] before it sleeps.
pub(crate) fn keep(keeps: bool) {
    KEEPS.set(keeps);
    release();
}

/// Gives up the values that other threads wait for.
#[inline]
pub(crate) fn yield_wanted() {
    OWNED.with_borrow_mut(|all| all.retain(|owned| !owned.lender.is_wanted()));
}

/// Gives up all values.
pub(crate) fn release() {
    OWNED.with_borrow_mut(Vec::clear);
}

impl Drop for Owned {
    fn drop(&mut self) {
        self.value.take().into_iter().for_each(|value| self.lender.give_back(value));
    }
}

impl<T> Shared<T> {
    /// A thread that panicked while it had the value leaves it as usable as it was.
    fn free(&self) -> MutexGuard<'_, Option<Box<T>>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Send + 'static> Lender for Shared<T> {
    fn is_wanted(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    fn give_back(&self, value: Box<dyn Any>) {
        *self.free() = value.downcast().ok();
        // Who waits says so before it locks, so that it finds the value or is counted here. To wake nobody is a system call, too.
        if self.is_wanted() {
            self.freed.notify_one();
        }
    }
}

impl<T: Send + 'static> ThreadOwned<T> {
    pub(crate) fn new(value: T) -> Self {
        let free = Mutex::new(Some(Box::new(value)));
        Self(Arc::new(Shared { free, freed: Condvar::new(), waiting: AtomicUsize::new(0) }))
    }

    pub(crate) fn downgrade(&self) -> WeakOwned<T> {
        WeakOwned(Arc::downgrade(&self.0))
    }

    /// Does something with the value, once no other thread has it.
    #[inline]
    pub(crate) fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        let own = OWNED.with_borrow_mut(|all| self.entry(all)?.value.take()?.downcast().ok());
        let value = own.unwrap_or_else(|| self.wait());
        let mut used = Used { of: self, value: Some(value) };
        work(used.value.as_mut().expect("nobody takes it before the end"))
    }

    #[inline]
    fn entry<'a>(&self, all: &'a mut [Owned]) -> Option<&'a mut Owned> {
        all.iter_mut()
            .find(|owned| std::ptr::addr_eq(Arc::as_ptr(&owned.lender), Arc::as_ptr(&self.0)))
    }

    #[cold]
    fn wait(&self) -> Box<T> {
        // A value that nobody has costs this thread none of those that it has.
        let free = self.0.free().take();
        if let Some(value) = free {
            return value;
        }
        // Whoever has the value may wait for one that this thread has.
        release();
        let Shared { freed, waiting, .. } = &*self.0;
        waiting.fetch_add(1, Ordering::Relaxed);
        let free = self.0.free();
        let free = freed.wait_while(free, |value| value.is_none());
        let value = free.unwrap_or_else(PoisonError::into_inner).take();
        waiting.fetch_sub(1, Ordering::Relaxed);
        value.expect("it was waited for")
    }

    /// Keeps the value for the next use, or gives it up.
    #[inline]
    fn end(&self, value: Box<T>) {
        let keeps = KEEPS.get() && !self.0.is_wanted() && !std::thread::panicking();
        if !keeps {
            OWNED.with_borrow_mut(|all| {
                all.retain(|owned| {
                    !std::ptr::addr_eq(Arc::as_ptr(&owned.lender), Arc::as_ptr(&self.0))
                });
            });
            return self.0.give_back(value);
        }
        OWNED.with_borrow_mut(|all| match self.entry(all) {
            Some(owned) => owned.value = Some(value),
            None => {
                let lender: Arc<dyn Lender> = Arc::<Shared<T>>::clone(&self.0);
                all.push(Owned { lender, value: Some(value) });
            }
        });
    }
}

impl<T> Clone for ThreadOwned<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> WeakOwned<T> {
    pub(crate) fn upgrade(&self) -> Option<ThreadOwned<T>> {
        self.0.upgrade().map(ThreadOwned)
    }
}

/// A value in use, which is kept or given up even if that ends in a panic.
struct Used<'a, T: Send + 'static> {
    of: &'a ThreadOwned<T>,
    value: Option<Box<T>>,
}

impl<T: Send + 'static> Drop for Used<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.value.take().into_iter().for_each(|value| self.of.end(value));
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::mpsc::sync_channel;

    use super::*;

    #[test]
    fn a_thread_keeps_a_value_until_another_wants_it() {
        let value = ThreadOwned::new(0u64);
        let is_free = |value: &ThreadOwned<u64>| value.0.free().is_some();
        value.with(|number| *number += 1);
        assert!(is_free(&value), "threads that do not keep values borrow them");
        let (ready, is_ready) = sync_channel(0);
        let owner = std::thread::spawn({
            let value = value.clone();
            move || {
                keep(true);
                value.with(|number| *number += 1);
                assert!(!is_free(&value));
                ready.send(()).unwrap();
                while !is_free(&value) && value.0.waiting.load(Ordering::Relaxed) == 0 {
                    std::hint::spin_loop();
                }
                yield_wanted();
                value.with(|number| *number += 1);
                release();
                assert!(is_free(&value));
                value.with(|number| *number += 1);
            }
        });
        is_ready.recv().unwrap();
        assert!(value.with(|number| *number) >= 2);
        owner.join().unwrap();
        assert_eq!(value.with(|number| *number), 4, "a thread that ends gives up what it has");
    }

    #[test]
    fn a_thread_keeps_all_values_that_it_uses() {
        let all = [0u64, 1].map(ThreadOwned::new);
        keep(true);
        for _ in 0..2 {
            all.iter().for_each(|value| value.with(|number| *number += 1));
            assert!(all.iter().all(|value| value.0.free().is_none()));
        }
        release();
        assert!(all.iter().all(|value| value.0.free().is_some()));
    }

    #[test]
    fn values_outlive_panics_and_end_with_their_references() {
        let (one, other) = (ThreadOwned::new(1), ThreadOwned::new("a".to_string()));
        keep(true);
        let text = other.with(|text| {
            text.push('b');
            assert!(
                catch_unwind(AssertUnwindSafe(|| one.with(|_| panic!("as it was meant")))).is_err()
            );
            one.with(|number| *number += 1);
            text.clone()
        });
        assert_eq!((text.as_str(), one.with(|number| *number)), ("ab", 2));
        let weak = one.downgrade();
        drop(one);
        assert!(weak.upgrade().is_some(), "this thread has it");
        release();
        assert!(weak.upgrade().is_none());
    }

    #[test]
    fn threads_take_turns() {
        let value = ThreadOwned::new(0u64);
        let threads: Vec<_> = (0..4)
            .map(|index| {
                let value = value.clone();
                std::thread::spawn(move || {
                    if index < 2 {
                        keep(true);
                    }
                    for _ in 0..1000 {
                        value.with(|number| *number += 1);
                        yield_wanted();
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(value.with(|number| *number), 4000);
    }
}
