//! What wakes a task, unless it is just looking.
//!
//! The parts of one task wake each other. To the runtime that is a task with new work: it is run once
//! more, and often another thread is woken to help. Here such a wake wakes nobody: whoever polls one
//! part looks at the other right after. It knows nothing of what they are.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Wake, Waker};

use futures::task::AtomicWaker;

/// A bell for one task at a time.
pub(crate) struct Bell {
    rung: Arc<Rung>,
    /// What rings it; always the same, so that whoever waits can keep it.
    waker: Waker,
}

#[derive(Default)]
struct Rung {
    task: AtomicWaker,
    looked_at: AtomicBool,
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

    /// Does something after which the task looks at all it waits for. Ringing meanwhile wakes nobody.
    pub(crate) fn while_looking<T>(&self, work: impl FnOnce() -> T) -> T {
        self.rung.looked_at.store(true, Ordering::SeqCst);
        let done = work();
        self.rung.looked_at.store(false, Ordering::SeqCst);
        done
    }
}

impl Wake for Rung {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.looked_at.load(Ordering::SeqCst) {
            self.task.wake();
        }
    }
}
