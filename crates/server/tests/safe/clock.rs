//! While the wall clock is more than a day ahead of the elapsed time, nothing is recorded with it.

use crate::house::{House, KEY, SURFACES, engine_by};
use crate::repository::head;
use lukasa_server::ProjectFolders;
use lukasa_store::guarded_clock::SteadyReading;
use lukasa_store::{Clock, GuardedClock};
use lukasa_testkit::fixtures;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

#[test]
fn a_clock_that_jumps_forward_is_reported_and_not_written_by() {
    for fixture in fixtures() {
        let (kind, reported) = (fixture.name, Arc::new(AtomicUsize::new(0)));
        let (wall, jumps) = (Arc::clone(&fixture.clock), Arc::clone(&reported));
        let clock = GuardedClock::new(Arc::clone(&wall) as Arc<dyn Clock>, false, move |_| {
            jumps.fetch_add(1, Ordering::SeqCst);
        });
        // Only the wall clock moves; no time elapses.
        let clock = Arc::new(clock.with_steady(|| Some(SteadyReading { boot: "first".into(), micros: 0 })));
        let engine = engine_by(clock, &fixture, KEY);
        let house = House::serving(Arc::new(fixture), engine, ProjectFolders::default(), |_| ());
        let client = house.client(&house.key("ours", "ada", &["graph:read", "graph:write"]));
        house.ok(&client.key, "put", json!({"type": "Service", "key": "web"}));
        let before = head(&house, "ours");
        wall.advance(25 * 3_600);
        for surface in SURFACES {
            for (operation, request) in [
                ("put", json!({"type": "Service", "key": "api"})),
                ("branch_create", json!({"name": "later"})),
                ("episode_add", json!({"content": "it is late"})),
            ] {
                let refused = client.ask(surface, operation, &request);
                assert_eq!(refused.code, "clock_jumped", "{kind} {surface:?}: {operation}\n{}", refused.text);
            }
            client.ok(surface, "get", json!({"ref": "Service:web"}));
        }
        assert_eq!(head(&house, "ours"), before, "{kind}: something was recorded");
        assert!(reported.load(Ordering::SeqCst) >= 6, "{kind}: jumps are reported");
        wall.advance(-25 * 3_600);
        house.ok(&client.key, "put", json!({"type": "Service", "key": "api"}));
    }
}
