//! The user's settings file, and the environment that overrides it.
//!
//! It is in the home folder and never in a repository: a cloned repository must not be able to send code, or a key from
//! the environment, to an endpoint of its choice.

use lukasa_engine::audit::AuditedOperations;
use lukasa_engine::claims::EditPolicy;
use lukasa_engine::features::code::summaries::PER_PASS;
use lukasa_engine::features::coordination::{ClaimRules, GRACE};
use lukasa_engine::features::memory::Vault;
use lukasa_engine::features::search::RERANK_MS;
use lukasa_engine::features::search::embedding::EmbeddingEndpointConfig;
use lukasa_engine::features::search::embedding::endpoint::BATCH;
use lukasa_engine::model_endpoint::{EndpointConfig, EndpointKey, TIMEOUT};
use lukasa_model::{Error, ErrorCode, ErrorKind, Result, Scope};
use lukasa_server::project_folders::repository_around;
use lukasa_server::{ProjectFolders, RequestLimits};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The audit key, if it is beside the settings.
const AUDIT_KEY: &str = "audit.key";

/// The configured language model.
pub struct LanguageModelOptions {
    pub endpoint: EndpointConfig,
    pub per_pass: usize,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Settings {
    model: ModelSettings,
    embedding: EmbeddingSettings,
    rerank: RerankSettings,
    audit: AuditSettings,
    log: LogSettings,
    claims: ClaimSettings,
    clock: ClockSettings,
    memory: MemorySettings,
    serve: ServeSettings,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct ModelSettings {
    url: Option<String>,
    name: Option<String>,
    key_env: Option<String>,
    timeout_seconds: Option<u64>,
    per_pass: Option<usize>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct EmbeddingSettings {
    base_url: Option<String>,
    model: Option<String>,
    version: Option<String>,
    key_env: Option<String>,
    dimensions: Option<u64>,
    batch: Option<u64>,
    prefix: Option<String>,
    question_prefix: Option<String>,
    timeout_seconds: Option<u64>,
    reads: Option<String>,
    redact: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct RerankSettings {
    url: Option<String>,
    model: Option<String>,
    key_env: Option<String>,
    deadline_ms: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct AuditSettings {
    keep: Option<String>,
    key_file: Option<String>,
    known_key_files: Vec<PathBuf>,
    server: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct LogSettings {
    level: Option<String>,
    format: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct ClaimSettings {
    edits: Option<String>,
    grace_seconds: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct ServeSettings {
    at_once: Option<u64>,
    time_seconds: Option<u64>,
    trees: Vec<GivenFolder>,
    folders: Vec<GivenFolder>,
}

/// A folder that is given to a project.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct GivenFolder {
    tenant: String,
    project: String,
    path: PathBuf,
}

/// What a server gives to projects: the working trees of their requests, and folders for their data.
pub fn given() -> Result<ProjectFolders> {
    given_from(&|name| std::env::var(name).ok().filter(|v| !v.is_empty()))
}

fn given_from(env: &dyn Fn(&str) -> Option<String>) -> Result<ProjectFolders> {
    let ServeSettings { trees, folders, .. } = read(env)?.serve;
    let checked = |what: &str, of: GivenFolder| -> Result<(Scope, PathBuf)> {
        let GivenFolder { tenant, project, path } = of;
        if !path.is_absolute() {
            return Err(Error::invalid(
                ErrorCode::InvalidSettings,
                format!("serve.{what}: `{}` is not absolute", path.display()),
            ));
        }
        if let Some(repository) = repository_around(&path).filter(|_| what == "trees") {
            let message = format!("serve.trees: `{}` is a part of `{}`", path.display(), repository.display());
            return Err(Error::invalid(ErrorCode::InvalidSettings, message)
                .hint("give the whole repository, or a folder of none"));
        }
        Ok((Scope::new(tenant, project)?, path))
    };
    let mut given = ProjectFolders::default();
    for tree in trees {
        let (scope, path) = checked("trees", tree)?;
        given = given.with_tree(scope, path);
    }
    for folder in folders {
        let (scope, path) = checked("folders", folder)?;
        given = given.with_folder(scope, path);
    }
    Ok(given)
}

/// Limits of a server, unless set on the command line.
pub fn limits() -> Result<RequestLimits> {
    limits_from(&|name| std::env::var(name).ok().filter(|v| !v.is_empty()))
}

fn limits_from(env: &dyn Fn(&str) -> Option<String>) -> Result<RequestLimits> {
    let ServeSettings { at_once, time_seconds, .. } = read(env)?.serve;
    let within = |name: &str, setting: &str, given: Option<u64>, most: u64| -> Result<Option<u64>> {
        let wrong = |given: &str| {
            Error::invalid(ErrorCode::InvalidSettings, format!("{given} is not a number from 1 to {most}"))
        };
        let (number, given_text) = match env(name) {
            Some(text) => (Some(text.parse().unwrap_or(0)), format!("{name}: `{text}`")),
            None => (given, format!("{setting}: {}", given.unwrap_or_default())),
        };
        number.map(|number| if (1..=most).contains(&number) { Ok(number) } else { Err(wrong(&given_text)) }).transpose()
    };
    let mut limits = RequestLimits::default();
    if let Some(most) = within("LUKASA_AT_ONCE", "serve.at_once", at_once, 10_000)? {
        limits.at_once = usize::try_from(most).expect("checked above");
    }
    if let Some(seconds) = within("LUKASA_TIME_LIMIT_SECONDS", "serve.time_seconds", time_seconds, 86_400)? {
        limits.time = Duration::from_secs(seconds);
    }
    Ok(limits)
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct ClockSettings {
    jump: Option<String>,
}

/// Whether to record times even if the clock jumped forward by more than a day.
pub fn allows_clock_jump() -> Result<bool> {
    clock_from(&|name| std::env::var(name).ok().filter(|v| !v.is_empty()))
}

fn clock_from(env: &dyn Fn(&str) -> Option<String>) -> Result<bool> {
    match env("LUKASA_CLOCK_JUMP").or(read(env)?.clock.jump).as_deref() {
        None | Some("refuse") => Ok(false),
        Some("allow") => Ok(true),
        Some(word) => {
            Err(Error::invalid(ErrorCode::InvalidSettings, format!("clock.jump: `{word}` is not refuse or allow")))
        }
    }
}

/// The rules for claims.
pub fn claims() -> Result<ClaimRules> {
    claims_from(&|name| std::env::var(name).ok().filter(|v| !v.is_empty()))
}

fn claims_from(env: &dyn Fn(&str) -> Option<String>) -> Result<ClaimRules> {
    let ClaimSettings { edits, grace_seconds } = read(env)?.claims;
    let edits = match env("LUKASA_CLAIMED_EDITS").or(edits).as_deref() {
        None | Some("warn") => EditPolicy::Warn,
        Some("refuse") => EditPolicy::Refuse,
        Some(word) => {
            return Err(Error::invalid(
                ErrorCode::InvalidSettings,
                format!("claims.edits: `{word}` is not warn or refuse"),
            ));
        }
    };
    let grace = match env("LUKASA_CLAIM_GRACE_SECONDS") {
        None => grace_seconds,
        Some(text) => Some(text.parse().map_err(|_| {
            Error::invalid(ErrorCode::InvalidSettings, format!("LUKASA_CLAIM_GRACE_SECONDS: `{text}` is not a number"))
        })?),
    };
    Ok(ClaimRules { edits, grace: grace.map_or(GRACE, Duration::from_secs) })
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct MemorySettings {
    agent_keys_file: Option<PathBuf>,
    reflect_minutes: Option<u64>,
}

/// How often a server reflects. None: never, which is the default.
pub fn reflect_every() -> Result<Option<Duration>> {
    reflect_from(&|name| std::env::var(name).ok().filter(|v| !v.is_empty()))
}

fn reflect_from(env: &dyn Fn(&str) -> Option<String>) -> Result<Option<Duration>> {
    let number = |name: &str| -> Result<Option<u64>> {
        let wrong =
            |text: &str| Error::invalid(ErrorCode::InvalidSettings, format!("{name}: `{text}` is not a number"));
        env(name).map(|text| text.parse().map_err(|_| wrong(&text))).transpose()
    };
    let minutes = number("LUKASA_REFLECT_MINUTES")?.or(read(env)?.memory.reflect_minutes);
    let millis = number("CODE_GRAPH_AUTO_REFLECT_INTERVAL_MS")?.map(Duration::from_millis);
    let every = minutes.map(|minutes| Duration::from_secs(minutes * 60)).or(millis);
    Ok(every.filter(|every| !every.is_zero()))
}

/// Files with secrets named by settings and environment, the settings file itself, and the key beside it.
pub fn secret_files() -> Result<Vec<PathBuf>> {
    secret_files_from(&|name| std::env::var(name).ok().filter(|v| !v.is_empty()))
}

fn secret_files_from(env: &dyn Fn(&str) -> Option<String>) -> Result<Vec<PathBuf>> {
    let (settings, audit) = (read(env)?, audit_from(env)?);
    let named = [env("LUKASA_AGENT_KEYS_FILE").map(PathBuf::from), settings.memory.agent_keys_file];
    let own = file_from(env);
    let beside = own.as_ref().map(|file| file.with_file_name(AUDIT_KEY));
    let named = named.into_iter().chain([audit.key_file, own, beside]).flatten();
    Ok(named.chain(audit.known_key_files).collect())
}

/// Keys of agents, which encrypt their sensitive episodes.
pub fn vault() -> Result<Vault> {
    vault_from(&|name| std::env::var(name).ok().filter(|v| !v.is_empty()))
}

/// Keys come from a file with a line `agent=key` each, and from `LUKASA_AGENT_KEYS`, separated by commas; the latter
/// takes precedence.
fn vault_from(env: &dyn Fn(&str) -> Option<String>) -> Result<Vault> {
    let file = env("LUKASA_AGENT_KEYS_FILE").map(PathBuf::from).or(read(env)?.memory.agent_keys_file);
    let text = match &file {
        Some(path) => std::fs::read_to_string(path).map_err(|e| {
            Error::new(
                ErrorKind::Unavailable,
                ErrorCode::FileFailure,
                format!("keys of agents, `{}`: {e}", path.display()),
            )
        })?,
        None => String::new(),
    };
    let given = env("LUKASA_AGENT_KEYS").unwrap_or_default();
    let lines = text.lines().map(str::trim).filter(|line| !line.starts_with('#'));
    let mut keys = Vec::new();
    for (at, line) in lines.chain(given.split(',').map(str::trim)).enumerate().filter(|(_, line)| !line.is_empty()) {
        // The line may be a key, so it is not printed.
        let (agent, key) = line.split_once('=').ok_or_else(|| {
            Error::invalid(
                ErrorCode::InvalidAgentKey,
                format!("entry {} of the keys of agents is not agent=key", at + 1),
            )
            .hint("write them as ada=<64 hexadecimal digits>")
        })?;
        keys.push((agent.trim(), key.trim()));
    }
    Vault::new(keys)
}

/// How operations are recorded.
#[derive(Debug, Default)]
pub struct AuditOptions {
    pub keep: Option<AuditedOperations>,
    pub key_file: Option<PathBuf>,
    /// Further key files whose seals are accepted: of other servers, or from before a key change.
    pub known_key_files: Vec<PathBuf>,
    /// The name of this server's audit chains.
    pub server: Option<String>,
}

/// The settings of the audit log.
pub fn audit() -> Result<AuditOptions> {
    audit_from(&|name| std::env::var(name).ok().filter(|v| !v.is_empty()))
}

fn audit_from(env: &dyn Fn(&str) -> Option<String>) -> Result<AuditOptions> {
    let AuditSettings { keep, key_file, known_key_files, server } = read(env)?.audit;
    let keep = env("LUKASA_AUDIT").or(keep).map(|word| match word.as_str() {
        "all" | "on" => Ok(AuditedOperations::All),
        "writes" => Ok(AuditedOperations::Writes),
        "off" => Ok(AuditedOperations::Nothing),
        _ => Err(Error::invalid(ErrorCode::InvalidSettings, format!("audit.keep: `{word}` is not all, writes or off"))),
    });
    Ok(AuditOptions {
        keep: keep.transpose()?,
        key_file: env("LUKASA_AUDIT_KEY_FILE").or(key_file).map(PathBuf::from),
        known_key_files: env("LUKASA_AUDIT_KNOWN_KEY_FILES")
            .map_or(known_key_files, |list| std::env::split_paths(&list).collect()),
        server: env("LUKASA_SERVER_ID").or(server),
    })
}

/// Level and format of the log, unless set on the command line.
pub fn log() -> Result<(Option<String>, Option<String>)> {
    let env = |name: &str| std::env::var(name).ok().filter(|v| !v.is_empty());
    let LogSettings { level, format } = read(&env)?.log;
    Ok((env("LUKASA_LOG_LEVEL").or(level), env("LUKASA_LOG_FORMAT").or(format)))
}

/// How objects are embedded.
#[derive(Debug, Default)]
pub struct EmbeddingOptions {
    /// None: the built-in model.
    pub endpoint: Option<EmbeddingEndpointConfig>,
    /// The id of the model whose vectors search reads. None: the model in use.
    pub reads: Option<String>,
    /// Patterns of text that is never embedded, beside what looks like a secret.
    pub redact: Vec<String>,
}

/// The embedding settings: the built-in model unless an endpoint is configured.
pub fn embedding() -> Result<EmbeddingOptions> {
    embedding_from(&|name| std::env::var(name).ok().filter(|v| !v.is_empty()))
}

fn embedding_from(env: &dyn Fn(&str) -> Option<String>) -> Result<EmbeddingOptions> {
    let file = read(env)?.embedding;
    let text = |name: &str, set: Option<String>| env(&format!("LUKASA_EMBEDDING_{name}")).or(set);
    let count = |name: &str, set: Option<u64>| -> Result<Option<usize>> {
        let number = number(env, &format!("LUKASA_EMBEDDING_{name}"))?.or(set);
        Ok(number.map(|number| usize::try_from(number).unwrap_or(usize::MAX)))
    };
    let (reads, redact) = (text("READS", file.reads), file.redact);
    let Some(base_url) = text("BASE_URL", file.base_url).filter(|url| url != "off") else {
        return Ok(EmbeddingOptions { endpoint: None, reads, redact });
    };
    let dimensions = count("DIMENSIONS", file.dimensions)?.ok_or_else(|| {
        Error::invalid(ErrorCode::InvalidModel, "embedding.dimensions is not set")
            .hint("set the length of the model's vectors (LUKASA_EMBEDDING_DIMENSIONS), for example 768")
    })?;
    let key = match (env("LUKASA_EMBEDDING_API_KEY"), text("KEY_ENV", file.key_env)) {
        (Some(key), _) => Some(EndpointKey::new(key)),
        (None, Some(variable)) => Some(key(env, "embedding.key_env", &variable)?),
        (None, None) => None,
    };
    let endpoint = EmbeddingEndpointConfig {
        base_url,
        model: text("MODEL", file.model).unwrap_or_default(),
        version: text("VERSION", file.version).unwrap_or_else(|| "1".into()),
        key,
        dimensions,
        batch: count("BATCH", file.batch)?.unwrap_or(BATCH),
        prefix: text("PREFIX", file.prefix).unwrap_or_default(),
        question_prefix: text("QUESTION_PREFIX", file.question_prefix).unwrap_or_default(),
        timeout: count("TIMEOUT_SECONDS", file.timeout_seconds)?
            .map_or(TIMEOUT, |seconds| Duration::from_secs(seconds as u64)),
    };
    Ok(EmbeddingOptions { endpoint: Some(endpoint), reads, redact })
}

/// The configured reranking model. None without a URL.
pub fn rerank() -> Result<Option<EndpointConfig>> {
    rerank_from(&|name| std::env::var(name).ok().filter(|v| !v.is_empty()))
}

fn rerank_from(env: &dyn Fn(&str) -> Option<String>) -> Result<Option<EndpointConfig>> {
    let RerankSettings { url, model, key_env, deadline_ms } = read(env)?.rerank;
    let Some(url) = env("LUKASA_RERANK_URL").or(url).filter(|url| url != "off") else { return Ok(None) };
    let name = env("LUKASA_RERANK_MODEL").or(model).unwrap_or_default();
    let timeout = number(env, "LUKASA_RERANK_DEADLINE_MS")?.or(deadline_ms).unwrap_or(RERANK_MS);
    let key = match env("LUKASA_RERANK_KEY_ENV").or(key_env) {
        Some(variable) => Some(key(env, "rerank.key_env", &variable)?),
        None => None,
    };
    Ok(Some(EndpointConfig { url, name, key, timeout: Duration::from_millis(timeout) }))
}

/// The configured language model. None without a URL.
pub fn model() -> Result<Option<LanguageModelOptions>> {
    model_from(&|name| std::env::var(name).ok().filter(|v| !v.is_empty()))
}

fn model_from(env: &dyn Fn(&str) -> Option<String>) -> Result<Option<LanguageModelOptions>> {
    let ModelSettings { url, name, key_env, timeout_seconds, per_pass } = read(env)?.model;
    let Some(url) = env("LUKASA_MODEL_URL").or(url).filter(|url| url != "off") else { return Ok(None) };
    let name = env("LUKASA_MODEL_NAME").or(name).unwrap_or_default();
    let timeout = number(env, "LUKASA_MODEL_TIMEOUT_SECONDS")?.or(timeout_seconds).map_or(TIMEOUT, Duration::from_secs);
    let per_pass = match number(env, "LUKASA_MODEL_PER_PASS")? {
        Some(number) => usize::try_from(number).unwrap_or(usize::MAX),
        None => per_pass.unwrap_or(PER_PASS),
    };
    let key = match env("LUKASA_MODEL_KEY_ENV").or(key_env) {
        Some(variable) => Some(key(env, "model.key_env", &variable)?),
        None => None,
    };
    Ok(Some(LanguageModelOptions { endpoint: EndpointConfig { url, name, key, timeout }, per_pass }))
}

fn key(env: &dyn Fn(&str) -> Option<String>, setting: &str, variable: &str) -> Result<EndpointKey> {
    let is_name = variable.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
    if !is_name {
        // It may be the key itself, so it is not printed.
        return Err(Error::invalid(
            ErrorCode::InvalidModel,
            format!("{setting} is not the name of an environment variable"),
        )
        .hint("name the variable that holds the key, in capitals, for example MODEL_KEY; not the key"));
    }
    env(variable).map(EndpointKey::new).ok_or_else(|| {
        Error::invalid(ErrorCode::InvalidModel, format!("{setting} names `{variable}`, and there is no such variable"))
            .hint(format!("set {variable} to the key, or leave {setting} out if none is needed"))
    })
}

fn number(env: &dyn Fn(&str) -> Option<String>, variable: &str) -> Result<Option<u64>> {
    let Some(text) = env(variable) else { return Ok(None) };
    let number = text
        .parse()
        .map_err(|_| Error::invalid(ErrorCode::InvalidModel, format!("{variable}: `{text}` is not a number")));
    number.map(Some)
}

/// The path of the settings file, whether or not it exists. None without a home folder.
pub fn file() -> Option<PathBuf> {
    file_from(&|name| std::env::var(name).ok().filter(|v| !v.is_empty()))
}

/// `LUKASA_CONFIG`, otherwise `lukasa/config.toml` in the configuration folder.
fn file_from(env: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf> {
    env("LUKASA_CONFIG").map(PathBuf::from).or_else(|| {
        let folder = env("XDG_CONFIG_HOME").map(PathBuf::from);
        let folder = folder.or_else(|| env("HOME").map(|home| Path::new(&home).join(".config")));
        folder.map(|folder| folder.join("lukasa").join("config.toml"))
    })
}

fn read(env: &dyn Fn(&str) -> Option<String>) -> Result<Settings> {
    let must_be = env("LUKASA_CONFIG").is_some();
    let Some(path) = file_from(env) else { return Ok(Settings::default()) };
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound && !must_be => return Ok(Settings::default()),
        Err(e) => {
            return Err(Error::new(
                ErrorKind::Unavailable,
                ErrorCode::FileFailure,
                format!("`{}`: {e}", path.display()),
            ));
        }
    };
    toml::from_str(&text).map_err(|e| {
        let line = e.span().map_or(1, |span| text[..span.start].matches('\n').count() + 1);
        // The line itself is not printed, because it may contain a secret.
        Error::invalid(ErrorCode::InvalidSettings, format!("`{}`, line {line}: {}", path.display(), e.message()))
            .hint("docs/configuration.md lists the settings")
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test says what it expects by failing")]

    use super::*;

    fn of(variables: &[(&str, &str)]) -> Result<Option<LanguageModelOptions>> {
        model_from(&|name| variables.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned()))
    }

    #[test]
    fn reranking_has_its_own_settings() {
        let of = |variables: &[(&str, &str)]| {
            let variables: Vec<(String, String)> =
                variables.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
            rerank_from(&move |name| variables.iter().find(|(n, _)| n == name).map(|(_, v)| v.clone()))
        };
        assert!(of(&[]).unwrap().is_none() && of(&[("LUKASA_RERANK_URL", "off")]).unwrap().is_none());
        let url = ("LUKASA_RERANK_URL", "http://localhost:8080");
        let plain = of(&[url, ("LUKASA_RERANK_MODEL", "small")]).unwrap().unwrap();
        assert_eq!((plain.name.as_str(), plain.timeout), ("small", Duration::from_millis(300)));
        assert_eq!(
            of(&[url, ("LUKASA_RERANK_DEADLINE_MS", "50")]).unwrap().unwrap().timeout,
            Duration::from_millis(50)
        );
        assert_eq!(of(&[url, ("LUKASA_RERANK_DEADLINE_MS", "soon")]).unwrap_err().code, ErrorCode::InvalidModel);
        assert_eq!(of(&[url, ("LUKASA_RERANK_KEY_ENV", "NOT_THERE")]).unwrap_err().code, ErrorCode::InvalidModel);
    }

    #[test]
    fn secret_files_lists_every_named_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config.toml");
        std::fs::write(
            &file,
            "[memory]\nagent_keys_file = \"a\"\n[audit]\nkey_file = \"b\"\nknown_key_files = [\"c\"]\n",
        )
        .unwrap();
        let of = |more: &[(&str, &str)]| {
            let env = |name: &str| {
                let given = more.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned());
                given.or_else(|| (name == "LUKASA_CONFIG").then(|| file.display().to_string()))
            };
            secret_files_from(&env).unwrap()
        };
        let has = |all: &[PathBuf], names: &[&str]| names.iter().all(|name| all.contains(&PathBuf::from(name)));
        let all = of(&[]);
        assert!(has(&all, &["a", "b", "c"]) && all.contains(&file), "{all:?}");
        assert!(all.contains(&folder.path().join("audit.key")), "{all:?}");
        let keys = ["LUKASA_AGENT_KEYS_FILE", "LUKASA_AUDIT_KEY_FILE", "LUKASA_AUDIT_KNOWN_KEY_FILES"];
        let all = of(&[(keys[0], "d"), (keys[1], "e"), (keys[2], "f:g")]);
        assert!(has(&all, &["d", "e", "f", "g"]), "{all:?}");
    }

    #[test]
    fn no_model_is_configured_without_a_url() {
        assert!(of(&[]).unwrap().is_none());
        assert!(of(&[("LUKASA_MODEL_NAME", "m")]).unwrap().is_none());
        assert!(of(&[("LUKASA_MODEL_URL", "off")]).unwrap().is_none());
    }

    #[test]
    fn the_environment_overrides_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lukasa/config.toml");
        std::fs::create_dir(path.parent().unwrap()).unwrap();
        let text =
            "[model]\nurl = \"http://a/v1\"\nname = \"small\"\nkey_env = \"K\"\ntimeout_seconds = 5\nper_pass = 7\n";
        std::fs::write(&path, text).unwrap();
        let home = folder.path().to_str().unwrap();
        let model = of(&[("XDG_CONFIG_HOME", home), ("K", "secret")]).unwrap().unwrap();
        assert_eq!(
            (model.endpoint.url.as_str(), model.endpoint.name.as_str(), model.per_pass),
            ("http://a/v1", "small", 7)
        );
        assert_eq!(model.endpoint.timeout, Duration::from_secs(5));
        assert!(!format!("{:?}", model.endpoint).contains("secret"));
        let set = [("XDG_CONFIG_HOME", home), ("K", "x"), ("LUKASA_MODEL_NAME", "big"), ("LUKASA_MODEL_PER_PASS", "9")];
        let model = of(&set).unwrap().unwrap();
        assert_eq!((model.endpoint.name.as_str(), model.per_pass), ("big", 9));
        assert!(of(&[("XDG_CONFIG_HOME", home), ("LUKASA_MODEL_URL", "off")]).unwrap().is_none());
    }

    #[test]
    fn errors_do_not_contain_what_may_be_a_key() {
        let url = ("LUKASA_MODEL_URL", "http://a/v1");
        let fault = |variables: &[(&str, &str)]| of(variables).map(|_| ()).unwrap_err();
        assert!(fault(&[url, ("LUKASA_MODEL_KEY_ENV", "UNSET")]).message.contains("`UNSET`"));
        assert!(!fault(&[url, ("LUKASA_MODEL_KEY_ENV", "sk-secret")]).message.contains("secret"));
        assert_eq!(fault(&[url, ("LUKASA_MODEL_PER_PASS", "many")]).code, ErrorCode::InvalidModel);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.toml");
        std::fs::write(&path, "[model]\nkey = \"sk-secret\"\n").unwrap();
        let error = fault(&[("LUKASA_CONFIG", path.to_str().unwrap())]);
        assert!(error.code == ErrorCode::InvalidSettings && error.message.contains("line 2"), "{error}");
        assert!(!error.message.contains("sk-secret"), "{error}");
        assert_eq!(fault(&[("LUKASA_CONFIG", "/nowhere/at/all")]).code, ErrorCode::FileFailure);
    }

    #[test]
    fn limits_of_a_server_are_checked() {
        let of = |variables: &[(&str, &str)]| {
            limits_from(&|name| variables.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned()))
        };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.toml");
        std::fs::write(&path, "[serve]\nat_once = 3\ntime_seconds = 7\n").unwrap();
        let file = ("LUKASA_CONFIG", path.to_str().unwrap());
        let limits = of(&[file, ("LUKASA_TIME_LIMIT_SECONDS", "9")]).unwrap();
        assert_eq!((limits.at_once, limits.time), (3, Duration::from_secs(9)), "the environment overrides the file");
        for (name, wrong) in [("LUKASA_AT_ONCE", "0"), ("LUKASA_AT_ONCE", "many"), ("LUKASA_TIME_LIMIT_SECONDS", "1e9")]
        {
            let fault = of(&[file, (name, wrong)]).unwrap_err();
            assert!(fault.code == ErrorCode::InvalidSettings && fault.message.contains(name), "{fault}");
        }
        std::fs::write(&path, "[serve]\nat_once = 0\n").unwrap();
        assert!(of(&[file]).unwrap_err().message.contains("serve.at_once"));
    }

    /// The settings samples of a page.
    fn samples(page: &str) -> Vec<String> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(page);
        let text = std::fs::read_to_string(path).unwrap();
        let blocks = text.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap().to_owned());
        blocks.collect()
    }

    fn given_by(settings: &str) -> Result<ProjectFolders> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.toml");
        std::fs::write(&path, settings).unwrap();
        given_from(&|name| (name == "LUKASA_CONFIG").then(|| path.display().to_string()))
    }

    #[test]
    fn every_sample_of_the_documentation_is_valid() {
        let all: Vec<String> = ["access.md", "configuration.md"].into_iter().flat_map(samples).collect();
        assert!(all.len() >= 4, "{} samples were found", all.len());
        for sample in &all {
            assert!(given_by(sample).is_ok(), "{}\n{sample}", given_by(sample).unwrap_err());
        }
        let [folders] = &samples("access.md")[..] else { panic!("one sample") };
        let shop = Scope::new("acme", "shop").unwrap();
        let expected = ProjectFolders::default()
            .with_tree(shop.clone(), "/srv/repositories/shop")
            .with_folder(shop, "/srv/exchange/shop");
        assert_eq!(given_by(folders).unwrap(), expected);
    }

    #[test]
    fn folders_of_projects_are_checked() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("inner");
        std::fs::create_dir_all(folder.path().join(".git")).unwrap();
        std::fs::create_dir(&inner).unwrap();
        let entry = |list: &str, tenant: &str, path: &str| {
            format!("[[serve.{list}]]\ntenant = {tenant:?}\nproject = \"shop\"\npath = {path:?}\n")
        };
        let inner = inner.to_str().unwrap();
        assert!(given_by(&entry("folders", "acme", inner)).is_ok());
        for (wrong, what) in [
            (entry("trees", "acme", inner), "is a part of"),
            (entry("trees", "acme", "repositories/shop"), "is not absolute"),
            (entry("folders", "acme", "exchange/shop"), "is not absolute"),
            (entry("folders", "", "/srv/exchange"), "tenant"),
            (entry("folders", "acme", "/srv/exchange").replace("path", "folder"), "unknown field"),
        ] {
            let fault = given_by(&wrong).unwrap_err();
            assert!(fault.message.contains(what), "{wrong}: {fault}");
        }
    }

    #[test]
    fn keys_of_agents_come_from_a_file_and_the_environment() {
        let (one, other) = ("00".repeat(32), "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys");
        std::fs::write(&path, format!("# who may read what\nada={one}\n\nbob = {other}\n")).unwrap();
        let of = |variables: &[(&str, &str)]| {
            vault_from(&|name| variables.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned()))
        };
        let file = ("LUKASA_AGENT_KEYS_FILE", path.to_str().unwrap());
        let vault = of(&[file, ("LUKASA_AGENT_KEYS", &format!("eve={one}, ada={other}"))]).unwrap();
        assert!(vault.has("ada") && vault.has("bob") && vault.has("eve") && !vault.has("dan"));
        assert!(!of(&[]).unwrap().has("ada"));
        let error = of(&[("LUKASA_AGENT_KEYS", "swordfish")]).unwrap_err();
        assert!(error.code == ErrorCode::InvalidAgentKey && !error.message.contains("swordfish"), "{error}");
        let error = of(&[("LUKASA_AGENT_KEYS", "ada=swordfish")]).unwrap_err();
        assert!(error.code == ErrorCode::InvalidAgentKey && !error.message.contains("swordfish"), "{error}");
        assert_eq!(of(&[("LUKASA_AGENT_KEYS_FILE", "/nowhere/at/all")]).unwrap_err().code, ErrorCode::FileFailure);
    }

    fn embedding_of(variables: &[(&str, &str)]) -> Result<EmbeddingOptions> {
        embedding_from(&|name| variables.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned()))
    }

    #[test]
    fn embeddings_use_an_endpoint_only_if_it_is_configured() {
        assert!(embedding_of(&[]).unwrap().endpoint.is_none());
        assert!(embedding_of(&[("LUKASA_EMBEDDING_MODEL", "m")]).unwrap().endpoint.is_none());
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.toml");
        let text = "[embedding]\nbase_url = \"http://a/v1\"\nmodel = \"small\"\nkey_env = \"K\"\ndimensions = 768\n\
                    prefix = \"passage: \"\nreads = \"old@1\"\nredact = [\"codename-[a-z]+\"]\n";
        std::fs::write(&path, text).unwrap();
        let file = ("LUKASA_CONFIG", path.to_str().unwrap());
        let EmbeddingOptions { endpoint, reads, redact } = embedding_of(&[file, ("K", "sk-secret")]).unwrap();
        let endpoint = endpoint.unwrap();
        assert_eq!((endpoint.model.as_str(), endpoint.dimensions, endpoint.batch), ("small", 768, BATCH));
        assert_eq!((endpoint.prefix.as_str(), endpoint.question_prefix.as_str()), ("passage: ", ""));
        assert_eq!((reads.as_deref(), redact.len(), endpoint.timeout), (Some("old@1"), 1, TIMEOUT));
        assert!(!format!("{endpoint:?}").contains("secret"));
        let set = [
            file,
            ("LUKASA_EMBEDDING_API_KEY", "sk-other"),
            ("LUKASA_EMBEDDING_MODEL", "big"),
            ("LUKASA_EMBEDDING_DIMENSIONS", "1536"),
            ("LUKASA_EMBEDDING_BATCH", "64"),
            ("LUKASA_EMBEDDING_QUESTION_PREFIX", "query: "),
            ("LUKASA_EMBEDDING_TIMEOUT_SECONDS", "5"),
        ];
        let endpoint = embedding_of(&set).unwrap().endpoint.unwrap();
        assert_eq!((endpoint.model.as_str(), endpoint.dimensions, endpoint.batch), ("big", 1536, 64));
        assert_eq!((endpoint.question_prefix.as_str(), endpoint.timeout), ("query: ", Duration::from_secs(5)));
        assert!(embedding_of(&[file, ("LUKASA_EMBEDDING_BASE_URL", "off")]).unwrap().endpoint.is_none());
        assert!(embedding_of(&[file]).unwrap_err().message.contains("`K`"), "the key is missing");
        let url = ("LUKASA_EMBEDDING_BASE_URL", "http://a/v1");
        assert!(embedding_of(&[url]).unwrap_err().message.contains("dimensions"));
        assert_eq!(
            embedding_of(&[url, ("LUKASA_EMBEDDING_DIMENSIONS", "many")]).unwrap_err().code,
            ErrorCode::InvalidModel
        );
    }
}

#[cfg(test)]
mod record {
    #![allow(clippy::unwrap_used, reason = "a test says what it expects by failing")]

    use super::*;

    #[test]
    fn recording_is_configured_in_the_file_or_the_environment() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.toml");
        std::fs::write(&path, "[audit]\nkeep = \"writes\"\nkey_file = \"/k\"\n[log]\nlevel = \"debug\"\n").unwrap();
        let of = |variables: &[(&str, &str)]| {
            audit_from(&|name| match name {
                "LUKASA_CONFIG" => Some(path.display().to_string()),
                name => variables.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned()),
            })
        };
        let wishes = of(&[]).unwrap();
        assert_eq!(
            (wishes.keep, wishes.key_file, wishes.server),
            (Some(AuditedOperations::Writes), Some("/k".into()), None)
        );
        let wishes = of(&[("LUKASA_AUDIT", "off"), ("LUKASA_SERVER_ID", "web-1")]).unwrap();
        assert_eq!((wishes.keep, wishes.server.as_deref()), (Some(AuditedOperations::Nothing), Some("web-1")));
        assert_eq!(of(&[("LUKASA_AUDIT", "maybe")]).unwrap_err().code, ErrorCode::InvalidSettings);
    }
}
