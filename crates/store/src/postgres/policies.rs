//! Row-level security: its setup by an administrator, and the check that it is exactly as required.

use super::connect::ConnectionTarget;
use super::{fault, server_addresses};
use crate::sqlite::newer_schema;
use lukasa_model::{Error, ErrorCode, ErrorKind, Result};
use std::collections::{BTreeMap, BTreeSet};
use tokio_postgres::Client;

mod embedded {
    refinery::embed_migrations!("migrations/postgres");
}

const SCHEMA: &str = "lukasa";
const OWN_TENANT: &str = "tenant = current_setting('lukasa.tenant', true)";
const OWN_PROJECT: &str =
    "tenant = current_setting('lukasa.tenant', true) AND project = current_setting('lukasa.project', true)";

/// During authentication the tenant is unknown, so a key is readable by its id. Ids are random and not secret; of the
/// secret only a hash is stored. Writing requires the tenant as well (see [`may_write`]).
const OWN_KEY: &str = "tenant = current_setting('lukasa.tenant', true) OR id = current_setting('lukasa.key', true)";

/// Every table with tenant data, the policy for its rows, and the application's privileges.
const TABLES: [(&str, &str, &str); 13] = [
    ("projects", OWN_TENANT, "SELECT, INSERT, UPDATE"),
    ("things", OWN_PROJECT, "SELECT, INSERT"),
    ("statements", OWN_PROJECT, "SELECT, INSERT"),
    ("provenance", OWN_PROJECT, "SELECT, INSERT"),
    ("transactions", OWN_PROJECT, "SELECT, INSERT"),
    ("client_batches", OWN_PROJECT, "SELECT, INSERT"),
    // Derived data may be deleted.
    ("vector_models", OWN_PROJECT, "SELECT, INSERT, DELETE"),
    ("vectors", OWN_PROJECT, "SELECT, INSERT, UPDATE, DELETE"),
    ("jobs", OWN_PROJECT, "SELECT, INSERT, UPDATE, DELETE"),
    ("marks", OWN_PROJECT, "SELECT, INSERT, UPDATE, DELETE"),
    // A key is immutable except for its revocation and its last use.
    ("access_keys", OWN_KEY, "SELECT, INSERT, UPDATE (revoked_at, last_used)"),
    // The audit trail is append-only; its heads move.
    ("audit", OWN_TENANT, "SELECT, INSERT"),
    ("audit_heads", OWN_TENANT, "SELECT, INSERT, UPDATE (number, hash, seal, seal_key)"),
];

/// Returns the policy for writing rows of a table with this policy for reading.
fn may_write(sees: &'static str) -> &'static str {
    if sees == OWN_KEY { OWN_TENANT } else { sees }
}

/// Brings schema, policies and the application's login role up to date. `admin_url` needs the rights for that;
/// `app_url` contains the role and its password. Can be repeated, and run from many servers at once.
pub async fn setup(admin_url: &str, app_url: &str) -> Result<()> {
    let admin = ConnectionTarget::parse(admin_url)?;
    let app = ConnectionTarget::parse(app_url)?.config;
    let place = server_addresses(&admin.config);
    let (mut client, pump) = admin.connect(&admin.config).await.map_err(|e| fault(e).at(&place))?;
    let done = run_setup(&mut client, &app, &place).await;
    drop(client);
    // The connection ends with its client; its result adds nothing to `done`.
    let _ = pump.await;
    done
}

async fn run_setup(client: &mut Client, app: &tokio_postgres::Config, place: &str) -> Result<()> {
    // One setup at a time: the number is arbitrary, but the same everywhere.
    client.batch_execute("SELECT pg_advisory_lock(7813501)").await.map_err(fault)?;
    client.batch_execute("CREATE SCHEMA IF NOT EXISTS lukasa; SET search_path TO lukasa").await.map_err(fault)?;
    refuse_newer(client, place).await?;
    embedded::migrations::runner().set_grouped(true).run_async(client).await.map_err(|e| {
        Error::new(
            ErrorKind::Unavailable,
            ErrorCode::MigrationFailed,
            format!("{place}: the schema could not be brought up to date: {e}"),
        )
    })?;
    let role = app.get_user().unwrap_or("lukasa_app");
    let role_name = identifier(role);
    let exists =
        client.query_opt("SELECT 1 FROM pg_roles WHERE rolname = $1", &[&role]).await.map_err(fault)?.is_some();
    let mut sql = String::from("BEGIN;");
    if !exists {
        sql += &format!("CREATE ROLE {role_name};");
    }
    let password =
        app.get_password().map_or_else(String::new, |p| format!("PASSWORD {}", literal(&String::from_utf8_lossy(p))));
    sql += &format!("ALTER ROLE {role_name} LOGIN NOSUPERUSER NOBYPASSRLS NOCREATEDB NOCREATEROLE {password};");
    sql += &format!("REVOKE ALL ON ALL TABLES IN SCHEMA {SCHEMA} FROM {role_name}, PUBLIC;");
    sql += &format!("REVOKE ALL ON SCHEMA {SCHEMA} FROM {role_name}, PUBLIC;");
    sql += &format!("GRANT USAGE ON SCHEMA {SCHEMA} TO {role_name};");
    sql += &format!("GRANT SELECT ON {SCHEMA}.refinery_schema_history TO {role_name};");
    sql += &format!("GRANT EXECUTE ON FUNCTION {SCHEMA}.refresh_statistics() TO {role_name};");
    for row in client
        .query("SELECT tablename, policyname FROM pg_policies WHERE schemaname = $1", &[&SCHEMA])
        .await
        .map_err(fault)?
    {
        let (table, policy): (String, String) = (row.get(0), row.get(1));
        sql += &format!("DROP POLICY {} ON {SCHEMA}.{};", identifier(&policy), identifier(&table));
    }
    for (table, own, rights) in TABLES {
        let written = may_write(own);
        sql += &format!(
            "ALTER TABLE {SCHEMA}.{table} ENABLE ROW LEVEL SECURITY;
             ALTER TABLE {SCHEMA}.{table} FORCE ROW LEVEL SECURITY;
             CREATE POLICY {table}_isolation ON {SCHEMA}.{table} USING ({own}) WITH CHECK ({written});
             GRANT {rights} ON {SCHEMA}.{table} TO {role_name};"
        );
    }
    sql += "COMMIT";
    client.batch_execute(&sql).await.map_err(fault)
}

/// Rejects a database that is not set up, or was set up by a newer Lukasa.
pub async fn check_schema(client: &Client, place: &str) -> Result<()> {
    let there = client
        .query_one("SELECT to_regclass('lukasa.refinery_schema_history') IS NOT NULL", &[])
        .await
        .map_err(fault)?
        .get::<_, bool>(0);
    let missing = || {
        Error::new(
            ErrorKind::Unavailable,
            ErrorCode::SchemaMissing,
            format!("{place} has not been set up for this Lukasa"),
        )
        .hint("run `lukasa setup-postgres` with an administrator's URL once")
    };
    if !there {
        return Err(missing());
    }
    match refuse_newer(client, place).await? {
        version if version < newest_schema() => Err(missing()),
        _ => Ok(()),
    }
}

fn newest_schema() -> i64 {
    embedded::migrations::runner().get_migrations().iter().map(|m| i64::from(m.version())).max().unwrap_or(0)
}

/// Returns the schema version of the database. Fails if it is newer than this Lukasa knows.
async fn refuse_newer(client: &Client, place: &str) -> Result<i64> {
    let there = client
        .query_one("SELECT to_regclass('lukasa.refinery_schema_history') IS NOT NULL", &[])
        .await
        .map_err(fault)?
        .get::<_, bool>(0);
    if !there {
        return Ok(0);
    }
    let version: Option<i64> = client
        .query_one("SELECT max(version)::bigint FROM lukasa.refinery_schema_history", &[])
        .await
        .map_err(fault)?
        .get(0);
    let version = version.unwrap_or(0);
    if version > newest_schema() { Err(newer_schema(place, version, newest_schema())) } else { Ok(version) }
}

/// Returns every deviation of role and policies from what is required.
pub async fn drift(client: &Client) -> Result<Vec<String>> {
    let mut found = role_drift(client).await?;
    let sql = "SELECT c.relname, c.relrowsecurity, c.relforcerowsecurity FROM pg_class c
               JOIN pg_namespace n ON n.oid = c.relnamespace
               WHERE n.nspname = $1 AND c.relkind IN ('r', 'p') AND c.relname <> 'refinery_schema_history'";
    let mut tables: BTreeSet<_> = TABLES.iter().map(|(table, ..)| table.to_string()).collect();
    for row in client.query(sql, &[&SCHEMA]).await.map_err(fault)? {
        let table: String = row.get(0);
        if !row.get::<_, bool>(1) || !row.get::<_, bool>(2) {
            found.push(format!("row-level security is not forced on `{table}`"));
        }
        if !tables.remove(&table) {
            found.push(format!("there is an unknown table `{table}`"));
        }
    }
    found.extend(tables.iter().map(|table| format!("table `{table}` is missing")));
    let sql = "SELECT tablename::text, policyname::text, permissive, roles::text, cmd, coalesce(qual, ''),
                      coalesce(with_check, '') FROM pg_policies WHERE schemaname = $1";
    let mut due: BTreeMap<_, _> = TABLES
        .iter()
        .map(|(table, own, _)| ((table.to_string(), format!("{table}_isolation")), (plain(own), plain(may_write(own)))))
        .collect();
    for row in client.query(sql, &[&SCHEMA]).await.map_err(fault)? {
        let text = |i: usize| row.get::<_, String>(i);
        let Some((own, written)) = due.remove(&(text(0), text(1))) else {
            found.push(format!("there is an unknown policy `{}` on `{}`", text(1), text(0)));
            continue;
        };
        let as_due = text(2) == "PERMISSIVE"
            && text(3) == "{public}"
            && text(4) == "ALL"
            && plain(&text(5)) == own
            && plain(&text(6)) == written;
        if !as_due {
            found.push(format!("policy `{}` on `{}` was changed", text(1), text(0)));
        }
    }
    found.extend(due.keys().map(|(table, policy)| format!("policy `{policy}` on `{table}` is missing")));
    Ok(found)
}

/// Returns every attribute, membership, ownership or privilege that the login role must not have.
async fn role_drift(client: &Client) -> Result<Vec<String>> {
    let mut found = Vec::new();
    let role = client
        .query_one("SELECT rolsuper, rolbypassrls, rolcreaterole FROM pg_roles WHERE rolname = current_user", &[])
        .await
        .map_err(fault)?;
    let powers = ["is a superuser", "may bypass row-level security", "may make roles and join them"];
    for (column, what) in powers.iter().enumerate() {
        if role.get::<_, bool>(column) {
            found.push(format!("the login role {what}"));
        }
    }
    if role.get::<_, bool>(0) {
        // A superuser has every privilege, which is already reported.
        return Ok(found);
    }
    let rows = client.query(POWERFUL_ROLES, &[&SCHEMA]).await.map_err(fault)?;
    found.extend(rows.iter().map(|row| {
        let (name, why): (String, String) = (row.get(0), row.get(1));
        format!("the login role is a member of `{name}`, which {why}")
    }));
    let rows = client.query(OWNED, &[&SCHEMA]).await.map_err(fault)?;
    found.extend(rows.iter().map(|row| format!("the login role owns {}", row.get::<_, String>(0))));
    let may_create =
        client.query_one("SELECT has_schema_privilege(current_user, $1, 'CREATE')", &[&SCHEMA]).await.map_err(fault)?;
    if may_create.get::<_, bool>(0) {
        found.push(format!("the login role may make tables in the schema `{SCHEMA}`"));
    }
    let rows = client.query(GRANTED, &[&SCHEMA]).await.map_err(fault)?;
    for row in rows {
        let (table, right, column): (String, String, Option<String>) = (row.get(0), row.get(1), row.get(2));
        let due = TABLES.iter().find(|(name, ..)| *name == table).map_or("SELECT", |(.., rights)| rights);
        if !is_granted(due, &right, column.as_deref()) {
            let at = column.map_or(table.clone(), |column| format!("{table}.{column}"));
            found.push(format!("the login role may {right} on `{at}`"));
        }
    }
    Ok(found)
}

/// Whether a list of privileges as in [`TABLES`] includes one, for the whole table or for a column.
fn is_granted(rights: &str, right: &str, column: Option<&str>) -> bool {
    // A privilege on columns is followed by their names in parentheses.
    let (whole, columns) = match rights.split_once('(') {
        Some((whole, columns)) => (whole, columns.trim_end_matches(')')),
        None => (rights, ""),
    };
    let mut names: Vec<&str> = whole.split(',').map(str::trim).collect();
    let of_columns = if columns.is_empty() { None } else { names.pop() };
    let listed = |column: &str| columns.split(',').any(|name| name.trim() == column);
    names.contains(&right) || of_columns == Some(right) && column.is_some_and(listed)
}

/// Roles with forbidden rights that the login role is a member of, directly or indirectly.
const POWERFUL_ROLES: &str = "
    SELECT r.rolname::text,
           CASE WHEN r.rolsuper THEN 'is a superuser'
                WHEN r.rolbypassrls THEN 'may bypass row-level security'
                WHEN r.rolcreaterole THEN 'may make roles and join them'
                WHEN r.rolname LIKE 'pg\\_%' THEN 'reaches beyond what is granted on tables'
                ELSE 'owns a part of the schema' END
    FROM pg_roles r
    WHERE r.rolname <> current_user AND pg_has_role(current_user, r.oid, 'MEMBER')
      AND (r.rolsuper OR r.rolbypassrls OR r.rolcreaterole
           OR r.rolname IN ('pg_read_all_data', 'pg_write_all_data', 'pg_read_server_files', 'pg_write_server_files',
                            'pg_execute_server_program')
           OR EXISTS (SELECT 1 FROM pg_namespace n WHERE n.nspname = $1 AND n.nspowner = r.oid)
           OR EXISTS (SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
                      WHERE n.nspname = $1 AND c.relowner = r.oid))
    ORDER BY 1";

/// What the login role owns: an owner can disable forced row-level security.
const OWNED: &str = "
    SELECT 'table `' || c.relname || '`' FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = $1 AND c.relkind IN ('r', 'p') AND pg_get_userbyid(c.relowner) = current_user
    UNION ALL
    SELECT 'schema `' || nspname || '`' FROM pg_namespace WHERE nspname = $1 AND pg_get_userbyid(nspowner) = current_user
    UNION ALL
    SELECT 'database `' || datname || '`' FROM pg_database
    WHERE datname = current_database() AND pg_get_userbyid(datdba) = current_user
    ORDER BY 1";

/// Privileges of the login role that allow changing rows: on tables and, where it has none on the whole table, on
/// columns; whatever their origin.
const GRANTED: &str = "
    SELECT c.relname::text, p.name, NULL::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    CROSS JOIN unnest(ARRAY['INSERT', 'UPDATE', 'DELETE', 'TRUNCATE', 'REFERENCES', 'TRIGGER']) AS p(name)
    WHERE n.nspname = $1 AND c.relkind IN ('r', 'p') AND has_table_privilege(current_user, c.oid, p.name)
    UNION ALL
    SELECT c.relname::text, p.name, a.attname::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
    CROSS JOIN unnest(ARRAY['INSERT', 'UPDATE', 'REFERENCES']) AS p(name)
    WHERE n.nspname = $1 AND c.relkind IN ('r', 'p') AND NOT has_table_privilege(current_user, c.oid, p.name)
      AND has_column_privilege(current_user, c.oid, a.attnum, p.name)
    ORDER BY 1, 2, 3";

/// Normalises an expression: removes white space, parentheses and casts to text, which servers print differently.
fn plain(expression: &str) -> String {
    expression.replace("::text", "").chars().filter(|c| !c.is_whitespace() && !"()".contains(*c)).collect()
}

fn identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn literal(text: &str) -> String {
    format!("E'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}
