//! A task that wakes itself goes on at once.
//!
//! A connection and the handling of its requests are one task, and its parts wake each other: whoever
//! wants more of a request's body wakes the part that reads it. To the runtime that is a task with
//! new work: it goes to the end of the queue, and another thread is woken to help, for every request
//! with a body. Here the task is polled again instead. It knows nothing of HTTP.

use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

/// How often a task goes on before others have their turn.
const MAX_POLLS: usize = 8;

/// Nobody polls the task.
const RESTS: u8 = 0;
/// It is being polled,
const POLLED: u8 = 1;
/// and was woken meanwhile.
const WOKEN: u8 = 2;

/// Polls one task.
#[derive(Default)]
pub(super) struct SelfWakePoller(Option<(Arc<SelfWakeFilter>, Waker)>);

struct SelfWakeFilter {
    task: Waker,
    state: AtomicU8,
}

impl SelfWakePoller {
    /// Polls until the task ends or waits for something outside itself.
    pub(super) fn poll<F: Future>(
        &mut self,
        mut task: Pin<&mut F>,
        context: &Context<'_>,
    ) -> Poll<F::Output> {
        let (filter, waker) = match &mut self.0 {
            Some(known) if known.0.task.will_wake(context.waker()) => known,
            other => other.insert(SelfWakeFilter::new(context.waker())),
        };
        for _ in 0..MAX_POLLS {
            filter.state.store(POLLED, Ordering::SeqCst);
            let polled = task.as_mut().poll(&mut Context::from_waker(waker));
            let woken = filter.state.swap(RESTS, Ordering::SeqCst) == WOKEN;
            if polled.is_ready() || !woken {
                return polled;
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

impl SelfWakeFilter {
    fn new(task: &Waker) -> (Arc<Self>, Waker) {
        let filter = Arc::new(Self {
            task: task.clone(),
            state: AtomicU8::new(RESTS),
        });
        (Arc::clone(&filter), Waker::from(filter))
    }
}

impl Wake for SelfWakeFilter {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let while_polled =
            self.state
                .compare_exchange(POLLED, WOKEN, Ordering::SeqCst, Ordering::SeqCst);
        if while_polled == Err(RESTS) {
            self.task.wake_by_ref();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::pin::pin;
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[derive(Default)]
    struct Counted(AtomicUsize);

    impl Wake for Counted {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// How often the runtime is asked to run a task, which wakes itself so many times and ends;
    /// and whether it has ended.
    fn asked_by(times: usize) -> (usize, bool) {
        let counted = Arc::new(Counted::default());
        let waker = Waker::from(Arc::clone(&counted));
        let mut left = times;
        let mut task = pin!(poll_fn(|context| {
            if left == 0 {
                return Poll::Ready(());
            }
            left -= 1;
            context.waker().wake_by_ref();
            Poll::Pending
        }));
        let ended = SelfWakePoller::default().poll(task.as_mut(), &Context::from_waker(&waker));
        (counted.0.load(Ordering::SeqCst), ended.is_ready())
    }

    #[test]
    fn a_task_that_wakes_itself_goes_on_without_the_runtime() {
        assert_eq!(asked_by(1), (0, true));
        assert_eq!(asked_by(MAX_POLLS - 1), (0, true));
    }

    #[test]
    fn one_that_never_stops_lets_others_have_their_turn() {
        assert_eq!(asked_by(MAX_POLLS), (1, false));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn no_wake_from_another_thread_is_lost() {
        for _ in 0..2_000 {
            let (sender, receiver) = tokio::sync::oneshot::channel();
            tokio::spawn(async { sender.send(()) });
            let mut receiver = pin!(receiver);
            let mut poller = SelfWakePoller::default();
            let told = poll_fn(|context| poller.poll(receiver.as_mut(), context));
            assert_eq!(told.await, Ok(()));
        }
    }
}
