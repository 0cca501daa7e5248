//! Running a project's tests and recording the result.

use crate::test_engine::TestEngine;
use lukasa_engine::{Context, Grants};
use lukasa_model::ErrorCode;
use serde_json::{Value, json};

/// A folder, and the request to run a script there as its tests.
fn request(folder: &tempfile::TempDir, script: &str, more: Value) -> Value {
    let mut request = json!({"path": folder.path().to_str().unwrap(), "command": ["sh", "-c", script, "sh"]});
    request.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
    request
}

#[test]
fn a_run_is_remembered_with_what_passed_and_failed() {
    for test in TestEngine::all() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("t.py"), "def test_a():\n    pass\n").unwrap();
        test.ok("index_directory", json!({"path": folder.path().to_str().unwrap(), "branch": "main"}));
        let script =
            "echo 'PASSED t.py::test_a'; echo 'FAILED t.py::test_b - no'; echo '1 failed, 1 passed in 0.1s'; exit 1";
        let out = test
            .ok("test_run", request(&folder, script, json!({"task_id": "T-1", "agent_id": "ada", "tests": ["t.py"]})));
        assert_eq!((&out["status"], &out["passed"], &out["failed"]), (&json!("failed"), &json!(1), &json!(1)), "{out}");
        assert_eq!(out["failed_tests"], json!(["t.py::test_b"]));
        let kept =
            test.ok("episode_recall", json!({"types": ["TEST_RESULT"], "task_id": "T-1"}))["episodes"][0].clone();
        assert_eq!((&kept["outcome"], &kept["metadata"]["failed"]), (&json!("failure"), &json!(1)));
        assert_eq!(kept["entities"][0]["ref"], "File:t.py", "linked to its file: {kept}");
        let fine = test.ok("test_run", request(&folder, "echo '2 passed in 0.1s'", json!({})));
        assert_eq!((&fine["status"], &fine["passed"]), (&json!("passed"), &json!(2)));
        let odd = test.ok("test_run", request(&folder, "echo who knows; exit 7", json!({})));
        assert_eq!((&odd["status"], &odd["exit_code"], &odd["passed"]), (&json!("broken"), &json!(7), &Value::Null));
        let slow = test.ok("test_run", request(&folder, "sleep 600", json!({"timeout_seconds": 1})));
        assert_eq!(slow["status"], "timed_out");
        // Selected tests are arguments, whatever they look like.
        let answer = test.ok(
            "test_run",
            request(&folder, "for a in \"$@\"; do echo \"[$a]\"; done", json!({"tests": ["$(id)", "a b; ls"]})),
        );
        assert!(answer["output"].as_str().unwrap().contains("[$(id)]\n[a b; ls]"), "{answer}");
    }
}

#[test]
fn running_programs_needs_permission() {
    for test in TestEngine::all() {
        let folder = tempfile::tempdir().unwrap();
        let marker = folder.path().join("ran");
        let script = format!("touch {}", marker.display());
        let mut progress = |_, _| {};
        let mut context = Context::of(test.fixture.ledger.scope().clone(), &mut progress);
        context.grants = Grants::of(["graph:read", "graph:write", "graph:search:*"]);
        let error = test.engine.call(&mut context, "test_run", request(&folder, &script, json!({}))).unwrap_err();
        assert_eq!(error.code, ErrorCode::MissingScope);
        assert!(!marker.exists());
        for (request, code) in [
            (json!({"path": folder.path().to_str().unwrap()}), "no_test_command"),
            (request(&folder, "true", json!({"tests": ["--evil"]})), "invalid_test"),
            (request(&folder, "true", json!({"timeout_seconds": 0})), "out_of_range"),
            (
                json!({"path": folder.path().to_str().unwrap(), "command": ["no-such-program-here"]}),
                "test_command_failed",
            ),
            (json!({"path": "/nowhere/at/all"}), "no_folder"),
        ] {
            assert_eq!(test.fails("test_run", request.clone()), code, "{request}");
        }
    }
}
