//! What wakes a task, unless it is just looking.
//!
//! The parts of one task wake each other. To the runtime that is a task with new work: it is run once
//! more, and often another thread is woken to help. Here such a wake is noted instead, for whoever
//! polls the parts to look again. It knows nothing of what they are.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Wake, Waker};

use futures::task::AtomicWaker;

/// Nobody looks.
const RESTS: u8 = 0;
/// Somebody does,
const LOOKS: u8 = 1;
/// and was woken meanwhile.
const WOKEN: u8 = 2;

/// A bell for one task at a time.
pub(crate) struct Bell {
    rung: Arc<Rung>,
    /// What rings it; always the same, so that whoever waits can keep it.
    waker: Waker,
}

#[derive(Default)]
struct Rung {
    task: AtomicWaker,
    state: AtomicU8,
}

impl Default for Bell {
    fn default() -> Self {
        let rung = Arc::new(Rung::default());
        Self {
            waker: Waker::from(Arc::clone(&rung)),
            rung,
        }
    }
}

impl Bell {
    /// What rings it.
    pub(crate) fn waker(&self) -> &Waker {
        &self.waker
    }

    /// Wakes the task of this context from now on.
    pub(crate) fn wakes(&self, context: &Context<'_>) {
        self.rung.task.register(context.waker());
    }

    /// Does something after which the task looks at all it waits for; whether it was rung for
    /// meanwhile, which woke nobody.
    pub(crate) fn while_looking<T>(&self, work: impl FnOnce() -> T) -> (T, bool) {
        self.rung.state.store(LOOKS, Ordering::SeqCst);
        let done = work();
        let woken = self.rung.state.swap(RESTS, Ordering::SeqCst) == WOKEN;
        (done, woken)
    }
}

impl Wake for Rung {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let looking = self
            .state
            .compare_exchange(LOOKS, WOKEN, Ordering::SeqCst, Ordering::SeqCst);
        if looking == Err(RESTS) {
            self.task.wake();
        }
    }
}
