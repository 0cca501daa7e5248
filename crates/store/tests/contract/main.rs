//! The contract of `Store`: the same tests for every store.

#![allow(clippy::unwrap_used, reason = "a test says what it expects by failing")]

mod audit;
mod bad_input;
mod branches;
mod derived;
mod dumps;
mod facts;
mod isolation;
mod keys;
mod loads;
mod oracle;
mod races;
mod random;
mod releases;
mod types;

use lukasa_model::batch::{End, PutObject, PutRelationship};
use lukasa_model::{Batch, Error, ErrorCode, Reference, Time, Write};
use lukasa_store::ledger::{Committed, Ledger, MergeReport, MergeRequest, NewBranch, ViewSpec, VisibleFact};
use lukasa_testkit::Fixture;
use serde_json::Value;

/// Runs each case on each store.
macro_rules! contract {
    ($($module:ident { $($case:ident),* $(,)? })*) => {
        mod memory { $(mod $module { $(#[test] fn $case() { crate::$module::$case(&lukasa_testkit::Fixture::memory()); })* })* }
        mod sqlite { $(mod $module { $(#[test] fn $case() { crate::$module::$case(&lukasa_testkit::Fixture::sqlite()); })* })* }
        mod postgres { $(mod $module { $(#[test] fn $case() {
            if let Some(fixture) = lukasa_testkit::Fixture::postgres() { crate::$module::$case(&fixture); }
        })* })* }
    };
}

contract! {
    facts {
        equal_content_creates_no_version,
        version_numbers_are_dense_and_times_never_decrease,
        a_batch_sent_twice_commits_once,
        narrowing_the_period_of_a_fact,
        backfilling_history_after_the_head,
        an_ended_fact_is_visible_before_and_absent_after,
        a_put_with_an_end_is_absent_afterwards,
        future_versions_become_visible_in_time,
        several_periods_in_one_batch,
        known_at_and_valid_time_are_independent,
        moments_in_every_form,
        a_rename_with_links_to_it,
        a_relationship_is_hidden_while_an_end_is_absent,
        only_the_derivation_of_an_edge_changes,
        history_reports_changes_and_when_versions_were_superseded,
        parallel_edges_by_discriminator,
        names_with_more_than_one_reading,
        similar_names_are_suggested,
        links_report_their_total_number,
        preconditions_on_other_facts,
    }
    branches {
        a_live_branch_follows_and_a_pinned_one_does_not,
        an_edit_on_a_branch_does_not_change_its_parent,
        changes_of_main_under_a_pinned_branch,
        moving_the_fork_is_part_of_the_log,
        tombstones_hide_the_parent,
        merge_classes_and_provenance,
        merge_conflicts_write_nothing,
        merging_again_changes_nothing,
        merging_both_ways_leaves_both_equal,
        convergent_edits_then_a_further_edit,
        tied_merge_bases,
        the_same_edge_made_on_two_branches,
        merge_of_chosen_keys,
        merge_checks_ends_in_the_dry_run_too,
        merge_strategies_decide,
        merge_from_a_live_parent,
        merge_copies_other_periods,
        closed_branches_refuse_writes,
        branchless_types_are_seen_everywhere,
        diff_of_branches,
    }
    releases {
        a_release_never_changes,
        names_are_unique_regardless_of_case,
        an_empty_release,
        diff_of_releases,
        tags_point_to_releases,
        diff_since_every_kind_of_moment,
    }
    types {
        packs_are_declared_once,
        branchless_relationships_are_seen_everywhere,
        schemas_are_enforced,
        strict_and_permissive,
        ends_and_multiplicity,
        moving_a_limited_edge_in_one_batch,
        limited_edges_in_other_periods,
        a_parents_write_that_breaks_a_live_child_is_reported,
        ignored_paths_make_no_version,
        aliases_and_case,
        a_registry_is_read_as_of_the_view,
    }
    loads {
        a_load_is_one_transaction,
        parts_build_on_earlier_ones,
        a_load_that_fails_leaves_nothing,
        objects_are_found_by_the_beginning_of_their_key,
    }
    isolation { ids_of_another_tenant_are_not_found, same_names_in_two_tenants, projects_are_listed_per_tenant }
    races { eight_writers_one_winner, eight_writers_dense_log, eight_writers_multiplicity, readers_see_whole_batches }
    bad_input { every_invalid_input_has_a_code_and_changes_nothing }
    derived {
        vectors_are_kept_by_model_and_input,
        every_vector_is_visited_once,
        jobs_are_leased_in_order,
        only_the_owner_of_a_lease_can_end_it,
        jobs_are_counted_listed_and_removed,
        eight_workers_take_each_job_once,
        marks_are_named_numbers,
        derived_data_is_no_fact_and_belongs_to_one_project,
    }
    keys {
        keys_are_found_by_id_and_listed_by_tenant,
        a_key_is_revoked_once_and_by_its_tenant,
        the_last_use_of_a_key_never_moves_back,
        recording_a_use_does_not_wait_for_writers,
        one_of_eight_concurrent_creations_of_a_key_succeeds,
        keys_are_no_facts,
    }
    audit {
        entries_form_a_chain_for_each_server_and_tenant,
        entries_are_found_newest_first,
        concurrent_appends_keep_every_entry_once,
        appending_does_not_wait_for_writers,
        entries_noted_elsewhere_are_compared,
        a_seal_depends_on_its_key,
        a_chain_with_a_foreign_seal_is_not_sealed_again,
        audit_entries_are_no_facts,
    }
    dumps { a_dump_restores_into_any_store, damage_to_a_dump_is_reported, a_broken_dump_restores_nothing }
}

// Shared by the cases.

fn object(key: &str) -> PutObject {
    PutObject::new("Service", key)
}

fn valued(key: &str, value: impl Into<Value>) -> PutObject {
    object(key).property("x", value)
}

fn edge(src: &str, dst: &str) -> PutRelationship {
    PutRelationship::new("CALLS", src, dst)
}

fn write(ledger: &Ledger, branch: &str, writes: Vec<Write>) -> Committed {
    ledger.commit(&Batch { writes, ..Batch::on(branch) }).unwrap_or_else(|e| panic!("{e:?}"))
}

fn put(ledger: &Ledger, branch: &str, key: &str, value: impl Into<Value>) -> Committed {
    write(ledger, branch, vec![valued(key, value).into()])
}

fn end(ledger: &Ledger, branch: &str, key: &str) -> Committed {
    write(ledger, branch, vec![End::new(key).into()])
}

fn branch(ledger: &Ledger, name: &str, parent: &str, mode: lukasa_model::BranchMode) {
    let new = NewBranch { name: name.into(), parent: parent.into(), mode, ..NewBranch::default() };
    ledger.create_branch(&new, &Default::default()).unwrap_or_else(|e| panic!("{e:?}"));
}

fn merge(ledger: &Ledger, source: &str, target: &str) -> MergeReport {
    let request = MergeRequest { source: source.into(), target: target.into(), ..MergeRequest::default() };
    let dry = ledger.merge(&MergeRequest { dry_run: true, ..request.clone() }).unwrap_or_else(|e| panic!("{e:?}"));
    let wet = ledger.merge(&request).unwrap_or_else(|e| panic!("{e:?}"));
    assert_eq!(dry, MergeReport { tx: None, ..wet.clone() }, "the dry run returns the same report");
    wet
}

fn find(ledger: &Ledger, spec: &ViewSpec, name: &str) -> Result<VisibleFact, Error> {
    ledger.find(&ledger.view(spec)?, &Reference::from(name))
}

/// The property `x` of an object in a view, or null if the object is not visible.
fn x_in(ledger: &Ledger, spec: &ViewSpec, key: &str) -> Value {
    match find(ledger, spec, key) {
        Ok(found) => found.statement.parsed().unwrap().properties.get("x").cloned().unwrap_or_default(),
        Err(e) if e.code == ErrorCode::NotFound => Value::Null,
        Err(e) => panic!("{e:?}"),
    }
}

fn x(ledger: &Ledger, branch: &str, key: &str) -> Value {
    x_in(ledger, &ViewSpec::on(branch), key)
}

fn x_at(ledger: &Ledger, moment: impl std::fmt::Display, key: &str) -> Value {
    x_in(ledger, &ViewSpec::default().as_of(&moment.to_string()), key)
}

fn time(t: Time) -> String {
    format!("time:{t}")
}

fn verify(fixture: &Fixture) {
    fixture.ledger.verify(&mut |_, _| {}).unwrap_or_else(|e| panic!("{e:?}"));
}
