//! Derived data in the tables of an SQLite file: every call is one transaction.

use super::{SqliteStore, WriterGuard, fault, find_project};
use crate::derived::{Derived, Job, JobCounts, JobFailure, JobLane, NewJob, Vector, VectorCount, check_priorities};
use crate::memory::unknown_project;
use crate::saturated;
use lukasa_model::json::Hash;
use lukasa_model::{Result, Scope, Time};
use rusqlite::{Connection, OptionalExtension, Params, Row, params};

impl SqliteStore {
    /// Reads in one transaction; returns the default if the project does not exist.
    fn looking<T: Default>(&self, scope: &Scope, read: impl FnOnce(&Connection, i64) -> Result<T>) -> Result<T> {
        let connection = self.reader()?;
        connection.execute_batch("BEGIN").map_err(fault)?;
        match find_project(&connection, scope)? {
            Some(number) => read(&connection, number),
            None => Ok(T::default()),
        }
    }

    /// Makes changes in one transaction.
    fn changing<T>(
        &self,
        scope: &Scope,
        otherwise: impl FnOnce() -> Result<T>,
        change: impl FnOnce(&Connection, i64) -> Result<T>,
    ) -> Result<T> {
        let connection = WriterGuard { connection: self.writer.lock() };
        connection.execute_batch("BEGIN IMMEDIATE").map_err(fault)?;
        let Some(number) = find_project(&connection, scope)? else { return otherwise() };
        let done = change(&connection, number)?;
        connection.execute_batch("COMMIT").map_err(fault)?;
        Ok(done)
    }

    fn writing<T>(&self, scope: &Scope, change: impl FnOnce(&Connection, i64) -> Result<T>) -> Result<T> {
        self.changing(scope, || Err(unknown_project(scope)), change)
    }

    fn removing(&self, scope: &Scope, change: impl FnOnce(&Connection, i64) -> Result<u64>) -> Result<u64> {
        self.changing(scope, || Ok(0), change)
    }
}

fn run<P: Params>(connection: &Connection, sql: &str, params: P) -> Result<u64> {
    let ran = connection.prepare_cached(sql).and_then(|mut query| query.execute(params));
    ran.map(|rows| rows as u64).map_err(fault)
}

fn each_row<P: Params>(
    connection: &Connection,
    sql: &str,
    params: P,
    mut each: impl FnMut(&Row<'_>) -> Result<()>,
) -> Result<()> {
    let mut query = connection.prepare_cached(sql).map_err(fault)?;
    let mut rows = query.query(params).map_err(fault)?;
    while let Some(row) = rows.next().map_err(fault)? {
        each(row)?;
    }
    Ok(())
}

fn model_number(connection: &Connection, scope: i64, model: &str) -> Result<Option<i64>> {
    connection
        .prepare_cached("SELECT number FROM vector_models WHERE scope = ?1 AND model = ?2")
        .and_then(|mut query| query.query_row(params![scope, model], |row| row.get(0)).optional())
        .map_err(fault)
}

const VECTOR: &str = "input, made_at, redacted, bytes";

fn vector(row: &Row<'_>) -> rusqlite::Result<Vector> {
    let (made_at, redacted, bytes) = (Time(row.get(1)?), row.get(2)?, row.get(3)?);
    Ok(Vector { input: Hash(row.get(0)?), bytes, made_at, redacted })
}

const JOB: &str = "key, lane, optional, priority, payload, attempts, last_error, not_before, enqueued_at, leased_until";
const OWN: &str = "scope = ?1 AND kind = ?2";

fn job(row: &Row<'_>) -> Result<Job> {
    Ok(Job {
        key: row.get(0).map_err(fault)?,
        lane: JobLane::of(row.get(1).map_err(fault)?)?,
        required: !row.get::<_, bool>(2).map_err(fault)?,
        priority: row.get(3).map_err(fault)?,
        payload: row.get(4).map_err(fault)?,
        attempts: row.get(5).map_err(fault)?,
        last_error: row.get(6).map_err(fault)?,
        not_before: Time(row.get(7).map_err(fault)?),
        enqueued_at: Time(row.get(8).map_err(fault)?),
        leased_until: Time(row.get(9).map_err(fault)?),
    })
}

impl Derived for SqliteStore {
    fn put_vectors(&self, scope: &Scope, model: &str, vectors: &[Vector]) -> Result<()> {
        self.writing(scope, |connection, scope| {
            run(
                connection,
                "INSERT INTO vector_models (scope, model) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
                params![scope, model],
            )?;
            let number = model_number(connection, scope, model)?;
            for v in vectors {
                run(
                    connection,
                    "INSERT INTO vectors (model, input, made_at, redacted, bytes) VALUES (?1, ?2, ?3, ?4, ?5)
                     ON CONFLICT (model, input) DO UPDATE SET made_at = excluded.made_at, redacted = excluded.redacted,
                                                              bytes = excluded.bytes",
                    params![number, v.input.0, v.made_at.0, v.redacted, v.bytes],
                )?;
            }
            Ok(())
        })
    }

    fn vectors(&self, scope: &Scope, model: &str, inputs: &[Hash]) -> Result<Vec<Vector>> {
        self.looking(scope, |connection, scope| {
            let Some(number) = model_number(connection, scope, model)? else { return Ok(vec![]) };
            let sql = format!("SELECT {VECTOR} FROM vectors WHERE model = ?1 AND input = ?2");
            let mut found = Vec::new();
            for input in crate::ledger::unique(inputs.to_vec()) {
                each_row(connection, &sql, params![number, input.0], |row| {
                    found.push(vector(row).map_err(fault)?);
                    Ok(())
                })?;
            }
            Ok(found)
        })
    }

    fn known_vectors(&self, scope: &Scope, model: &str, inputs: &[Hash]) -> Result<Vec<(Hash, Time)>> {
        self.looking(scope, |connection, scope| {
            let Some(number) = model_number(connection, scope, model)? else { return Ok(vec![]) };
            let sql = "SELECT made_at FROM vectors WHERE model = ?1 AND input = ?2";
            let mut found = Vec::new();
            for input in crate::ledger::unique(inputs.to_vec()) {
                each_row(connection, sql, params![number, input.0], |row| {
                    found.push((input, Time(row.get(0).map_err(fault)?)));
                    Ok(())
                })?;
            }
            Ok(found)
        })
    }

    fn each_vector(&self, scope: &Scope, model: &str, each: &mut dyn FnMut(Vector) -> Result<()>) -> Result<()> {
        self.looking(scope, |connection, scope| {
            let Some(number) = model_number(connection, scope, model)? else { return Ok(()) };
            // In the order of the table: following an index would read pages all over the file.
            let sql = format!("SELECT {VECTOR} FROM vectors NOT INDEXED WHERE model = ?1");
            each_row(connection, &sql, [number], |row| each(vector(row).map_err(fault)?))
        })
    }

    fn vector_models(&self, scope: &Scope) -> Result<Vec<String>> {
        self.looking(scope, |connection, scope| {
            let mut found = Vec::new();
            let sql = "SELECT model FROM vector_models WHERE scope = ?1 ORDER BY model";
            each_row(connection, sql, [scope], |row| {
                found.push(row.get(0).map_err(fault)?);
                Ok(())
            })?;
            Ok(found)
        })
    }

    fn vector_counts(&self, scope: &Scope) -> Result<Vec<VectorCount>> {
        self.looking(scope, |connection, scope| {
            let sql = "SELECT m.model, count(*), sum(length(bytes)), sum(redacted), min(made_at), max(made_at)
                       FROM vector_models m JOIN vectors v ON v.model = m.number
                       WHERE m.scope = ?1 GROUP BY m.number ORDER BY m.model";
            let mut found = Vec::new();
            each_row(connection, sql, [scope], |row| {
                found.push(VectorCount {
                    model: row.get(0).map_err(fault)?,
                    vectors: row.get(1).map_err(fault)?,
                    bytes: row.get(2).map_err(fault)?,
                    redacted: row.get(3).map_err(fault)?,
                    oldest: Time(row.get(4).map_err(fault)?),
                    newest: Time(row.get(5).map_err(fault)?),
                });
                Ok(())
            })?;
            Ok(found)
        })
    }

    fn remove_vectors(&self, scope: &Scope, model: &str, inputs: &[Hash]) -> Result<u64> {
        self.removing(scope, |connection, scope| {
            let Some(number) = model_number(connection, scope, model)? else { return Ok(0) };
            let sql = "DELETE FROM vectors WHERE model = ?1 AND input = ?2";
            inputs.iter().map(|input| run(connection, sql, params![number, input.0])).sum()
        })
    }

    fn remove_model(&self, scope: &Scope, model: &str) -> Result<u64> {
        self.removing(scope, |connection, scope| {
            let Some(number) = model_number(connection, scope, model)? else { return Ok(0) };
            let gone = run(connection, "DELETE FROM vectors WHERE model = ?1", [number])?;
            run(connection, "DELETE FROM vector_models WHERE number = ?1", [number])?;
            Ok(gone)
        })
    }

    fn enqueue(&self, scope: &Scope, kind: &str, jobs: &[NewJob], now: Time) -> Result<()> {
        check_priorities(jobs)?;
        self.writing(scope, |connection, scope| {
            let sql = "INSERT INTO jobs (scope, kind, key, lane, optional, priority, payload, not_before, enqueued_at,
                                         attempts, leased_until)
                       VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 0, ?10)
                       ON CONFLICT (scope, kind, key) DO UPDATE SET
                           lane = excluded.lane, optional = excluded.optional, priority = excluded.priority,
                           payload = excluded.payload, not_before = excluded.not_before, attempts = 0,
                           leased_until = excluded.leased_until, owner = NULL, last_error = NULL";
            for job in jobs {
                let (lane, optional) = (job.lane.number(), !job.required);
                let (not_before, free) = (job.not_before.0, Time::MIN.0);
                let row =
                    params![scope, kind, job.key, lane, optional, job.priority, job.payload, not_before, now.0, free];
                run(connection, sql, row)?;
            }
            Ok(())
        })
    }

    fn lease(&self, scope: &Scope, kind: &str, limit: usize, owner: &str, now: Time, until: Time) -> Result<Vec<Job>> {
        let none = || Ok(vec![]);
        self.changing(scope, none, |connection, scope| {
            let sql = format!(
                "SELECT {JOB} FROM jobs INDEXED BY jobs_in_order
                 WHERE {OWN} AND not_before <= ?3 AND leased_until <= ?3
                 ORDER BY lane, optional, priority DESC, attempts, enqueued_at, key LIMIT ?4"
            );
            let mut due: Vec<Job> = Vec::new();
            each_row(connection, &sql, params![scope, kind, now.0, saturated(limit)], |row| {
                due.push(job(row)?);
                Ok(())
            })?;
            let take = format!("UPDATE jobs SET owner = ?4, leased_until = ?5 WHERE {OWN} AND key = ?3");
            for job in &mut due {
                run(connection, &take, params![scope, kind, job.key, owner, until.0])?;
                job.leased_until = until;
            }
            Ok(due)
        })
    }

    fn finish(&self, scope: &Scope, kind: &str, owner: &str, keys: &[String]) -> Result<u64> {
        self.removing(scope, |connection, scope| {
            let sql = format!("DELETE FROM jobs WHERE {OWN} AND key = ?3 AND owner = ?4");
            keys.iter().map(|key| run(connection, &sql, params![scope, kind, key, owner])).sum()
        })
    }

    fn fail(&self, scope: &Scope, kind: &str, owner: &str, failures: &[JobFailure]) -> Result<u64> {
        self.removing(scope, |connection, scope| {
            let sql = format!(
                "UPDATE jobs SET attempts = attempts + 1, last_error = ?5, not_before = ?6, leased_until = ?7, owner = NULL
                 WHERE {OWN} AND key = ?3 AND owner = ?4"
            );
            let give_back = |failure: &JobFailure| {
                let (error, not_before) = (failure.shortened(), failure.not_before.0);
                run(connection, &sql, params![scope, kind, failure.key, owner, error, not_before, Time::MIN.0])
            };
            failures.iter().map(give_back).sum()
        })
    }

    fn job_counts(&self, scope: &Scope, kind: &str, now: Time) -> Result<JobCounts> {
        self.looking(scope, |connection, scope| {
            let sql = format!(
                "SELECT count(*), count(*) FILTER (WHERE optional), count(*) FILTER (WHERE leased_until > ?3),
                        count(*) FILTER (WHERE attempts > 0), count(*) FILTER (WHERE lane = 0), min(enqueued_at)
                 FROM jobs WHERE {OWN}"
            );
            let mut counts = JobCounts::default();
            each_row(connection, &sql, params![scope, kind, now.0], |row| {
                let number = |at: usize| row.get::<_, u64>(at).map_err(fault);
                let (all, optional) = (number(0)?, number(1)?);
                counts = JobCounts {
                    required: all - optional,
                    optional,
                    leased: number(2)?,
                    failing: number(3)?,
                    mismatched: number(4)?,
                    oldest: row.get::<_, Option<i64>>(5).map_err(fault)?.map(Time),
                };
                Ok(())
            })?;
            Ok(counts)
        })
    }

    fn jobs_after(&self, scope: &Scope, kind: &str, after: &str, limit: usize) -> Result<Vec<Job>> {
        self.looking(scope, |connection, scope| {
            let sql = format!("SELECT {JOB} FROM jobs WHERE {OWN} AND key > ?3 ORDER BY key LIMIT ?4");
            let mut found = Vec::new();
            each_row(connection, &sql, params![scope, kind, after, saturated(limit)], |row| {
                found.push(job(row)?);
                Ok(())
            })?;
            Ok(found)
        })
    }

    fn remove_jobs(&self, scope: &Scope, kind: &str, keys: &[String]) -> Result<u64> {
        self.removing(scope, |connection, scope| {
            let sql = format!("DELETE FROM jobs WHERE {OWN} AND key = ?3");
            keys.iter().map(|key| run(connection, &sql, params![scope, kind, key])).sum()
        })
    }

    fn remove_kind(&self, scope: &Scope, kind: &str) -> Result<u64> {
        self.removing(scope, |connection, scope| {
            run(connection, &format!("DELETE FROM jobs WHERE {OWN}"), params![scope, kind])
        })
    }

    fn now(&self, _: &Scope) -> Result<Time> {
        Ok(self.clock.now())
    }

    fn mark(&self, scope: &Scope, name: &str) -> Result<Option<u64>> {
        self.looking(scope, |connection, scope| {
            connection
                .prepare_cached("SELECT value FROM marks WHERE scope = ?1 AND name = ?2")
                .and_then(|mut query| query.query_row(params![scope, name], |row| row.get::<_, i64>(0)).optional())
                .map(|value| value.map(i64::cast_unsigned))
                .map_err(fault)
        })
    }

    fn set_mark(&self, scope: &Scope, name: &str, value: u64) -> Result<()> {
        self.writing(scope, |connection, scope| {
            let sql = "INSERT INTO marks (scope, name, value) VALUES (?1, ?2, ?3)
                       ON CONFLICT (scope, name) DO UPDATE SET value = excluded.value";
            run(connection, sql, params![scope, name, value.cast_signed()]).map(drop)
        })
    }

    fn claim_mark(&self, scope: &Scope, name: &str, value: u64) -> Result<u64> {
        self.writing(scope, |connection, scope| {
            let sql = "INSERT INTO marks (scope, name, value) VALUES (?1, ?2, ?3)
                       ON CONFLICT (scope, name) DO UPDATE SET value = marks.value RETURNING value";
            connection
                .prepare_cached(sql)
                .and_then(|mut query| query.query_row(params![scope, name, value.cast_signed()], |row| row.get(0)))
                .map(i64::cast_unsigned)
                .map_err(fault)
        })
    }

    fn remove_mark(&self, scope: &Scope, name: &str) -> Result<()> {
        let sql = "DELETE FROM marks WHERE scope = ?1 AND name = ?2";
        self.removing(scope, |connection, scope| run(connection, sql, params![scope, name])).map(drop)
    }
}
