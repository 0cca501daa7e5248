//! `lukasa mcp` and `lukasa serve`: keep the engine running for agents and programs.

use super::{Session, audit, shutdown};
use crate::config::{self, ChosenStore, StoreAccess};
use clap::{Arg, ArgAction, ArgMatches, Command};
use lukasa_engine::audit::AuditedOperations;
use lukasa_engine::features::search::embedding;
use lukasa_engine::features::{coordination, memory};
use lukasa_engine::periodic::PeriodicWork;
use lukasa_model::{Error, ErrorCode, ErrorKind, Result};
use lukasa_server::auth::failures::{FailureLimit, LoginFailures};
use lukasa_server::auth::guard::GuardRules;
use lukasa_server::auth::jwks::KeySource;
use lukasa_server::auth::rate::{RateLimit, RateLimiter, RateLimits};
use lukasa_server::auth::{AuthConfig, Authenticator, Tokens, jwt};
use lukasa_server::http::{self, ClientLimits, Encryption, Site};
use lukasa_server::mcp::{McpServer, Toolsets};
use lukasa_server::owner::{EngineHandle, StoreLocation};
use lukasa_server::{Caller, ProjectFolders, RequestGate, RequestLimits};
use lukasa_store::SystemClock;
use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The default address.
const LISTEN: &str = "127.0.0.1:7411";

/// Flags that name files with secrets or keys of the server.
const SECRETS: [&str; 3] = ["jwt-secret-file", "jwks", "tls-key"];

/// The files named by these flags, if this is `serve`.
pub fn secret_files(matches: &ArgMatches) -> Vec<PathBuf> {
    let Some(serve) = matches.subcommand_matches("serve") else { return vec![] };
    SECRETS.iter().filter_map(|flag| serve.get_one::<String>(flag)).map(PathBuf::from).collect()
}

/// The commands `mcp` and `serve`.
pub fn commands() -> [Command; 2] {
    let toolsets = || {
        Arg::new("toolsets")
            .long("toolsets")
            .value_name("NAMES")
            .help("Toolsets to list beside the default tools, separated by commas; `all` lists every tool")
    };
    let no_watch = || {
        Arg::new("no-watch")
            .long("no-watch")
            .action(ArgAction::SetTrue)
            .help("Do not follow changes of the working tree")
    };
    let no_embed = || {
        Arg::new("no-embed")
            .long("no-embed")
            .action(ArgAction::SetTrue)
            .help("Do not compute vectors in the background; `lukasa embed` computes them")
    };
    let file = |name: &'static str, help: &'static str| Arg::new(name).long(name).value_name("FILE").help(help);
    let many = |name: &'static str, help: &'static str| Arg::new(name).long(name).action(ArgAction::Append).help(help);
    [
        Command::new("mcp")
            .about("Serve an agent over standard input and output (MCP)")
            .after_help("Agents start this command themselves; `lukasa setup` registers it in their settings.")
            .arg(toolsets())
            .arg(no_watch())
            .arg(no_embed()),
        Command::new("serve")
            .visible_alias("up")
            .about("Serve agents and programs over HTTP: MCP at /mcp, REST at /v1, OpenAPI at /openapi.json")
            .after_help("Without authentication only this machine is served; docs/access.md describes tokens and keys.")
            .arg(Arg::new("listen").long("listen").value_name("ADDRESS").default_value(LISTEN).help("The address to listen on"))
            .arg(file("tls-cert", "Serve HTTPS with this certificate chain (PEM), the server's certificate first").requires("tls-key"))
            .arg(file("tls-key", "The key of the certificate (PEM)").requires("tls-cert"))
            .arg(toolsets())
            .arg(file("jwks", "Accept tokens signed by one of these keys (JWKS)"))
            .arg(
                Arg::new("jwks-url")
                    .long("jwks-url")
                    .value_name("URL")
                    .conflicts_with("jwks")
                    .help("Accept tokens signed by one of the keys that an issuer publishes there (its `jwks_uri`)"),
            )
            .arg(
                file("jwt-secret-file", "Accept tokens signed with this secret (HS256)")
                    .conflicts_with_all(["jwks", "jwks-url"]),
            )
            .arg(many("audience", "Tokens must be meant for this audience").value_name("NAME"))
            .arg(Arg::new("issuer").long("issuer").value_name("NAME").help("Tokens must come from this issuer"))
            .arg(
                Arg::new("access-keys")
                    .long("access-keys")
                    .action(ArgAction::SetTrue)
                    .help("Accept access keys (`lukasa key create`)"),
            )
            .arg(
                Arg::new("rate")
                    .long("rate")
                    .value_name("N")
                    .value_parser(clap::value_parser!(u32).range(1..=100_000))
                    .help("Requests per second and user; from half of it with a warning [default: 20, none without authentication]"),
            )
            .arg(
                Arg::new("failed-logins")
                    .long("failed-logins")
                    .value_name("N")
                    .value_parser(clap::value_parser!(u32).range(0..=100_000))
                    .default_value("20")
                    .help("Failed authentications per minute before an address is refused; 0 for no limit"),
            )
            .arg(
                Arg::new("slow-after")
                    .long("slow-after")
                    .value_name("SECONDS")
                    .value_parser(clap::value_parser!(u32).range(1..=3_600))
                    .help("Longest wait for the headers, and for the body, of a request [default: 30 and 60]"),
            )
            .arg(
                Arg::new("import-limit")
                    .long("import-limit")
                    .value_name("MIB")
                    .value_parser(clap::value_parser!(u32).range(1..=1_048_576))
                    .default_value("1024")
                    .help("Largest body of an import"),
            )
            .arg(
                Arg::new("at-once")
                    .long("at-once")
                    .value_name("N")
                    .value_parser(clap::value_parser!(u32).range(1..=10_000))
                    .help("Reads that run at the same time; as many writes, and as many long ones of both [default: twice the cores, at least 4]"),
            )
            .arg(
                Arg::new("time-limit")
                    .long("time-limit")
                    .value_name("SECONDS")
                    .value_parser(clap::value_parser!(u32).range(1..=86_400))
                    .help("Longest time for one request [default: 120]"),
            )
            .arg(many("allow-host", "A host name of this server, beside loopback names").value_name("HOST"))
            .arg(many("allow-origin", "An origin whose pages may send requests, as `https://host:port`").value_name("ORIGIN"))
            .arg(no_watch())
            .arg(no_embed()),
    ]
}

/// What is served: a store, and the project and trees of this process.
struct Served {
    meant: ChosenStore,
    /// The current working tree, if it is a git repository.
    tree: Option<PathBuf>,
    given: ProjectFolders,
    matches: ArgMatches,
    watches: bool,
    /// `--no-watch` was given.
    unwatched: bool,
    embeds: bool,
    /// The port that a server listens on.
    port: Option<u16>,
    limits: RequestLimits,
    kept: OpenSessions,
}

/// The opened sessions, each with its periodic work, which is dropped first. They are dropped with [`Served`], after
/// the runtime of the surfaces: a session on PostgreSQL has its own runtime, which cannot be dropped from async code.
type OpenSessions = Arc<Mutex<Vec<(Vec<PeriodicWork>, Session)>>>;

impl Served {
    fn new(matches: &ArgMatches, sub: &ArgMatches) -> Result<Served> {
        let meant = config::chosen_store(matches)?;
        audit::hide_names(meant.file.as_deref())?;
        // Only repositories: otherwise a whole home folder might be indexed.
        let tree = Some(config::working_tree(&meant.home)?).filter(|tree| tree.join(".git").exists());
        let mut given = crate::settings::given()?;
        if let Some(tree) = &tree {
            given = given.with_tree(meant.scope.clone(), tree);
        }
        let unwatched = sub.get_flag("no-watch");
        let watches = !unwatched && given.trees().next().is_some();
        let embeds = !sub.get_flag("no-embed");
        Ok(Served {
            meant,
            tree,
            given,
            matches: matches.clone(),
            watches,
            unwatched,
            embeds,
            port: None,
            limits: crate::settings::limits()?,
            kept: OpenSessions::default(),
        })
    }

    /// Why no working tree is indexed and watched, unless that was requested.
    fn follows_nothing(&self) -> Option<String> {
        (!self.watches && !self.unwatched).then(|| {
            "no working tree is indexed or followed: this is no git repository, and settings give none to a project; \
             `lukasa index` reads a folder once"
                .to_owned()
        })
    }

    fn caller(&self) -> Caller {
        let text = |flag: &str, variable: &str| config::text(&self.matches, flag, variable);
        Caller {
            user: text("author", "LUKASA_AUTHOR").or_else(|| std::env::var("USER").ok()),
            agent: text("agent", "LUKASA_AGENT"),
            session: text("session", "LUKASA_SESSION"),
            tree: self.tree.clone(),
            ..Caller::owner(self.meant.scope.clone())
        }
    }

    /// One engine for all processes on a store in a file; one per process on a database server. Must be called within a
    /// runtime.
    fn front(&self) -> Result<RequestGate> {
        let matches = self.matches.clone();
        let (watches, embeds) = (self.watches, self.embeds);
        let (scope, given) = (self.meant.scope.clone(), self.given.clone());
        let recorded = (AuditedOperations::All, self.port);
        let reflect_every = crate::settings::reflect_every()?;
        let kept = Arc::clone(&self.kept);
        let open = move || {
            let session = Session::open_as(&matches, StoreAccess::MayCreate, None, true, recorded)?;
            let engine = session.engine.clone();
            let mut beats = vec![coordination::expire_claims(&engine, std::slice::from_ref(&scope))];
            beats.extend(embeds.then(|| embedding::embed_in_background(&engine, std::slice::from_ref(&scope))));
            beats.extend(reflect_every.map(|every| memory::reflect::reflect_in_background(&engine, &scope, every)));
            if let Ok(mut kept) = kept.lock() {
                kept.push((beats, session));
            }
            for (scope, tree) in given.trees().filter(|_| watches) {
                if let Err(e) = engine.watch(scope, tree) {
                    let _ = writeln!(std::io::stderr(), "changes of {scope} are not followed: {}", e.message);
                }
            }
            Ok(engine)
        };
        let desk = match &self.meant.file {
            Some(file) => EngineHandle::start(place(file)?, open),
            None => EngineHandle::alone(open),
        };
        Ok(RequestGate::over(desk, self.limits, self.given.clone()))
    }
}

/// Where the owner of a store is found.
pub fn place(file: &Path) -> Result<StoreLocation> {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute());
    StoreLocation::of(file, runtime.as_deref(), &std::env::temp_dir())
}

/// Serves one agent over standard input and output until it disconnects.
pub fn mcp(matches: &ArgMatches, sub: &ArgMatches) -> Result<()> {
    let (served, toolsets) = (Served::new(matches, sub)?, toolsets(sub)?);
    config::runtime()?.block_on(async {
        let front = served.front()?;
        let server = McpServer::of_owner(front.clone(), served.caller(), toolsets);
        let running = rmcp::serve_server(server, rmcp::transport::stdio()).await;
        let running = running
            .map_err(|e| unavailable(ErrorCode::NoClient, format!("the agent did not start the session: {e}")))?;
        let ended = running.waiting().await.map(drop);
        shutdown::within(Duration::ZERO);
        recorded(&front).await;
        ended.map_err(|e| Error::internal(format!("serving failed: {e}")))
    })
}

/// Waits for Ctrl-C. If signals cannot be received, the process runs until it is killed.
async fn interrupted() {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Waits for SIGTERM, which supervisors and containers send.
#[cfg(unix)]
async fn terminated() {
    match tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
        Ok(mut signal) => drop(signal.recv().await),
        Err(_) => std::future::pending().await,
    }
}

#[cfg(not(unix))]
async fn terminated() {
    std::future::pending().await
}

/// Serves until Ctrl-C or SIGTERM.
pub fn serve(whole: &ArgMatches, matches: &ArgMatches) -> Result<()> {
    let (mut served, toolsets) = (Served::new(whole, matches)?, toolsets(matches)?);
    let listen = matches.get_one::<String>("listen").map_or(LISTEN, String::as_str);
    let address: SocketAddr = listen.parse().map_err(|_| {
        Error::invalid(ErrorCode::InvalidArgument, format!("--listen: `{listen}` is not an address such as {LISTEN}"))
    })?;
    served.port = Some(address.port());
    served.limits.at_once = matches.get_one::<u32>("at-once").map_or(served.limits.at_once, |most| *most as usize);
    let seconds = matches.get_one::<u32>("time-limit").map(|seconds| Duration::from_secs(u64::from(*seconds)));
    served.limits.time = seconds.unwrap_or(served.limits.time);
    // Keys are looked up over a separate session, whichever process has the engine. On PostgreSQL it has its own
    // runtime, so it is dropped after the authentication that uses it.
    let keys = match matches.get_flag("access-keys") {
        true => Some(Session::open_for(&served.matches, StoreAccess::MayCreate, None, true)?),
        false => None,
    };
    let door = authenticator(&served, matches, keys.as_ref())?;
    if door.is_open() && !address.ip().is_loopback() {
        return Err(Error::new(
            ErrorKind::Forbidden,
            ErrorCode::NotGuarded,
            format!("--listen: {address} can be reached from elsewhere"),
        )
        .hint(
            "ask for tokens or keys (--jwks, --jwks-url, --jwt-secret-file, --access-keys), or listen on 127.0.0.1",
        ));
    }
    let lower = |name: &str| -> Vec<String> {
        matches.get_many::<String>(name).into_iter().flatten().map(|text| text.to_ascii_lowercase()).collect()
    };
    let rate = matches.get_one::<u32>("rate").copied();
    let rates = (!door.is_open() || rate.is_some()).then(|| Arc::new(RateLimiter::new(limits(rate))));
    let failures = matches.get_one::<u32>("failed-logins").copied().filter(|most| *most > 0 && !door.is_open());
    let failures =
        failures.map(|failures| Arc::new(LoginFailures::new(FailureLimit { failures, ..FailureLimit::default() })));
    let patience = client_limits(matches);
    let encryption = encryption(matches)?;
    let protocol = if encryption.is_some() { "https" } else { "http" };
    allow_connections();
    let guard = GuardRules { open: door.is_open(), hosts: lower("allow-host"), origins: lower("allow-origin") };
    #[cfg(feature = "otel")]
    spans()?;
    config::runtime()?.block_on(async {
        let (front, clock) = (served.front()?, Arc::new(SystemClock));
        let record = served.meant.scope.clone();
        let key = audit::key_check(served.meant.file.as_deref())?;
        let checks = key.map(|check| Arc::new(check) as http::ReadinessCheck).into_iter().collect();
        let (front_of, door) = (front.clone(), Arc::new(door));
        let site = Site { front: front_of, door, rates, guard, toolsets, clock, failures, patience, record, checks };
        let listener = tokio::net::TcpListener::bind(address).await.map_err(|e| {
            unavailable(ErrorCode::CannotListen, format!("`{address}`: {e}"))
                .hint("name another with --listen; port 0 takes any")
        })?;
        let own = listener.local_addr().map_err(|e| Error::internal(format!("no address: {e}")))?;
        // On standard output, so that the parent process can read the address.
        let project = &served.meant.scope.project;
        println!("serving {project} at {protocol}://{own} (MCP at {protocol}://{own}/mcp); Ctrl-C ends it");
        let _ = std::io::stdout().flush();
        if let Some(why) = served.follows_nothing() {
            let _ = writeln!(std::io::stderr(), "{why}");
        }
        let ended = async move {
            tokio::select! {
                () = interrupted() => {}
                () = terminated() => {}
            }
            shutdown::within(patience.ending);
        };
        let ended = http::serve_encrypted(site, encryption, listener, ended).await;
        recorded(&front).await;
        ended.map_err(|e| Error::internal(format!("serving failed: {e}")))
    })
}

/// Records everything that has ended before the process exits. Failures are reported by the audit log.
async fn recorded(front: &RequestGate) {
    if let Some(audit) = front.engine_handle().engine().and_then(|engine| engine.audit().cloned()) {
        let _ = tokio::task::spawn_blocking(move || audit.flush()).await;
    }
    #[cfg(feature = "otel")]
    let _ = tokio::task::spawn_blocking(lukasa_server::otel::flush).await;
}

/// Starts sending spans if the OpenTelemetry variables are set.
#[cfg(feature = "otel")]
fn spans() -> Result<()> {
    let env = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let Some(endpoint) = env("OTEL_EXPORTER_OTLP_ENDPOINT") else { return Ok(()) };
    let headers = env("OTEL_EXPORTER_OTLP_HEADERS").unwrap_or_default();
    let pair =
        |pair: &str| pair.split_once('=').map(|(name, value)| (name.trim().to_string(), value.trim().to_string()));
    lukasa_server::otel::start(lukasa_server::otel::OtelConfig {
        endpoint,
        headers: headers.split(',').filter_map(pair).collect(),
        service: env("OTEL_SERVICE_NAME").unwrap_or_else(|| "lukasa".into()),
    })
}

/// Raises the limit on open files: every connection is one, and the default limit is low.
fn allow_connections() {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, getrlimit, setrlimit};
        let mut limit = getrlimit(Resource::Nofile);
        limit.current = limit.maximum;
        // If that is not permitted, further connections wait.
        let _ = setrlimit(Resource::Nofile, limit);
    }
}

/// Configures authentication: none for clients on this machine, or tokens and keys.
fn authenticator(served: &Served, matches: &ArgMatches, access_keys: Option<&Session>) -> Result<Authenticator> {
    let path = |name: &str| matches.get_one::<String>(name).map(Path::new);
    let keys = match (path("jwks"), matches.get_one::<String>("jwks-url"), path("jwt-secret-file")) {
        (Some(file), ..) => Some(KeySource::jwks_file(file)?),
        (_, Some(url), _) => Some(KeySource::jwks_url(url, Arc::new(SystemClock))?),
        (.., Some(file)) => Some(KeySource::secret_file(file)?),
        (None, None, None) => None,
    };
    if keys.is_none() && access_keys.is_none() {
        return Ok(Authenticator::open(served.meant.scope.clone()));
    }
    let rules = jwt::TokenRules {
        audiences: matches.get_many::<String>("audience").into_iter().flatten().cloned().collect(),
        issuers: matches.get_one::<String>("issuer").cloned().into_iter().collect(),
    };
    Authenticator::with_credentials(AuthConfig {
        tokens: keys.map(|keys| Tokens { keys, rules }),
        keys: access_keys.map(|session| Arc::clone(session.engine.store())),
        project: Some(served.meant.scope.project.to_string()),
        clock: Arc::new(SystemClock),
    })
}

/// The certificate for TLS, if its files are named.
fn encryption(matches: &ArgMatches) -> Result<Option<Encryption>> {
    let path = |name: &str| matches.get_one::<String>(name).map(Path::new);
    match (path("tls-cert"), path("tls-key")) {
        (Some(certificate), Some(key)) => Encryption::from_files(certificate, key).map(Some),
        _ => Ok(None),
    }
}

/// Timeouts for clients, and the largest import.
fn client_limits(matches: &ArgMatches) -> ClientLimits {
    let mut patience = ClientLimits::default();
    if let Some(seconds) = matches.get_one::<u32>("slow-after") {
        patience.head = Duration::from_secs(u64::from(*seconds));
        patience.body = patience.head;
    }
    if let Some(mebibytes) = matches.get_one::<u32>("import-limit") {
        patience.import_bytes = u64::from(*mebibytes) << 20;
    }
    patience
}

/// Rate limits: the soft limit is half of the hard one.
fn limits(rate: Option<u32>) -> RateLimits {
    let Some(rate) = rate else { return RateLimits::default() };
    let limit = |per_second: u32| RateLimit { per_second, burst: per_second.saturating_mul(2) };
    RateLimits { soft: limit(rate.div_ceil(2)), hard: limit(rate), ..RateLimits::default() }
}

fn toolsets(matches: &ArgMatches) -> Result<Toolsets> {
    Toolsets::read(matches.get_one::<String>("toolsets").map_or("", String::as_str).split(','))
}

fn unavailable(code: ErrorCode, message: String) -> Error {
    Error::new(ErrorKind::Unavailable, code, message)
}
