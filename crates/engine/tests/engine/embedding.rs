//! From a commit to a vector: the queue, the worker and the readiness report, on every store.

use lukasa_engine::features::search::embedding::breaker::BreakerState;
use lukasa_engine::features::search::embedding::readiness::BreakerReport;
use lukasa_engine::features::search::embedding::reconcile::{KEPT, ReconcileCounts, reconcile};
use lukasa_engine::features::search::embedding::{
    Breaker, EmbeddingQueue, EmbeddingWorker, EnqueueCounts, InputRules, WorkerStep, kind, model_to_read, readiness,
    remove_model,
};
use lukasa_model::batch::{End, PutObject};
use lukasa_model::transaction::Header;
use lukasa_model::types::{EmbeddingPolicy, ObjectType, TypeEmbedding};
use lukasa_model::{Batch, BranchMode, ErrorCode, ErrorKind, FactNo, Time, Write};
use lukasa_search::embed::{EmbedError, Embedder, EmbedderModel, Purpose};
use lukasa_store::derived::{Job, JobCounts};
use lukasa_store::ledger::NewBranch;
use lukasa_store::{Clock, Ledger};
use lukasa_testkit::Fixture;
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A model with configurable answers that records its calls.
struct Fake {
    model: EmbedderModel,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    fails: Option<EmbedError>,
    /// Refuses every call with a text that contains this.
    poison: Option<&'static str>,
    calls: Vec<Vec<String>>,
}

impl Fake {
    fn new(name: &str) -> Arc<Fake> {
        let text = |t: &str| t.to_owned();
        let (version, pooling, prefix) = (text("1"), text("mean"), text(""));
        let question_prefix = prefix.clone();
        let model = EmbedderModel { name: name.into(), version, dimensions: 4, pooling, prefix, question_prefix };
        Arc::new(Fake { model, state: Mutex::default() })
    }

    fn fail(&self, error: Option<EmbedError>) {
        self.state.lock().fails = error;
    }

    fn texts(&self) -> Vec<String> {
        self.state.lock().calls.concat()
    }
}

impl Embedder for Fake {
    fn model(&self) -> &EmbedderModel {
        &self.model
    }

    fn batch(&self) -> usize {
        10
    }

    fn embed(&self, texts: &[&str], _: Purpose) -> Result<Vec<Vec<f32>>, EmbedError> {
        let mut state = self.state.lock();
        state.calls.push(texts.iter().map(ToString::to_string).collect());
        if let Some(error) = &state.fails {
            return Err(error.clone());
        }
        if let Some(poison) = state.poison.filter(|poison| texts.iter().any(|text| text.contains(poison))) {
            return Err(EmbedError::Broken(format!("refuses {poison}")));
        }
        Ok(texts.iter().map(|text| vec![text.len() as f32, 1.0, 0.0, -1.0]).collect())
    }
}

fn down() -> Option<EmbedError> {
    Some(EmbedError::Unavailable("no route to the model".into()))
}

/// A store, a queue and a worker with one model.
struct TestQueue {
    fixture: Fixture,
    fake: Arc<Fake>,
    queue: EmbeddingQueue,
    worker: EmbeddingWorker,
}

impl TestQueue {
    fn on(fixture: Fixture) -> TestQueue {
        let fake = Fake::new("m");
        let queue = EmbeddingQueue::new(fixture.ledger.clone(), &fake.model, InputRules::default());
        let worker = worker(&queue, &fake);
        let test = TestQueue { fixture, fake, queue, worker };
        for (name, policy, paths) in [
            ("Must", EmbeddingPolicy::Required, vec!["/about".to_owned()]),
            ("Never", EmbeddingPolicy::Disabled, vec![]),
        ] {
            test.declare(name, policy, paths);
        }
        test
    }

    fn declare(&self, name: &str, policy: EmbeddingPolicy, relevant_paths: Vec<String>) {
        let embedding = TypeEmbedding { policy, relevant_paths, fts: true };
        let declared = ObjectType { name: name.into(), embedding, ..ObjectType::default() };
        self.ledger().declare_object_type(&declared, &Header::default()).unwrap();
    }

    fn ledger(&self) -> &Ledger {
        &self.fixture.ledger
    }

    fn now(&self) -> Time {
        self.fixture.clock.now()
    }

    fn minutes(&self, minutes: i64) -> Time {
        self.fixture.clock.advance(60 * minutes)
    }

    fn write(&self, branch: &str, writes: Vec<Write>) {
        self.fixture.clock.advance(1);
        self.ledger().commit(&Batch { writes, ..Batch::on(branch) }).unwrap();
    }

    fn put(&self, type_name: &str, key: &str, about: &str) {
        self.write("main", vec![object(type_name, key, about).into()]);
    }

    fn follow(&self) -> EnqueueCounts {
        self.queue.follow(self.now()).unwrap()
    }

    fn work(&self) -> WorkerStep {
        self.worker.work(self.now(), 1_000).unwrap()
    }

    fn counts(&self) -> JobCounts {
        let derived = self.fixture.store.derived();
        derived.job_counts(self.ledger().scope(), self.queue.kind(), self.now()).unwrap()
    }

    fn jobs(&self) -> Vec<Job> {
        self.fixture.store.derived().jobs_after(self.ledger().scope(), self.queue.kind(), "", 1_000).unwrap()
    }

    fn vectors(&self) -> u64 {
        let counts = self.fixture.store.derived().vector_counts(self.ledger().scope()).unwrap();
        counts.iter().filter(|c| c.model == self.queue.model()).map(|c| c.vectors).sum()
    }

    fn readiness(&self) -> lukasa_engine::features::search::embedding::Readiness {
        readiness(&self.queue, &self.worker.breaker().lock(), self.queue.model(), self.now()).unwrap()
    }
}

fn worker(queue: &EmbeddingQueue, fake: &Arc<Fake>) -> EmbeddingWorker {
    let embedder = Arc::clone(fake) as Arc<dyn Embedder>;
    EmbeddingWorker::new(queue, embedder, Arc::new(Mutex::new(Breaker::default()))).unwrap().with_jitter(|| 0.0)
}

fn object(type_name: &str, key: &str, about: &str) -> PutObject {
    let title = Some(key.to_owned()).filter(|key| !key.is_empty());
    PutObject { title, ..PutObject::new(type_name, key).property("about", about) }
}

/// Runs each case on every store.
macro_rules! on_each {
    ($($case:ident),* $(,)?) => {
        mod memory { $(#[test] fn $case() { super::$case(&super::TestQueue::on(lukasa_testkit::Fixture::memory())); })* }
        mod sqlite { $(#[test] fn $case() { super::$case(&super::TestQueue::on(lukasa_testkit::Fixture::sqlite())); })* }
        mod postgres {
            $(#[test] fn $case() {
                if let Some(fixture) = lukasa_testkit::Fixture::postgres() {
                    super::$case(&super::TestQueue::on(fixture));
                }
            })*
        }
    };
}

on_each! {
    emb_1_a_new_object_is_queued_by_its_policy,
    emb_2_an_insignificant_change_is_not_queued,
    emb_3_a_batch_is_processed,
    emb_4_a_failure_waits_longer_each_time,
    emb_5_the_breaker_opens_and_nothing_is_lost,
    emb_6_reconciling_finds_objects_missing_in_the_queue,
    emb_7_long_objects_are_cut_and_secrets_taken_out,
    emb_8_coverage_is_reported,
    a_change_of_model_keeps_both,
    what_changes_while_it_is_embedded_is_embedded_again,
    edits_in_a_row_are_embedded_once,
    branches_have_their_own_texts,
    a_text_the_model_refuses_does_not_block_others,
    two_workers_do_nothing_twice,
    what_a_dead_worker_held_is_done_by_another,
    jobs_are_handed_out_by_lane_then_required_then_central,
}

fn emb_1_a_new_object_is_queued_by_its_policy(d: &TestQueue) {
    d.put("Must", "a", "one");
    d.put("Note", "b", "two");
    d.put("Never", "c", "three");
    assert_eq!(d.follow(), EnqueueCounts { required: 1, optional: 1, disabled: 1, ..EnqueueCounts::default() });
    let counts = d.counts();
    assert_eq!((counts.required, counts.optional), (1, 1));
    // Nothing new: nothing is examined. A new object: only that one.
    assert_eq!(d.follow(), EnqueueCounts::default());
    d.put("Must", "d", "four");
    assert_eq!(d.follow(), EnqueueCounts { required: 1, ..EnqueueCounts::default() });
    // Required goes before optional.
    d.work();
    let texts = d.fake.texts();
    assert_eq!(texts.len(), 3);
    // A deleted object is not queued; the text of a restored one has a vector already.
    d.write("main", vec![End::new("d").into()]);
    assert_eq!(d.follow(), EnqueueCounts::default());
    d.put("Must", "d", "four");
    assert_eq!(d.follow(), EnqueueCounts { known: 1, ..EnqueueCounts::default() });
}

fn emb_2_an_insignificant_change_is_not_queued(d: &TestQueue) {
    d.write("main", vec![object("Must", "a", "one").property("line", 1).into()]);
    d.follow();
    d.work();
    d.write("main", vec![object("Must", "a", "one").property("line", 2).into()]);
    assert_eq!(d.follow(), EnqueueCounts { unimportant: 1, ..EnqueueCounts::default() });
    // Large, but outside of the embedded text: examined, and found unchanged.
    d.write("main", vec![object("Must", "a", "one").property("line", "x".repeat(300)).into()]);
    assert_eq!(d.follow(), EnqueueCounts { known: 1, ..EnqueueCounts::default() });
    // A significant change between two that are not.
    d.write("main", vec![object("Must", "a", "uno").property("line", 4).into()]);
    d.write("main", vec![object("Must", "a", "uno").property("line", 5).into()]);
    assert_eq!(d.follow(), EnqueueCounts { required: 1, ..EnqueueCounts::default() });
    d.work();
    // A label is part of what it is about.
    let labelled = PutObject { labels: ["web".to_owned()].into(), ..object("Must", "a", "uno") };
    d.write("main", vec![labelled.property("line", 5).into()]);
    assert_eq!(d.follow().required, 1);
}

fn emb_3_a_batch_is_processed(d: &TestQueue) {
    let writes = (0..25).map(|i| object("Note", &format!("k{i}"), &format!("text {i}")).into()).collect();
    d.write("main", writes);
    // Two with the same text share a vector.
    d.write(
        "main",
        vec![PutObject { key: None, id: Some(uuid::Uuid::from_u128(7)), ..object("Note", "", "x") }.into()],
    );
    d.write(
        "main",
        vec![PutObject { key: None, id: Some(uuid::Uuid::from_u128(8)), ..object("Note", "", "x") }.into()],
    );
    assert_eq!(d.follow().optional, 27);
    let worked = d.work();
    assert_eq!((worked.leased, worked.embedded, worked.failed), (27, 26, 0));
    assert_eq!((d.fake.texts().len(), d.vectors(), d.counts()), (26, 26, JobCounts::default()));
    assert!(d.fake.state.lock().calls.iter().all(|call| call.len() <= 10), "no call is larger than the model likes");
    assert_eq!(d.work(), WorkerStep::default(), "nothing is left");
    // The limit is respected.
    d.write("main", (0..25).map(|i| object("Note", &format!("n{i}"), "new").into()).collect());
    d.follow();
    assert_eq!(d.worker.work(d.now(), 7).unwrap().leased, 7);
    // An object that is deleted while it waits is skipped.
    d.write("main", (0..25).map(|i| End::new(format!("n{i}").as_str()).into()).collect());
    assert_eq!((d.work().gone, d.counts()), (18, JobCounts::default()));
}

fn emb_4_a_failure_waits_longer_each_time(d: &TestQueue) {
    d.put("Must", "a", "one");
    d.follow();
    d.fake.fail(down());
    for (attempt, seconds) in [30, 120, 300, 900, 1_800, 3_600, 3_600].into_iter().enumerate() {
        let worked = d.work();
        assert_eq!((worked.failed, worked.embedded), (1, 0));
        let job = d.jobs().remove(0);
        assert_eq!((job.attempts as usize, job.not_before.0 - d.now().0), (attempt + 1, seconds * 1_000_000));
        assert_eq!(job.last_error.unwrap(), "the embedding model does not answer: no route to the model");
        d.fixture.clock.advance(seconds - 1);
        assert_eq!(d.work().leased, 0, "not yet");
        d.fixture.clock.advance(1);
    }
    assert_eq!(d.counts().failing, 1);
    // A new change starts over at once.
    d.put("Must", "a", "two");
    d.follow();
    assert_eq!(d.jobs()[0].attempts, 0);
    d.fake.fail(None);
    assert_eq!((d.work().embedded, d.counts()), (1, JobCounts::default()));
}

fn emb_5_the_breaker_opens_and_nothing_is_lost(d: &TestQueue) {
    d.write("main", (0..100).map(|i| object("Note", &format!("k{i}"), "x").into()).collect());
    d.follow();
    d.fake.fail(down());
    for _ in 0..3 {
        assert_eq!(d.work().failed, 10, "a step ends with the first call that fails");
    }
    let opened = d.now();
    assert_eq!(d.fake.state.lock().calls.len(), 3);
    assert!(matches!(d.worker.breaker().lock().state(), BreakerState::Open { .. }));
    let paused = d.work();
    assert_eq!((paused.leased, paused.paused_until), (0, Some(Time(opened.0 + 120_000_000))));
    assert!(matches!(d.readiness().breaker, BreakerReport::Open { .. }));
    d.minutes(2);
    assert_eq!((d.work().leased, d.counts().optional), (3, 100), "a probe of three; all are still there");
    assert_eq!(d.work().leased, 0);
    d.minutes(2);
    d.fake.fail(None);
    let worked = d.work();
    assert_eq!(d.worker.breaker().lock().state(), BreakerState::Closed);
    assert!(worked.embedded > 3, "and then everything that is due");
    d.minutes(90);
    d.work();
    assert_eq!((d.counts(), d.vectors()), (JobCounts::default(), 100));
}

fn emb_6_reconciling_finds_objects_missing_in_the_queue(d: &TestQueue) {
    d.put("Must", "a", "one");
    d.put("Note", "b", "two");
    d.put("Note", "gone", "three");
    d.follow();
    d.work();
    let (derived, scope) = (d.fixture.store.derived(), d.ledger().scope());
    assert_eq!(reconcile(&d.queue, d.now()).unwrap().enqueued, EnqueueCounts { known: 3, ..EnqueueCounts::default() });
    // Vectors are missing, a job is lost, an object is deleted before its job is done.
    derived.remove_model(scope, d.queue.model()).unwrap();
    d.put("Note", "c", "four");
    d.follow();
    d.write("main", vec![End::new("c").into()]);
    let done = reconcile(&d.queue, d.now()).unwrap();
    let enqueued = EnqueueCounts { required: 1, optional: 2, ..EnqueueCounts::default() };
    assert_eq!(done, ReconcileCounts { orphans: 1, forgotten: 0, enqueued });
    // Jobs that wait keep their place.
    d.minutes(1);
    d.fake.fail(down());
    d.work();
    assert_eq!(
        reconcile(&d.queue, d.now()).unwrap().enqueued,
        EnqueueCounts { waiting: 3, ..EnqueueCounts::default() }
    );
    assert!(d.jobs().iter().all(|job| job.attempts == 1));
    d.fake.fail(None);
    d.minutes(1);
    assert_eq!(d.work().embedded, 3);
    // Vectors of deleted objects are kept for a while.
    d.write("main", vec![End::new("gone").into()]);
    assert_eq!((reconcile(&d.queue, d.now()).unwrap().forgotten, d.vectors()), (0, 3));
    d.fixture.clock.advance(KEPT / 1_000_000 + 60);
    assert_eq!((reconcile(&d.queue, d.now()).unwrap().forgotten, d.vectors()), (1, 2));
}

fn emb_7_long_objects_are_cut_and_secrets_taken_out(d: &TestQueue) {
    d.put("Must", "a", &"many words ".repeat(5_000));
    d.put("Must", "b", "connect with password = \"hunter2\"");
    d.write("main", vec![object("Note", "c", "x").property("api_key", "hunter2").into()]);
    d.put("Must", "d", "the till has password=hunter2hunter2, PASSWORD: swordfish99, client_secret: QWERTY1234asdf");
    d.follow();
    let worked = d.work();
    assert_eq!((worked.embedded, worked.redacted), (4, 5));
    let texts = d.fake.texts();
    assert!(texts.iter().all(|text| lukasa_engine::features::search::embedding::input::tokens(text) <= 800));
    let all = texts.concat();
    assert!(["hunter2", "swordfish", "QWERTY"].iter().all(|secret| !all.contains(secret)), "{all}");
    assert_eq!((all.matches("[redacted]").count(), d.readiness().redactions), (5, 5));
}

fn emb_8_coverage_is_reported(d: &TestQueue) {
    let empty = d.readiness();
    assert!(empty.ready && empty.staleness.is_none() && empty.required.percent == 100.0);
    d.write("main", (0..20).map(|i| object("Must", &format!("r{i}"), "x").into()).collect());
    d.write("main", (0..10).map(|i| object("Note", &format!("o{i}"), "x").into()).collect());
    d.put("Never", "n", "x");
    d.follow();
    d.fixture.clock.advance(30);
    // Half of what is required, to begin with.
    d.worker.work(d.now(), 10).unwrap();
    d.fixture.clock.advance(70);
    let report = d.readiness();
    assert_eq!((report.required.objects, report.required.embedded, report.required.percent), (20, 10, 50.0));
    assert_eq!((report.optional.embedded, report.optional.percent, report.disabled), (0, 0.0, 1));
    assert_eq!((report.ready, report.backlog.required, report.backlog.optional), (false, 10, 10));
    let staleness = report.staleness.unwrap();
    assert_eq!((staleness.p50_seconds, staleness.p90_seconds), (101.0, 102.0), "most still wait");
    d.work();
    let report = d.readiness();
    assert_eq!((report.required.percent, report.optional.percent, report.ready), (100.0, 100.0, true));
    assert_eq!((report.models.len(), report.models[0].vectors, report.backlog.oldest), (1, 30, None));
    assert!(!report.backlog.alert);
    d.write("main", (0..501).map(|i| object("Must", &format!("m{i}"), "x").into()).collect());
    d.follow();
    assert!(d.readiness().backlog.alert, "more than 500 required ones wait");
}

fn a_change_of_model_keeps_both(d: &TestQueue) {
    d.put("Must", "a", "one");
    d.put("Note", "b", "two");
    d.follow();
    d.work();
    let fake = Fake::new("n");
    let queue = EmbeddingQueue::new(d.ledger().clone(), &fake.model, InputRules::default());
    let new_worker = worker(&queue, &fake);
    let old = d.queue.model();
    d.put("Must", "c", "three");
    let enqueued = queue.follow(d.now()).unwrap();
    assert_eq!((enqueued.required, enqueued.optional, enqueued.mismatched), (2, 1, 2));
    // Objects with a vector of another model come first, even before required and new ones.
    fake.state.lock().calls.clear();
    new_worker.work(d.now(), 2).unwrap();
    let first: BTreeSet<String> = fake.texts().iter().map(|t| t.lines().next().unwrap().to_owned()).collect();
    assert_eq!(first, ["a".to_owned(), "b".to_owned()].into());
    let breaker = Breaker::default();
    // Search reads the old one while it is configured to, and can be switched back.
    assert_eq!((model_to_read(Some(old), queue.model()), model_to_read(None, queue.model())), (old, queue.model()));
    assert!(!readiness(&queue, &breaker, queue.model(), d.now()).unwrap().ready);
    assert_eq!(readiness(&queue, &breaker, old, d.now()).unwrap().required.embedded, 1);
    new_worker.work(d.now(), 9).unwrap();
    let report = readiness(&queue, &breaker, queue.model(), d.now()).unwrap();
    assert!(report.ready);
    assert_eq!(report.models.iter().map(|m| m.vectors).collect::<Vec<_>>(), [2, 3], "both are kept");
    assert_eq!(remove_model(d.ledger(), old, &[queue.model(), old]).unwrap_err().code, ErrorCode::ModelInUse);
    assert_eq!(remove_model(d.ledger(), old, &[queue.model()]).unwrap(), 2);
    let derived = d.fixture.store.derived();
    assert_eq!(derived.job_counts(d.ledger().scope(), &kind(old), d.now()).unwrap(), JobCounts::default());
    assert_eq!(derived.vector_counts(d.ledger().scope()).unwrap().len(), 1);
}

fn what_changes_while_it_is_embedded_is_embedded_again(d: &TestQueue) {
    d.put("Must", "a", "one");
    d.follow();
    let (derived, scope) = (d.fixture.store.derived(), d.ledger().scope());
    let held = derived.lease(scope, d.queue.kind(), 1, "slow", d.now(), Time(d.now().0 + 1_000_000_000)).unwrap();
    d.put("Must", "a", "two");
    d.follow();
    assert_eq!(derived.finish(scope, d.queue.kind(), "slow", &[held[0].key.clone()]).unwrap(), 0);
    assert_eq!(d.work().embedded, 1);
    assert!(d.fake.texts()[0].contains("two"));
}

fn edits_in_a_row_are_embedded_once(d: &TestQueue) {
    d.put("Note", "a", "edit");
    d.put("Must", "b", "edit");
    d.follow();
    d.work();
    for i in 0..10 {
        d.put("Note", "a", &format!("edit {i}"));
        d.follow();
        d.work();
    }
    assert_eq!(d.vectors(), 2, "the optional one rests");
    d.fixture.clock.advance(30);
    assert_eq!(d.work().embedded, 1);
    assert!(d.fake.texts().last().unwrap().contains("edit 9"), "and then only the last counts");
    d.put("Must", "b", "edit again");
    d.follow();
    assert_eq!(d.work().embedded, 1, "a required one does not rest");
}

fn branches_have_their_own_texts(d: &TestQueue) {
    d.put("Note", "a", "one");
    d.put("Note", "b", "two");
    d.follow();
    d.work();
    let new = NewBranch { name: "side".into(), parent: "main".into(), mode: BranchMode::Live, ..NewBranch::default() };
    d.ledger().create_branch(&new, &Header::default()).unwrap();
    d.write("side", vec![object("Note", "a", "other").into()]);
    // A branch is declared, so everything is examined: all objects but one have a vector.
    assert_eq!(d.follow(), EnqueueCounts { optional: 1, known: 2, ..EnqueueCounts::default() });
    d.fixture.clock.advance(30);
    assert_eq!(d.work().embedded, 1);
    d.write("side", vec![object("Note", "b", "one more").into()]);
    assert_eq!(d.follow(), EnqueueCounts { optional: 1, ..EnqueueCounts::default() });
    d.fixture.clock.advance(30);
    assert_eq!((d.work().embedded, d.vectors()), (1, 4));
}

fn a_text_the_model_refuses_does_not_block_others(d: &TestQueue) {
    d.write("main", (0..9).map(|i| object("Note", &format!("k{i}"), "fine").into()).collect());
    d.put("Note", "bad", "poison");
    d.follow();
    d.fake.state.lock().poison = Some("poison");
    assert_eq!(d.work().failed, 10, "they are sent together");
    d.minutes(1);
    let worked = d.work();
    assert_eq!((worked.embedded, worked.failed), (9, 1), "and then one by one");
    assert!(d.jobs()[0].last_error.as_ref().unwrap().contains("refuses poison"));
}

fn two_workers_do_nothing_twice(d: &TestQueue) {
    d.write("main", (0..200).map(|i| object("Note", &format!("k{i}"), "x").into()).collect());
    d.follow();
    let other = worker(&d.queue, &d.fake);
    let now = d.now();
    std::thread::scope(|scope| {
        for worker in [&d.worker, &other] {
            scope.spawn(move || worker.work(now, 1_000).unwrap());
        }
    });
    let texts = d.fake.texts();
    assert_eq!((texts.len(), texts.iter().collect::<BTreeSet<_>>().len()), (200, 200));
    assert_eq!((d.counts(), d.vectors()), (JobCounts::default(), 200));
}

fn what_a_dead_worker_held_is_done_by_another(d: &TestQueue) {
    d.put("Must", "a", "one");
    d.follow();
    let (derived, scope) = (d.fixture.store.derived(), d.ledger().scope());
    let until = Time(d.now().0 + 600_000_000);
    derived.lease(scope, d.queue.kind(), 1, "died", d.now(), until).unwrap();
    assert_eq!(d.work().leased, 0);
    d.minutes(10);
    assert_eq!(d.work().embedded, 1);
}

fn jobs_are_handed_out_by_lane_then_required_then_central(d: &TestQueue) {
    for (key, type_name) in [("a", "Note"), ("b", "Must"), ("c", "Note"), ("d", "Must"), ("e", "Note"), ("f", "Must")] {
        d.put(type_name, key, key);
    }
    // The function is called for all objects at once: later ones are more central, except the last two.
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&asked);
    let queue = EmbeddingQueue::new(d.ledger().clone(), &d.fake.model, InputRules::default());
    let queue = queue.by_centrality(move |_, things, _| {
        seen.lock().push(things.len());
        let first = things.iter().min().copied().unwrap_or_default();
        let of = |no: &FactNo| {
            no.index_from(first).and_then(|at| [1.0, 2.0, 3.0, 4.0, 0.5].get(at).copied()).unwrap_or_default()
        };
        Ok(things.iter().map(of).collect())
    });
    queue.follow(d.now()).unwrap();
    assert_eq!(*asked.lock(), [6]);
    let (derived, scope) = (d.fixture.store.derived(), d.ledger().scope());
    let until = Time(d.now().0 + 1_000_000);
    let leased = derived.lease(scope, queue.kind(), 10, "all", d.now(), until).unwrap();
    let order: Vec<_> = leased.iter().map(|job| (job.required, job.priority)).collect();
    assert_eq!(order, [(true, 4.0), (true, 2.0), (true, 0.0), (false, 3.0), (false, 1.0), (false, 0.5)]);
    // It is called with at most a thousand objects at a time.
    d.write("main", (0..3_000).map(|i| object("Note", &format!("k{i}"), "x").into()).collect());
    queue.follow(d.now()).unwrap();
    let asked = asked.lock().clone();
    assert_eq!((asked.len(), asked.iter().sum::<usize>()), (4, 3_006));
    // A result of the wrong length is an error.
    let odd = EmbeddingQueue::new(d.ledger().clone(), &Fake::new("odd").model, InputRules::default());
    let odd = odd.by_centrality(|_, _, _| Ok(vec![1.0]));
    assert_eq!(odd.follow(d.now()).unwrap_err().kind, ErrorKind::Internal);
}
