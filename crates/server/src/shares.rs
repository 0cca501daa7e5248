//! Fair shares of limited resources (turns to work, streams, sessions): no caller gets all of them.

use crate::request_gate::Caller;
use parking_lot::Mutex;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use tokio::sync::oneshot;

/// The unit of sharing: a user of a tenant. Callers without a user own the store and have no individual limit.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ShareKey {
    /// The tenant of the caller.
    pub tenant: String,
    /// None: the caller owns the store.
    pub user: Option<String>,
}

impl From<&Caller> for ShareKey {
    fn from(caller: &Caller) -> ShareKey {
        ShareKey { tenant: caller.scope.tenant.clone(), user: caller.user.clone() }
    }
}

/// Turns to work, handed out fairly. Clones share them.
///
/// - A user holds at most half of the turns, and a tenant at most three quarters.
/// - If there are four or more, the last turn is kept for tenants that have none, and the one before it for users that
///   have none. A caller without running work therefore only waits for other such callers.
/// - Waiting users take turns, so a long queue of one user does not delay another. One user may fill half of the queue.
#[derive(Clone)]
pub struct Turns(Arc<Shared>);

struct Shared {
    places: usize,
    waiting: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    working: usize,
    by_user: BTreeMap<ShareKey, usize>,
    by_tenant: BTreeMap<String, usize>,
    /// Waiting requests by user; the first user is next.
    queues: VecDeque<(ShareKey, VecDeque<Waiter>)>,
    waiting: usize,
    last_id: u64,
}

struct Waiter {
    id: u64,
    called: oneshot::Sender<()>,
}

/// A turn, returned when it is dropped.
pub struct Turn {
    shared: Arc<Shared>,
    holder: ShareKey,
}

/// The queue is full.
#[derive(Debug, PartialEq, Eq)]
pub struct QueueFull;

impl Turns {
    /// `waiting`: most requests in the queue, of all callers together.
    pub fn new(places: usize, waiting: usize) -> Turns {
        Turns(Arc::new(Shared { places: places.max(1), waiting, state: Mutex::default() }))
    }

    /// Waits for a turn. Dropping the future leaves the queue.
    pub async fn take(&self, holder: ShareKey) -> Result<Turn, QueueFull> {
        let mut waiting = {
            let mut state = self.0.state.lock();
            let first = state.queue(&holder).is_none_or(VecDeque::is_empty);
            if first && self.0.may_work(&state, &holder) {
                state.begin(&holder);
                return Ok(Turn { shared: Arc::clone(&self.0), holder });
            }
            let own = state.queue(&holder).map_or(0, VecDeque::len);
            let share = if holder.user.is_some() { self.0.waiting.div_ceil(2) } else { self.0.waiting };
            if state.waiting >= self.0.waiting || own >= share {
                return Err(QueueFull);
            }
            let (called, calls) = oneshot::channel();
            let id = state.wait(&holder, called);
            Waiting { shared: Arc::clone(&self.0), holder, id, calls: Some(calls) }
        };
        let calls = waiting.calls.as_mut().expect("taken only below and when dropped");
        match calls.await {
            Ok(()) => {
                waiting.calls = None;
                Ok(Turn { shared: Arc::clone(&waiting.shared), holder: waiting.holder.clone() })
            }
            // Unreachable: a waiter is either called or still in the queue.
            Err(_) => Err(QueueFull),
        }
    }

    /// The number of turns in use.
    pub fn working(&self) -> usize {
        self.0.state.lock().working
    }

    /// The number of waiting requests.
    pub fn waiting(&self) -> usize {
        self.0.state.lock().waiting
    }
}

impl Shared {
    fn may_work(&self, state: &State, holder: &ShareKey) -> bool {
        let all = self.places;
        if holder.user.is_none() {
            return state.working < all;
        }
        let kept = usize::from(all >= 4);
        let (own, of_tenant) = (
            state.by_user.get(holder).copied().unwrap_or(0),
            state.by_tenant.get(&holder.tenant).copied().unwrap_or(0),
        );
        match (own, of_tenant) {
            (_, 0) => state.working < all,
            (0, _) => of_tenant < all - all / 4 && state.working < all - kept,
            _ => own < all.div_ceil(2) && of_tenant < all - all / 4 && state.working < all - 2 * kept,
        }
    }

    /// Gives turns to all waiters that may have one.
    fn call(&self, state: &mut State) {
        let mut passed = 0;
        while passed < state.queues.len() {
            let Some((holder, mut queue)) = state.queues.pop_front() else { return };
            if !self.may_work(state, &holder) {
                state.queues.push_back((holder, queue));
                passed += 1;
                continue;
            }
            if let Some(waiter) = queue.pop_front() {
                state.waiting -= 1;
                // A waiter that gave up has left the queue, so this send succeeds.
                if waiter.called.send(()).is_ok() {
                    state.begin(&holder);
                    passed = 0;
                }
            }
            if !queue.is_empty() {
                // The user goes to the end of the queue.
                state.queues.push_back((holder, queue));
            }
        }
    }

    fn end(&self, holder: &ShareKey) {
        let mut state = self.state.lock();
        state.end(holder);
        self.call(&mut state);
    }
}

impl State {
    fn queue(&self, holder: &ShareKey) -> Option<&VecDeque<Waiter>> {
        self.queues.iter().find(|(own, _)| own == holder).map(|(_, queue)| queue)
    }

    fn wait(&mut self, holder: &ShareKey, called: oneshot::Sender<()>) -> u64 {
        self.last_id += 1;
        self.waiting += 1;
        let waiter = Waiter { id: self.last_id, called };
        match self.queues.iter_mut().find(|(own, _)| own == holder) {
            Some((_, queue)) => queue.push_back(waiter),
            None => self.queues.push_back((holder.clone(), VecDeque::from([waiter]))),
        }
        self.last_id
    }

    fn leave(&mut self, holder: &ShareKey, id: u64) {
        if let Some((_, queue)) = self.queues.iter_mut().find(|(own, _)| own == holder) {
            let before = queue.len();
            queue.retain(|waiter| waiter.id != id);
            self.waiting -= before - queue.len();
        }
        self.queues.retain(|(_, queue)| !queue.is_empty());
    }

    fn begin(&mut self, holder: &ShareKey) {
        self.working += 1;
        *self.by_user.entry(holder.clone()).or_default() += 1;
        *self.by_tenant.entry(holder.tenant.clone()).or_default() += 1;
    }

    fn end(&mut self, holder: &ShareKey) {
        self.working -= 1;
        one_less(&mut self.by_user, holder);
        one_less(&mut self.by_tenant, &holder.tenant);
    }
}

fn one_less<K: Ord>(counts: &mut BTreeMap<K, usize>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.shared.end(&self.holder);
    }
}

/// Leaves the queue when the future is dropped, or returns the turn if it was just given.
struct Waiting {
    shared: Arc<Shared>,
    holder: ShareKey,
    id: u64,
    calls: Option<oneshot::Receiver<()>>,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let Some(mut calls) = self.calls.take() else { return };
        let mut state = self.shared.state.lock();
        // Under the lock, so that the waiter is either in the queue or was called.
        if calls.try_recv().is_ok() {
            state.end(&self.holder);
            self.shared.call(&mut state);
        } else {
            state.leave(&self.holder, self.id);
        }
    }
}

/// Limits how many of a resource each caller may hold, and all callers together. Clones share the counts.
#[derive(Clone)]
pub struct UsageLimit(Arc<Counts>);

struct Counts {
    all: usize,
    each: usize,
    held: Mutex<BTreeMap<ShareKey, usize>>,
}

/// One unit of the resource, returned when it is dropped.
pub struct UsagePermit {
    counts: Arc<Counts>,
    holder: ShareKey,
}

impl UsageLimit {
    /// `all`: most units in total. `each`: most units per caller.
    pub fn new(all: usize, each: usize) -> UsageLimit {
        UsageLimit(Arc::new(Counts { all, each, held: Mutex::default() }))
    }

    /// None if the limit is reached. Callers without a user have only the limit for all.
    pub fn take(&self, holder: ShareKey) -> Option<UsagePermit> {
        let mut held = self.0.held.lock();
        let own = held.get(&holder).copied().unwrap_or(0);
        let each = if holder.user.is_some() { self.0.each } else { self.0.all };
        if own >= each || held.values().sum::<usize>() >= self.0.all {
            return None;
        }
        *held.entry(holder.clone()).or_default() += 1;
        Some(UsagePermit { counts: Arc::clone(&self.0), holder })
    }

    /// The limit per caller.
    pub fn each(&self) -> usize {
        self.0.each
    }
}

impl Drop for UsagePermit {
    fn drop(&mut self) {
        one_less(&mut self.counts.held.lock(), &self.holder);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test says what it expects by failing")]

    use super::*;
    use futures_util::FutureExt;
    use std::pin::Pin;

    fn holder(tenant: &str, user: &str) -> ShareKey {
        ShareKey { tenant: tenant.into(), user: (!user.is_empty()).then(|| user.to_owned()) }
    }

    type Asking = Pin<Box<dyn Future<Output = Result<Turn, QueueFull>> + Send>>;

    /// Requests a turn. Returns it, or the future that waits for one.
    fn ask(places: &Turns, tenant: &str, user: &str) -> Result<Turn, Asking> {
        let (places, holder) = (places.clone(), holder(tenant, user));
        let mut asking: Asking = Box::pin(async move { places.take(holder).await });
        match asking.as_mut().now_or_never() {
            Some(taken) => Ok(taken.expect("there is room to wait")),
            None => Err(asking),
        }
    }

    fn taken(asking: &mut Asking) -> Option<Turn> {
        asking.as_mut().now_or_never().map(|taken| taken.expect("it waited"))
    }

    #[test]
    fn one_user_leaves_turns_for_others_and_one_tenant_for_another() {
        let places = Turns::new(8, 100);
        let mut held: Vec<Turn> = Vec::new();
        let mut take = |tenant: &str, user: &str| ask(&places, tenant, user).map(|place| held.push(place)).is_ok();
        let own = (0..24).filter(|_| take("a", "ada")).count();
        assert_eq!(own, 4, "half");
        let next = (0..24).filter(|_| take("a", "bob")).count();
        assert_eq!(next, 2, "three quarters of a tenant");
        assert!(!take("a", "cid"), "the tenant has its share");
        let others = (0..24).filter(|_| take("b", "dan")).count();
        assert_eq!(others, 1, "the last but one is for users that have none, and the last for tenants that have none");
        assert!(!take("b", "eve") && take("c", "fay") && !take("d", "gus"));
    }

    #[test]
    fn few_turns_are_shared_too() {
        for (all, own) in [(1, 1), (2, 1), (3, 2), (4, 2), (5, 3), (16, 8)] {
            let places = Turns::new(all, 100);
            let mut held: Vec<Turn> = Vec::new();
            for _ in 0..20 {
                held.extend(ask(&places, "a", "ada").ok());
            }
            assert_eq!(held.len(), own, "of {all}");
            assert!(all == 1 || ask(&places, "b", "bob").is_ok(), "of {all}");
        }
    }

    #[test]
    fn callers_without_a_user_have_no_individual_limit() {
        let places = Turns::new(4, 100);
        let held: Vec<Turn> = (0..9).filter_map(|_| ask(&places, "local", "").ok()).collect();
        assert_eq!((held.len(), places.working(), places.waiting()), (4, 4, 0));
    }

    #[test]
    fn waiting_users_take_turns() {
        let places = Turns::new(2, 100);
        let (mine, other) = (ask(&places, "a", "ada").ok().unwrap(), ask(&places, "b", "bob").ok().unwrap());
        let mut ada: Vec<Asking> = (0..24).filter_map(|_| ask(&places, "a", "ada").err()).collect();
        let mut bob = ask(&places, "b", "bob").err().unwrap();
        let mut eve = ask(&places, "b", "eve").err().unwrap();
        assert_eq!(places.waiting(), 26);
        drop(mine);
        let first = taken(&mut ada[0]).expect("her turn");
        assert!(taken(&mut ada[1]).is_none() && taken(&mut bob).is_none(), "one place each");
        drop(other);
        let bobs = taken(&mut bob).expect("not behind those who wait for another place");
        drop(first);
        let eves = taken(&mut eve).expect("before those who had a turn");
        assert!(taken(&mut ada[1]).is_none());
        drop((bobs, eves));
        assert!(taken(&mut ada[1]).is_some());
    }

    #[test]
    fn a_request_that_stops_waiting_takes_no_turn() {
        let places = Turns::new(1, 100);
        let held = ask(&places, "a", "ada").ok().unwrap();
        let gone = ask(&places, "a", "bob").err().unwrap();
        let called = ask(&places, "b", "cid").err().unwrap();
        let mut last = ask(&places, "c", "dan").err().unwrap();
        drop(gone);
        assert_eq!(places.waiting(), 2);
        drop(held);
        // Given a turn, but dropped before it was polled.
        drop(called);
        let last = taken(&mut last).expect("the place went on");
        assert_eq!((places.working(), places.waiting()), (1, 0));
        drop(last);
        assert_eq!(places.working(), 0);
        assert!(places.0.state.lock().by_user.is_empty() && places.0.state.lock().by_tenant.is_empty());
    }

    #[test]
    fn one_user_fills_half_of_the_queue() {
        let places = Turns::new(1, 4);
        let _held = ask(&places, "a", "ada").ok().unwrap();
        let _waiting: Vec<Asking> = (0..2).filter_map(|_| ask(&places, "a", "ada").err()).collect();
        let crowded = |user: &str| places.take(holder("a", user)).now_or_never().map(|taken| taken.map(drop));
        assert_eq!(crowded("ada"), Some(Err(QueueFull)));
        let _others: Vec<Asking> = (0..2).filter_map(|_| ask(&places, "a", "bob").err()).collect();
        assert_eq!(crowded("eve"), Some(Err(QueueFull)), "all of it is full");
        let none = Turns::new(1, 0);
        let _held = ask(&none, "a", "ada").ok().unwrap();
        assert_eq!(none.take(holder("a", "bob")).now_or_never().map(|taken| taken.map(drop)), Some(Err(QueueFull)));
    }

    #[test]
    fn counts_are_limited_per_caller_and_in_total() {
        let counted = UsageLimit::new(3, 2);
        let one = counted.take(holder("a", "ada")).unwrap();
        let _two = counted.take(holder("a", "ada")).unwrap();
        assert!(counted.take(holder("a", "ada")).is_none(), "her share");
        let _three = counted.take(holder("b", "ada")).unwrap();
        assert!(counted.take(holder("c", "cid")).is_none(), "all there are");
        drop(one);
        assert!(counted.take(holder("c", "cid")).is_some());
        let owner = UsageLimit::new(3, 1);
        let all: Vec<UsagePermit> = (0..5).filter_map(|_| owner.take(holder("local", ""))).collect();
        assert_eq!(all.len(), 3);
    }
}
