//! Derived data in PostgreSQL: every call is a short transaction that does not take the project's lock.

use super::PostgresStore;
use super::session::{OWN, PostgresSession, hash};
use crate::Writer;
use crate::derived::{
    Derived, Job, JobCounts, JobFailure, JobLane, NewJob, Vector, VectorCount, check_priorities, last_of_each,
};
use crate::memory::unknown_project;
use crate::{saturated, small};
use lukasa_model::json::Hash;
use lukasa_model::{Result, Scope, Time};
use tokio_postgres::Row;

/// Vectors read per page: a few megabytes.
const PAGE: i64 = 4_096;

impl PostgresStore {
    /// Begins a separate transaction without the project's lock, so that workers wait neither for writers nor for each
    /// other.
    pub(super) fn session_without_lock(&self, scope: &Scope) -> Result<Box<PostgresSession<'_>>> {
        self.begun(scope, false, |session| session.begin_without_lock()).map(Box::new)
    }

    fn looking<T>(&self, scope: &Scope, read: impl FnOnce(&PostgresSession<'_>) -> Result<T>) -> Result<T> {
        read(&*self.session_without_lock(scope)?)
    }

    fn changing<T>(&self, scope: &Scope, change: impl FnOnce(&PostgresSession<'_>) -> Result<T>) -> Result<T> {
        let session = self.session_without_lock(scope)?;
        let done = change(&session).and_then(|done| session.end().map(|()| done));
        self.seen(done)
    }

    fn writing<T>(&self, scope: &Scope, change: impl FnOnce(&PostgresSession<'_>) -> Result<T>) -> Result<T> {
        self.changing(scope, |session| {
            if session.rows(&format!("SELECT 1 FROM lukasa.projects WHERE {OWN}"), &[])?.is_empty() {
                return Err(unknown_project(scope));
            }
            change(session)
        })
    }
}

fn model_number(session: &PostgresSession<'_>, model: &str) -> Result<Option<i64>> {
    let sql = format!("SELECT number FROM lukasa.vector_models WHERE {OWN} AND model = $3");
    Ok(session.rows(&sql, &[&model])?.first().map(|row| row.get(0)))
}

fn bytes_of(inputs: &[Hash]) -> Vec<&[u8]> {
    inputs.iter().map(|input| &input.0[..]).collect()
}

const VECTOR: &str = "input, made_at, redacted, bytes";

fn vector(row: &Row) -> Result<Vector> {
    let redacted = row.get::<_, i32>(2).unsigned_abs();
    Ok(Vector { input: hash(row.get(0))?, bytes: row.get(3), made_at: Time(row.get(1)), redacted })
}

const JOB: &str = "j.key, j.lane, j.optional, j.priority, j.payload, j.attempts, j.last_error, j.not_before, j.enqueued_at, j.leased_until";

fn job(row: &Row) -> Result<Job> {
    Ok(Job {
        key: row.get(0),
        lane: JobLane::of(row.get(1))?,
        required: !row.get::<_, bool>(2),
        priority: row.get(3),
        payload: row.get(4),
        attempts: row.get::<_, i32>(5).unsigned_abs(),
        last_error: row.get(6),
        not_before: Time(row.get(7)),
        enqueued_at: Time(row.get(8)),
        leased_until: Time(row.get(9)),
    })
}

/// The number of rows that a statement with RETURNING affected.
fn touched(rows: &[Row]) -> u64 {
    rows.len() as u64
}

impl Derived for PostgresStore {
    fn put_vectors(&self, scope: &Scope, model: &str, vectors: &[Vector]) -> Result<()> {
        self.writing(scope, |session| {
            let sql = "INSERT INTO lukasa.vector_models (tenant, project, model) VALUES ($1, $2, $3)
                       ON CONFLICT DO NOTHING";
            session.rows(sql, &[&model])?;
            let number = model_number(session, model)?;
            let last = last_of_each(vectors, |v| v.input);
            let sql = "INSERT INTO lukasa.vectors (tenant, project, model, input, made_at, redacted, bytes)
                       SELECT $1, $2, $3, u.* FROM unnest($4::bytea[], $5::bigint[], $6::integer[], $7::bytea[]) u
                       ON CONFLICT (tenant, project, model, input) DO UPDATE SET
                           made_at = excluded.made_at, redacted = excluded.redacted, bytes = excluded.bytes";
            session.rows(
                sql,
                &[
                    &number,
                    &last.iter().map(|v| &v.input.0[..]).collect::<Vec<_>>(),
                    &last.iter().map(|v| v.made_at.0).collect::<Vec<_>>(),
                    &last.iter().map(|v| small(v.redacted)).collect::<Vec<_>>(),
                    &last.iter().map(|v| &v.bytes[..]).collect::<Vec<_>>(),
                ],
            )?;
            Ok(())
        })
    }

    fn vectors(&self, scope: &Scope, model: &str, inputs: &[Hash]) -> Result<Vec<Vector>> {
        self.looking(scope, |session| {
            let Some(number) = model_number(session, model)? else { return Ok(vec![]) };
            let sql = format!("SELECT {VECTOR} FROM lukasa.vectors WHERE {OWN} AND model = $3 AND input = ANY($4)");
            session.rows(&sql, &[&number, &bytes_of(inputs)])?.iter().map(vector).collect()
        })
    }

    fn known_vectors(&self, scope: &Scope, model: &str, inputs: &[Hash]) -> Result<Vec<(Hash, Time)>> {
        self.looking(scope, |session| {
            let Some(number) = model_number(session, model)? else { return Ok(vec![]) };
            let sql =
                format!("SELECT input, made_at FROM lukasa.vectors WHERE {OWN} AND model = $3 AND input = ANY($4)");
            let rows = session.rows(&sql, &[&number, &bytes_of(inputs)])?;
            rows.iter().map(|row| Ok((hash(row.get(0))?, Time(row.get(1))))).collect()
        })
    }

    fn each_vector(&self, scope: &Scope, model: &str, each: &mut dyn FnMut(Vector) -> Result<()>) -> Result<()> {
        let Some(number) = self.looking(scope, |session| model_number(session, model))? else { return Ok(()) };
        let sql = format!(
            "SELECT {VECTOR} FROM lukasa.vectors WHERE {OWN} AND model = $3 AND input > $4 ORDER BY input LIMIT $5"
        );
        let mut after: Vec<u8> = Vec::new();
        loop {
            // Takes a connection per page, because the callback may need one too.
            let page = self.looking(scope, |session| session.rows(&sql, &[&number, &after, &PAGE]))?;
            for row in &page {
                each(vector(row)?)?;
            }
            match page.last() {
                Some(last) if saturated(page.len()) == PAGE => after = last.get(0),
                _ => return Ok(()),
            }
        }
    }

    fn vector_models(&self, scope: &Scope) -> Result<Vec<String>> {
        self.looking(scope, |session| {
            let sql = format!("SELECT model FROM lukasa.vector_models WHERE {OWN} ORDER BY model");
            Ok(session.rows(&sql, &[])?.iter().map(|row| row.get(0)).collect())
        })
    }

    fn vector_counts(&self, scope: &Scope) -> Result<Vec<VectorCount>> {
        self.looking(scope, |session| {
            let sql = "SELECT m.model, count(*), sum(length(v.bytes))::bigint, sum(v.redacted)::bigint, min(v.made_at),
                              max(v.made_at)
                       FROM lukasa.vector_models m JOIN lukasa.vectors v
                            ON v.tenant = m.tenant AND v.project = m.project AND v.model = m.number
                       WHERE m.tenant = $1 AND m.project = $2 GROUP BY m.model ORDER BY m.model";
            let read = |row: &Row| VectorCount {
                model: row.get(0),
                vectors: row.get::<_, i64>(1).unsigned_abs(),
                bytes: row.get::<_, i64>(2).unsigned_abs(),
                redacted: row.get::<_, i64>(3).unsigned_abs(),
                oldest: Time(row.get(4)),
                newest: Time(row.get(5)),
            };
            Ok(session.rows(sql, &[])?.iter().map(read).collect())
        })
    }

    fn remove_vectors(&self, scope: &Scope, model: &str, inputs: &[Hash]) -> Result<u64> {
        self.changing(scope, |session| {
            let Some(number) = model_number(session, model)? else { return Ok(0) };
            let sql = format!("DELETE FROM lukasa.vectors WHERE {OWN} AND model = $3 AND input = ANY($4) RETURNING 1");
            Ok(touched(&session.rows(&sql, &[&number, &bytes_of(inputs)])?))
        })
    }

    fn remove_model(&self, scope: &Scope, model: &str) -> Result<u64> {
        self.changing(scope, |session| {
            let Some(number) = model_number(session, model)? else { return Ok(0) };
            let sql = format!("DELETE FROM lukasa.vectors WHERE {OWN} AND model = $3 RETURNING 1");
            let gone = touched(&session.rows(&sql, &[&number])?);
            session.rows(&format!("DELETE FROM lukasa.vector_models WHERE {OWN} AND number = $3"), &[&number])?;
            Ok(gone)
        })
    }

    fn enqueue(&self, scope: &Scope, kind: &str, jobs: &[NewJob], now: Time) -> Result<()> {
        check_priorities(jobs)?;
        self.writing(scope, |session| {
            let mut jobs = last_of_each(jobs, |job| job.key.as_str());
            // Rows are always locked in the same order, to avoid deadlocks.
            jobs.sort_by(|a, b| a.key.cmp(&b.key));
            let sql = "INSERT INTO lukasa.jobs AS j (tenant, project, kind, enqueued_at, leased_until, attempts, key, lane,
                                                     optional, priority, payload, not_before)
                       SELECT $1, $2, $3, $4, $5, 0, u.* FROM unnest($6::text[], $7::smallint[], $8::boolean[],
                                                                     $9::double precision[], $10::text[], $11::bigint[]) u
                       ON CONFLICT (tenant, project, kind, key) DO UPDATE SET
                           lane = excluded.lane, optional = excluded.optional, priority = excluded.priority,
                           payload = excluded.payload, not_before = excluded.not_before, attempts = 0,
                           leased_until = excluded.leased_until, owner = NULL, last_error = NULL";
            session.rows(
                sql,
                &[
                    &kind,
                    &now.0,
                    &Time::MIN.0,
                    &jobs.iter().map(|j| j.key.as_str()).collect::<Vec<_>>(),
                    &jobs.iter().map(|j| j.lane.number()).collect::<Vec<_>>(),
                    &jobs.iter().map(|j| !j.required).collect::<Vec<_>>(),
                    &jobs.iter().map(|j| j.priority).collect::<Vec<_>>(),
                    &jobs.iter().map(|j| j.payload.as_str()).collect::<Vec<_>>(),
                    &jobs.iter().map(|j| j.not_before.0).collect::<Vec<_>>(),
                ],
            )?;
            Ok(())
        })
    }

    fn lease(&self, scope: &Scope, kind: &str, limit: usize, owner: &str, now: Time, until: Time) -> Result<Vec<Job>> {
        self.changing(scope, |session| {
            let sql = format!(
                "WITH due AS (
                     SELECT key FROM lukasa.jobs WHERE {OWN} AND kind = $3 AND not_before <= $4 AND leased_until <= $4
                     ORDER BY lane, optional, priority DESC, attempts, enqueued_at, key LIMIT $5 FOR UPDATE SKIP LOCKED)
                 UPDATE lukasa.jobs j SET owner = $6, leased_until = $7 FROM due
                 WHERE j.tenant = $1 AND j.project = $2 AND j.kind = $3 AND j.key = due.key RETURNING {JOB}"
            );
            let rows = session.rows(&sql, &[&kind, &now.0, &saturated(limit), &owner, &until.0])?;
            let mut due = rows.iter().map(job).collect::<Result<Vec<_>>>()?;
            due.sort_by(Job::order);
            Ok(due)
        })
    }

    fn finish(&self, scope: &Scope, kind: &str, owner: &str, keys: &[String]) -> Result<u64> {
        self.changing(scope, |session| {
            let sql = format!(
                "DELETE FROM lukasa.jobs WHERE {OWN} AND kind = $3 AND key = ANY($4) AND owner = $5 RETURNING 1"
            );
            Ok(touched(&session.rows(&sql, &[&kind, &keys, &owner])?))
        })
    }

    fn fail(&self, scope: &Scope, kind: &str, owner: &str, failures: &[JobFailure]) -> Result<u64> {
        self.changing(scope, |session| {
            let sql = "UPDATE lukasa.jobs j SET attempts = j.attempts + 1, last_error = u.error, not_before = u.not_before,
                                                leased_until = $5, owner = NULL
                       FROM unnest($6::text[], $7::text[], $8::bigint[]) u (key, error, not_before)
                       WHERE j.tenant = $1 AND j.project = $2 AND j.kind = $3 AND j.owner = $4 AND j.key = u.key RETURNING 1";
            let rows = session.rows(
                sql,
                &[
                    &kind,
                    &owner,
                    &Time::MIN.0,
                    &failures.iter().map(|f| f.key.as_str()).collect::<Vec<_>>(),
                    &failures.iter().map(JobFailure::shortened).collect::<Vec<_>>(),
                    &failures.iter().map(|f| f.not_before.0).collect::<Vec<_>>(),
                ],
            )?;
            Ok(touched(&rows))
        })
    }

    fn job_counts(&self, scope: &Scope, kind: &str, now: Time) -> Result<JobCounts> {
        self.looking(scope, |session| {
            let sql = format!(
                "SELECT count(*) FILTER (WHERE NOT optional), count(*) FILTER (WHERE optional),
                        count(*) FILTER (WHERE leased_until > $4), count(*) FILTER (WHERE attempts > 0),
                        count(*) FILTER (WHERE lane = 0), min(enqueued_at)
                 FROM lukasa.jobs WHERE {OWN} AND kind = $3"
            );
            let rows = session.rows(&sql, &[&kind, &now.0])?;
            let read = |row: &Row| {
                let count = |at: usize| row.get::<_, i64>(at).unsigned_abs();
                JobCounts {
                    required: count(0),
                    optional: count(1),
                    leased: count(2),
                    failing: count(3),
                    mismatched: count(4),
                    oldest: row.get::<_, Option<i64>>(5).map(Time),
                }
            };
            Ok(rows.first().map(read).unwrap_or_default())
        })
    }

    fn jobs_after(&self, scope: &Scope, kind: &str, after: &str, limit: usize) -> Result<Vec<Job>> {
        self.looking(scope, |session| {
            let sql =
                format!("SELECT {JOB} FROM lukasa.jobs j WHERE {OWN} AND kind = $3 AND key > $4 ORDER BY key LIMIT $5");
            session.rows(&sql, &[&kind, &after, &saturated(limit)])?.iter().map(job).collect()
        })
    }

    fn remove_jobs(&self, scope: &Scope, kind: &str, keys: &[String]) -> Result<u64> {
        self.changing(scope, |session| {
            let sql = format!("DELETE FROM lukasa.jobs WHERE {OWN} AND kind = $3 AND key = ANY($4) RETURNING 1");
            Ok(touched(&session.rows(&sql, &[&kind, &keys])?))
        })
    }

    fn remove_kind(&self, scope: &Scope, kind: &str) -> Result<u64> {
        self.changing(scope, |session| {
            let sql = format!("DELETE FROM lukasa.jobs WHERE {OWN} AND kind = $3 RETURNING 1");
            Ok(touched(&session.rows(&sql, &[&kind])?))
        })
    }

    fn now(&self, scope: &Scope) -> Result<Time> {
        Writer::now(&mut *self.session_without_lock(scope)?)
    }

    fn mark(&self, scope: &Scope, name: &str) -> Result<Option<u64>> {
        self.looking(scope, |session| {
            let sql = format!("SELECT value FROM lukasa.marks WHERE {OWN} AND name = $3");
            Ok(session.rows(&sql, &[&name])?.first().map(|row| row.get::<_, i64>(0).cast_unsigned()))
        })
    }

    fn set_mark(&self, scope: &Scope, name: &str, value: u64) -> Result<()> {
        self.writing(scope, |session| {
            let sql = "INSERT INTO lukasa.marks (tenant, project, name, value) VALUES ($1, $2, $3, $4)
                       ON CONFLICT (tenant, project, name) DO UPDATE SET value = excluded.value";
            session.rows(sql, &[&name, &value.cast_signed()]).map(drop)
        })
    }

    fn claim_mark(&self, scope: &Scope, name: &str, value: u64) -> Result<u64> {
        self.writing(scope, |session| {
            let sql = "INSERT INTO lukasa.marks AS mark (tenant, project, name, value) VALUES ($1, $2, $3, $4)
                       ON CONFLICT (tenant, project, name) DO UPDATE SET value = mark.value RETURNING value";
            let rows = session.rows(sql, &[&name, &value.cast_signed()])?;
            Ok(rows.first().map_or(value, |row| row.get::<_, i64>(0).cast_unsigned()))
        })
    }

    fn remove_mark(&self, scope: &Scope, name: &str) -> Result<()> {
        self.changing(scope, |session| {
            session.rows(&format!("DELETE FROM lukasa.marks WHERE {OWN} AND name = $3"), &[&name]).map(drop)
        })
    }
}
