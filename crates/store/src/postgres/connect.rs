//! Connects to PostgreSQL: the settings of a URL, their defaults, and trying one host after another.

use super::tls::{Tls, TlsMode, TlsSettings};
use lukasa_model::{Error, ErrorCode, Result};
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::str::FromStr;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio_postgres::config::{Host, LoadBalanceHosts, TargetSessionAttrs};
use tokio_postgres::{Client, Config};

/// Timeout for each of several hosts. The pool waits for all of them, see [`ConnectionTarget::patience`].
const HOST: Duration = Duration::from_secs(5);
/// Longest wait for all hosts together: below the pool's timeout for a connection.
const HOSTS: Duration = Duration::from_secs(25);
/// TCP keepalive: idle time before the first probe, interval between probes, and number of probes.
const IDLE: Duration = Duration::from_secs(30);
const BETWEEN: Duration = Duration::from_secs(10);
const PROBES: u32 = 3;
/// Sent data must be acknowledged within this time, or the connection is considered broken.
const UNANSWERED: Duration = Duration::from_secs(30);
/// The default of the client library for `keepalives_idle`.
const LIBRARY_IDLE: Duration = Duration::from_secs(2 * 60 * 60);

/// Where to connect to, and how.
#[derive(Clone)]
pub(super) struct ConnectionTarget {
    pub config: Config,
    tls: Tls,
}

impl ConnectionTarget {
    /// Parses a URL, or a list of `name=value`.
    pub fn parse(url: &str) -> Result<ConnectionTarget> {
        let (rest, wanted) = take_tls(url)?;
        let mut config = Config::from_str(&rest).map_err(|e| {
            Error::invalid(ErrorCode::InvalidUrl, format!("the PostgreSQL URL cannot be read: {e}"))
                .hint("it looks like postgres://user:password@host:5432/database?sslmode=verify-full")
        })?;
        config.ssl_mode(wanted.mode.wanted());
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(HOST);
        }
        if config.get_tcp_user_timeout().is_none() {
            config.tcp_user_timeout(UNANSWERED);
        }
        if config.get_keepalives_idle() == LIBRARY_IDLE {
            config.keepalives_idle(IDLE);
        }
        if config.get_keepalives_interval().is_none() {
            config.keepalives_interval(BETWEEN);
        }
        if config.get_keepalives_retries().is_none() {
            config.keepalives_retries(PROBES);
        }
        // Of several hosts only one accepts writes, and which one may change.
        if hosts(&config) > 1 && config.get_target_session_attrs() == TargetSessionAttrs::Any {
            config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        }
        Ok(ConnectionTarget { tls: Tls::new(&wanted)?, config })
    }

    /// The longest time to try all hosts.
    pub fn patience(&self) -> Duration {
        let each = self.config.get_connect_timeout().copied().unwrap_or(HOST);
        let all = u32::try_from(hosts(&self.config)).unwrap_or(u32::MAX);
        (each.saturating_mul(all.saturating_add(1))).min(HOSTS)
    }

    /// Connects to the first host that accepts. Hosts that do not answer within the timeout are skipped, except that
    /// the last one is awaited without one.
    pub async fn connect(
        &self,
        config: &Config,
    ) -> std::result::Result<(Client, JoinHandle<()>), tokio_postgres::Error> {
        let count = hosts(config);
        let first = match config.get_load_balance_hosts() {
            LoadBalanceHosts::Random => {
                usize::try_from(uuid::Uuid::now_v7().as_u128() % count as u128).unwrap_or_default()
            }
            _ => 0,
        };
        let each = config.get_connect_timeout().copied().unwrap_or(HOST);
        let mut refused: Option<tokio_postgres::Error> = None;
        for at in 0..count {
            let one = only(config, (first + at) % count);
            let trying = one.connect(self.tls.clone());
            let tried = match at + 1 == count {
                true => trying.await,
                false => match tokio::time::timeout(each, trying).await {
                    Ok(tried) => tried,
                    Err(_) => continue,
                },
            };
            match tried {
                Ok((client, connection)) => {
                    // Users of the client see how the connection ended.
                    let pump = tokio::spawn(async move { drop(connection.await) });
                    return Ok((client, pump));
                }
                // An error reported by a server is more useful than a later connection failure.
                Err(e) if refused.as_ref().is_some_and(|earlier| earlier.as_db_error().is_some()) => drop(e),
                Err(e) => refused = Some(e),
            }
        }
        Err(refused.expect("the last host is waited for until it answers"))
    }
}

impl deadpool_postgres::Connect for ConnectionTarget {
    fn connect(
        &self,
        config: &Config,
    ) -> Pin<Box<dyn Future<Output = std::result::Result<(Client, JoinHandle<()>), tokio_postgres::Error>> + Send + '_>>
    {
        let config = config.clone();
        Box::pin(async move { ConnectionTarget::connect(self, &config).await })
    }
}

fn hosts(config: &Config) -> usize {
    config.get_hosts().len().max(config.get_hostaddrs().len()).max(1)
}

/// Returns the same settings for one of the hosts.
fn only(config: &Config, at: usize) -> Config {
    let mut one = Config::new();
    if let Some(user) = config.get_user() {
        one.user(user);
    }
    if let Some(password) = config.get_password() {
        one.password(password);
    }
    if let Some(name) = config.get_dbname() {
        one.dbname(name);
    }
    if let Some(options) = config.get_options() {
        one.options(options);
    }
    if let Some(name) = config.get_application_name() {
        one.application_name(name);
    }
    match config.get_hosts().get(at) {
        Some(Host::Tcp(host)) => drop(one.host(host)),
        #[cfg(unix)]
        Some(Host::Unix(path)) => drop(one.host_path(path)),
        None => {}
    }
    if let Some(address) = config.get_hostaddrs().get(at) {
        one.hostaddr(*address);
    }
    // A single port applies to all hosts.
    if let Some(port) = config.get_ports().get(at).or_else(|| config.get_ports().first()) {
        one.port(*port);
    }
    if let Some(timeout) = config.get_connect_timeout() {
        one.connect_timeout(*timeout);
    }
    if let Some(timeout) = config.get_tcp_user_timeout() {
        one.tcp_user_timeout(*timeout);
    }
    one.keepalives(config.get_keepalives()).keepalives_idle(config.get_keepalives_idle());
    if let Some(interval) = config.get_keepalives_interval() {
        one.keepalives_interval(interval);
    }
    if let Some(retries) = config.get_keepalives_retries() {
        one.keepalives_retries(retries);
    }
    one.ssl_mode(config.get_ssl_mode())
        .ssl_negotiation(config.get_ssl_negotiation())
        .target_session_attrs(config.get_target_session_attrs())
        .channel_binding(config.get_channel_binding());
    one
}

/// Removes the TLS settings from a URL, because the client library supports fewer of them than libpq.
fn take_tls(url: &str) -> Result<(String, TlsSettings)> {
    let mut wanted = TlsSettings::default();
    let mut take = |name: &str, value: &str| -> Result<bool> {
        match name {
            "sslmode" => wanted.mode = TlsMode::parse(value)?,
            "sslrootcert" => wanted.roots = Some(PathBuf::from(value)),
            "sslcert" => wanted.certificate = Some(PathBuf::from(value)),
            "sslkey" => wanted.key = Some(PathBuf::from(value)),
            _ => return Ok(false),
        }
        Ok(true)
    };
    let is_url = url.starts_with("postgres://") || url.starts_with("postgresql://");
    let rest = match url.split_once('?') {
        Some((place, query)) if is_url => {
            let mut kept = Vec::new();
            for pair in query.split('&') {
                let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
                if !take(name, &decoded(value)?)? {
                    kept.push(pair);
                }
            }
            if kept.is_empty() { place.to_owned() } else { format!("{place}?{}", kept.join("&")) }
        }
        _ if is_url => url.to_owned(),
        _ => {
            let mut kept = Vec::new();
            for pair in url.split_whitespace() {
                let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
                if !take(name, value.trim_matches('\''))? {
                    kept.push(pair);
                }
            }
            // Without TLS settings the text stays unchanged, because values may contain spaces.
            if kept.len() == url.split_whitespace().count() { url.to_owned() } else { kept.join(" ") }
        }
    };
    Ok((rest, wanted))
}

/// Decodes a value of a URL's query.
fn decoded(text: &str) -> Result<String> {
    let fault = || Error::invalid(ErrorCode::InvalidUrl, format!("`{text}` is not encoded as a part of a URL must be"));
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, more)) = rest.split_first() {
        if *first != b'%' {
            bytes.push(*first);
            rest = more;
            continue;
        }
        let digits = more.get(..2).and_then(|two| std::str::from_utf8(two).ok()).ok_or_else(fault)?;
        bytes.push(u8::from_str_radix(digits, 16).map_err(|_| fault())?);
        rest = &more[2..];
    }
    String::from_utf8(bytes).map_err(|_| fault())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test says what it expects by failing")]

    use super::*;

    #[test]
    fn tls_settings_are_removed_from_a_url() {
        let (rest, wanted) =
            take_tls("postgres://u:p@h/db?sslmode=verify-full&connect_timeout=3&sslrootcert=%2Fetc%2Fmy%20ca.pem")
                .unwrap();
        assert_eq!(rest, "postgres://u:p@h/db?connect_timeout=3");
        assert_eq!((wanted.mode, wanted.roots), (TlsMode::VerifyFull, Some("/etc/my ca.pem".into())));
        let (rest, wanted) = take_tls("host=h sslmode=verify-ca user=u").unwrap();
        assert_eq!((rest.as_str(), wanted.mode), ("host=h user=u", TlsMode::VerifyCa));
        assert_eq!(
            take_tls("host=h password='a b'").unwrap(),
            ("host=h password='a b'".into(), TlsSettings::default())
        );
        assert_eq!(take_tls("postgres://h?sslmode=sometimes").unwrap_err().code, ErrorCode::InvalidUrl);
        assert_eq!(
            ConnectionTarget::parse("postgres://h/db?sslmode=require&sslcert=/c.pem").err().unwrap().code,
            ErrorCode::InvalidUrl
        );
        assert_eq!(
            ConnectionTarget::parse("postgres://h/db?sslmode=verify-full&sslrootcert=/nowhere.pem").err().unwrap().code,
            ErrorCode::InvalidCertificate
        );
    }

    #[test]
    fn default_timeouts_are_below_those_of_the_callers() {
        let target = ConnectionTarget::parse("postgres://u@a,b/db").unwrap();
        let config = &target.config;
        assert_eq!(config.get_target_session_attrs(), TargetSessionAttrs::ReadWrite);
        assert_eq!(config.get_connect_timeout(), Some(&HOST));
        assert!(target.patience() > HOST * 2 && target.patience() < super::super::WAIT);
        assert_eq!(config.get_tcp_user_timeout(), Some(&UNANSWERED));
        assert_eq!((config.get_keepalives(), config.get_keepalives_idle()), (true, IDLE));
        assert_eq!((config.get_keepalives_interval(), config.get_keepalives_retries()), (Some(BETWEEN), Some(PROBES)));
        let given = ConnectionTarget::parse(
            "postgres://u@a,b/db?connect_timeout=2&tcp_user_timeout=7&keepalives_idle=9&target_session_attrs=read-only",
        );
        let config = given.unwrap().config;
        assert_eq!(config.get_connect_timeout(), Some(&Duration::from_secs(2)));
        assert_eq!(config.get_keepalives_idle(), Duration::from_secs(9));
        assert_eq!(config.get_target_session_attrs(), TargetSessionAttrs::ReadOnly);
        assert_eq!(
            ConnectionTarget::parse("postgres://u@a/db").unwrap().config.get_target_session_attrs(),
            TargetSessionAttrs::Any
        );
    }

    #[test]
    fn each_host_keeps_its_port_and_all_settings() {
        let target = ConnectionTarget::parse("postgres://u:p@a:1,b:2/db?application_name=n&sslmode=require").unwrap();
        for (at, (host, port)) in [("a", 1), ("b", 2)].into_iter().enumerate() {
            let one = only(&target.config, at);
            assert_eq!(one.get_hosts(), [Host::Tcp(host.into())]);
            assert_eq!(one.get_ports(), [port]);
            assert_eq!((one.get_user(), one.get_password()), (Some("u"), Some(&b"p"[..])));
            assert_eq!((one.get_dbname(), one.get_application_name()), (Some("db"), Some("n")));
            assert_eq!(one.get_ssl_mode(), target.config.get_ssl_mode());
            assert_eq!(one.get_target_session_attrs(), TargetSessionAttrs::ReadWrite);
        }
    }
}
