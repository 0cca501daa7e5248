//! A private PostgreSQL primary with an asynchronous standby.

use crate::Certificate;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

/// A primary and its standby. Both are stopped and removed when dropped.
pub struct Cluster {
    bin: PathBuf,
    folder: tempfile::TempDir,
    ports: [u16; 2],
}

/// One of the two servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ServerRole {
    Primary,
    Standby,
}

impl Cluster {
    /// Starts both servers. If PostgreSQL is not installed, reports that on standard error and returns `None`; with `CI`
    /// set, panics instead.
    pub fn start() -> Option<Cluster> {
        let cluster = Cluster::alone()?;
        let (copy, from) = (cluster.data(ServerRole::Standby), cluster.admin_url(ServerRole::Primary));
        cluster.run("pg_basebackup", &["-D", &copy, "-d", &from, "-R", "-X", "stream", "--checkpoint=fast"]);
        cluster.boot(ServerRole::Standby, "-c hot_standby=on");
        Some(cluster)
    }

    /// Starts the primary without a standby.
    pub fn alone() -> Option<Cluster> {
        let Some(bin) = installed() else {
            assert!(std::env::var_os("CI").is_none(), "CI must test fail-overs: PostgreSQL is not installed");
            eprintln!("SKIPPED: PostgreSQL is not installed, so there is no standby to fail over to");
            return None;
        };
        let folder = tempfile::tempdir().expect("a temporary folder");
        let cluster = Cluster { bin, folder, ports: [free_port(), free_port()] };
        if is_root() {
            cluster.must(Command::new("chown").arg("-R").arg(user()).arg(cluster.folder.path()));
        }
        let data = cluster.data(ServerRole::Primary);
        cluster.run("initdb", &["-D", &data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C"]);
        // Commits do not wait for the standby, so a failover can lose the end of the log.
        cluster.boot(ServerRole::Primary, "-c synchronous_standby_names='' -c wal_level=replica -c max_wal_senders=4");
        Some(cluster)
    }

    /// Enables TLS on the primary with a certificate and a trusted root, and replaces `pg_hba.conf` with these lines.
    pub fn encrypt(&self, server: &Certificate, root: &Path, let_in: &str) {
        let data = PathBuf::from(self.data(ServerRole::Primary));
        let own = |from: &Path, name: &str| {
            let to = data.join(name);
            std::fs::copy(from, &to).expect("the file is copied");
            self.must(Command::new("chmod").arg("600").arg(&to));
            if is_root() {
                self.must(Command::new("chown").arg(user()).arg(&to));
            }
        };
        own(&server.certificate, "server.crt");
        own(&server.key, "server.key");
        own(root, "root.crt");
        std::fs::write(data.join("pg_hba.conf"), let_in).expect("the file is written");
        let mut settings = std::fs::read_to_string(data.join("postgresql.conf")).expect("the settings exist");
        if !settings.contains("ssl_ca_file = 'root.crt'") {
            settings += "\nssl = on\nssl_ca_file = 'root.crt'\n";
            std::fs::write(data.join("postgresql.conf"), settings).expect("the settings are written");
        }
        self.run("pg_ctl", &["-D", &self.data(ServerRole::Primary), "reload"]);
        // A reload is asynchronous: connections made immediately may still use the previous settings.
        std::thread::sleep(Duration::from_millis(500));
    }

    /// The administrator's URL of the primary.
    pub fn primary_url(&self) -> String {
        self.admin_url(ServerRole::Primary)
    }

    /// Rewrites a URL of the primary so that it lists both servers and selects the one that accepts writes.
    pub fn both(&self, url: &str) -> String {
        let [primary, standby] = self.ports;
        let one = format!("127.0.0.1:{primary}");
        assert!(url.contains(&one), "not a URL of the primary");
        let both = url.replace(&one, &format!("{one},127.0.0.1:{standby}"));
        format!("{both}{}target_session_attrs=read-write", if both.contains('?') { '&' } else { '?' })
    }

    /// Waits until the standby has replayed everything.
    pub fn settle(&self) {
        let behind = "SELECT count(*) FROM pg_stat_replication WHERE replay_lsn >= pg_current_wal_lsn()";
        for _ in 0..600 {
            if self.sql(ServerRole::Primary, behind).trim() == "1" {
                return;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        panic!("the standby does not follow");
    }

    /// Stops replication to the standby.
    pub fn cut_off(&self) {
        self.sql(ServerRole::Standby, "ALTER SYSTEM SET primary_conninfo = ''");
        self.sql(ServerRole::Standby, "SELECT pg_reload_conf()");
        for _ in 0..600 {
            if self.sql(ServerRole::Primary, "SELECT count(*) FROM pg_stat_replication").trim() == "0" {
                return;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        panic!("the standby still follows");
    }

    /// Stops the primary immediately, as a failing machine would, and promotes the standby.
    pub fn fail_over(&self) {
        self.stop(ServerRole::Primary);
        self.run("pg_ctl", &["-D", &self.data(ServerRole::Standby), "-w", "-t", "60", "promote"]);
    }

    fn admin_url(&self, role: ServerRole) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port(role))
    }

    fn port(&self, role: ServerRole) -> u16 {
        self.ports[usize::from(role == ServerRole::Standby)]
    }

    fn data(&self, role: ServerRole) -> String {
        let name = if role == ServerRole::Primary { "primary" } else { "standby" };
        self.folder.path().join(name).display().to_string()
    }

    fn boot(&self, role: ServerRole, more: &str) {
        let (data, port) = (self.data(role), self.port(role));
        let options = format!(
            "-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c max_connections=100 {more}"
        );
        let log = format!("{data}.log");
        self.run("pg_ctl", &["-D", &data, "-w", "-t", "60", "-l", &log, "-o", &options, "start"]);
    }

    fn stop(&self, role: ServerRole) {
        let data = self.data(role);
        let _ = self.program("pg_ctl", &["-D", &data, "-m", "immediate", "stop"]).output();
    }

    fn sql(&self, role: ServerRole, sql: &str) -> String {
        let out = self.run("psql", &["-d", &self.admin_url(role), "-Atqc", sql]);
        String::from_utf8_lossy(&out.stdout).into_owned()
    }

    fn run(&self, name: &str, arguments: &[&str]) -> Output {
        self.must(&mut self.program(name, arguments))
    }

    fn must(&self, command: &mut Command) -> Output {
        // A started server keeps inherited pipes open, so its output is not piped.
        let log = self.folder.path().join("commands.log");
        let errors = std::fs::OpenOptions::new().create(true).append(true).open(&log).expect("a log");
        let starts = command.get_args().any(|argument| argument == "start");
        command.stdin(Stdio::null()).stderr(errors);
        let out = match starts {
            true => {
                let status = command.stdout(Stdio::null()).status().expect("it runs");
                Output { status, stdout: vec![], stderr: vec![] }
            }
            false => {
                command.stdout(Stdio::piped()).spawn().and_then(|child| child.wait_with_output()).expect("it runs")
            }
        };
        let why = || std::fs::read_to_string(&log).unwrap_or_default();
        assert!(out.status.success(), "{command:?}: {}\n{}", why(), String::from_utf8_lossy(&out.stdout));
        out
    }

    /// PostgreSQL refuses to run as root.
    fn program(&self, name: &str, arguments: &[&str]) -> Command {
        let path = self.bin.join(name);
        let mut command = match is_root() {
            true => {
                let mut command = Command::new("setpriv");
                command.args(["--reuid", user(), "--regid", user(), "--clear-groups"]).arg(path);
                command
            }
            false => Command::new(path),
        };
        command.args(arguments).current_dir("/");
        command
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.stop(ServerRole::Standby);
        self.stop(ServerRole::Primary);
    }
}

/// Returns the program folder of the newest installed PostgreSQL.
fn installed() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?.flatten().map(|entry| entry.path().join("bin"));
    let whole =
        |bin: &PathBuf| ["initdb", "pg_ctl", "pg_basebackup", "psql"].iter().all(|name| bin.join(name).exists());
    let number = |bin: &PathBuf| {
        let version = bin.parent().and_then(Path::file_name).and_then(|name| name.to_str());
        version.and_then(|version| version.parse::<f64>().ok()).map_or(0, |version| (version * 10.0) as u32)
    };
    versions.filter(whole).max_by_key(number)
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output();
    id.is_ok_and(|out| out.stdout.starts_with(b"0\n"))
}

fn user() -> &'static str {
    let there = Command::new("id").arg("postgres").output().is_ok_and(|out| out.status.success());
    if there { "postgres" } else { "nobody" }
}

/// Returns a port that was free a moment ago. If another process takes it meanwhile, the server fails to start.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
}
