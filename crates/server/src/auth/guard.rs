//! Checks of `Host` and `Origin`, which stop DNS rebinding and requests from pages of other sites.

use super::one;
use axum::http::HeaderMap;
use axum::http::header::{HOST, ORIGIN};
use lukasa_model::{Error, ErrorCode, ErrorKind, Result};
use std::net::IpAddr;

/// The host names this server answers to, and the origins whose pages may send requests.
#[derive(Clone, Debug, Default)]
pub struct GuardRules {
    /// There is no authentication. Only loopback names and the listed ones are accepted then.
    pub open: bool,
    /// Host names of this server beside loopback names, without port. With authentication, an empty list accepts any.
    pub hosts: Vec<String>,
    /// Allowed origins beside loopback ones, as browsers write them: `https://app.example.com`.
    pub origins: Vec<String>,
}

/// Refuses a request that a page of another site may have sent. `authority` comes from the request URI; in HTTP/2 it
/// replaces `Host`.
pub fn check(rules: &GuardRules, headers: &HeaderMap, authority: Option<&str>) -> Result<()> {
    let host = match (one(headers, &HOST)?, authority) {
        (Some(host), Some(authority)) if !host.eq_ignore_ascii_case(authority) => {
            return Err(forbidden_host(host));
        }
        (host, authority) => host.or(authority),
    };
    let name = host.and_then(host_name).ok_or_else(|| forbidden_host(host.unwrap_or_default()))?;
    let any_host = !rules.open && rules.hosts.is_empty();
    if !(any_host || is_loopback(&name) || rules.hosts.iter().any(|known| known.eq_ignore_ascii_case(&name))) {
        return Err(forbidden_host(host.unwrap_or_default()));
    }
    let Some(origin) = one(headers, &ORIGIN)? else { return Ok(()) };
    let page = ["http://", "https://"].iter().find_map(|scheme| origin.strip_prefix(scheme));
    let from_here = page.and_then(host_name).is_some_and(|name| is_loopback(&name));
    // A page that this server served itself.
    let own = page.zip(host).is_some_and(|(page, host)| page.eq_ignore_ascii_case(host));
    if from_here || own || rules.origins.iter().any(|known| known.eq_ignore_ascii_case(origin)) {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Forbidden,
        ErrorCode::ForbiddenOrigin,
        format!("pages of `{origin}` may not send requests here"),
    )
    .hint("add the page's origin to those that are allowed"))
}

/// The host of `name`, `name:port` or `[address]:port`, in lower case and without a final dot; None for anything else.
fn host_name(host: &str) -> Option<String> {
    let (name, port) = match host.strip_prefix('[') {
        Some(rest) => {
            let (address, port) = rest.split_once(']')?;
            address.parse::<std::net::Ipv6Addr>().ok()?;
            (address, port.strip_prefix(':').or(port.is_empty().then_some("0"))?)
        }
        None => host.split_once(':').unwrap_or((host, "0")),
    };
    port.parse::<u16>().ok().filter(|_| port.bytes().all(|b| b.is_ascii_digit()))?;
    let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-._:".contains(&b);
    (!name.is_empty() && name.bytes().all(plain)).then_some(name)
}

fn is_loopback(name: &str) -> bool {
    name == "localhost" || name.parse::<IpAddr>().is_ok_and(|address| address.to_canonical().is_loopback())
}

fn forbidden_host(host: &str) -> Error {
    Error::new(ErrorKind::Forbidden, ErrorCode::ForbiddenHost, format!("`{host}` is not a name of this server"))
        .hint("use localhost, or add the name with --allow-host")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test says what it expects by failing")]

    use super::*;
    use axum::http::HeaderValue;
    use proptest::prelude::*;

    fn verdict(rules: &GuardRules, host: Option<&str>, origin: Option<&str>) -> &'static str {
        let mut headers = HeaderMap::new();
        for (name, value) in [(HOST, host), (ORIGIN, origin)] {
            if let Some(value) = value {
                headers.insert(name, HeaderValue::from_str(value).unwrap());
            }
        }
        check(rules, &headers, None).map_or_else(|e| e.code.name(), |()| "ok")
    }

    #[test]
    fn without_authentication_only_names_of_this_machine_count() {
        let open = GuardRules { open: true, ..GuardRules::default() };
        for (host, says) in [
            ("localhost", "ok"),
            ("LocalHost:8080", "ok"),
            ("localhost.:1", "ok"),
            ("127.0.0.1:7000", "ok"),
            ("127.9.9.9", "ok"),
            ("[::1]:7000", "ok"),
            ("[::1]", "ok"),
            ("[::ffff:127.0.0.1]:1", "ok"),
            ("evil.example", "forbidden_host"),
            ("localhost.evil.example", "forbidden_host"),
            ("127.0.0.1.evil.example:7000", "forbidden_host"),
            ("evil.example:localhost", "forbidden_host"),
            ("localhost:", "forbidden_host"),
            ("localhost:70000", "forbidden_host"),
            ("localhost:+1", "forbidden_host"),
            ("localhost@evil.example", "forbidden_host"),
            ("evil.example#localhost", "forbidden_host"),
            ("0.0.0.0:7000", "forbidden_host"),
            ("[::]:7000", "forbidden_host"),
            ("192.168.1.5:7000", "forbidden_host"),
            ("2130706433", "forbidden_host"),
            ("[::1", "forbidden_host"),
            ("[::1]evil.example", "forbidden_host"),
            ("[localhost]", "forbidden_host"),
            ("", "forbidden_host"),
        ] {
            assert_eq!(verdict(&open, Some(host), None), says, "{host}");
        }
        assert_eq!(verdict(&open, None, None), "forbidden_host");
        let named = GuardRules { hosts: vec!["Lukasa.example".into()], ..open };
        assert_eq!(verdict(&named, Some("lukasa.example:443"), None), "ok");
        assert_eq!(verdict(&named, Some("x.lukasa.example"), None), "forbidden_host");
    }

    #[test]
    fn pages_of_this_machine_and_listed_ones_may_send_requests() {
        let open = GuardRules { open: true, origins: vec!["https://app.example".into()], ..GuardRules::default() };
        for (origin, says) in [
            ("http://localhost:3000", "ok"),
            ("https://127.0.0.1", "ok"),
            ("http://[::1]:3000", "ok"),
            ("https://app.example", "ok"),
            ("https://APP.example", "ok"),
            ("http://app.example", "forbidden_origin"),
            ("https://app.example:8443", "forbidden_origin"),
            ("https://app.example.evil.example", "forbidden_origin"),
            ("http://evil.example", "forbidden_origin"),
            ("http://localhost.evil.example", "forbidden_origin"),
            ("http://localhost:3000/path", "forbidden_origin"),
            ("http://localhost@evil.example", "forbidden_origin"),
            ("file://", "forbidden_origin"),
            ("ftp://localhost", "forbidden_origin"),
            ("null", "forbidden_origin"),
            ("", "forbidden_origin"),
        ] {
            assert_eq!(verdict(&open, Some("localhost:7000"), Some(origin)), says, "{origin}");
        }
        // DNS rebinding: the name of a foreign page resolves to this machine.
        assert_eq!(verdict(&open, Some("evil.example:7000"), Some("http://evil.example:7000")), "forbidden_host");
    }

    #[test]
    fn with_authentication_any_host_is_accepted_unless_some_are_listed() {
        let guarded = GuardRules::default();
        assert_eq!(verdict(&guarded, Some("lukasa.example"), None), "ok");
        assert_eq!(verdict(&guarded, Some("lukasa.example"), Some("https://lukasa.example")), "ok", "its own page");
        assert_eq!(verdict(&guarded, Some("lukasa.example"), Some("https://evil.example")), "forbidden_origin");
        assert_eq!(verdict(&guarded, Some("no host"), None), "forbidden_host");
        let named = GuardRules { hosts: vec!["lukasa.example".into()], ..guarded };
        assert_eq!(verdict(&named, Some("other.example"), None), "forbidden_host");
        assert_eq!(verdict(&named, Some("localhost"), None), "ok");
    }

    #[test]
    fn a_second_reading_of_the_host_is_refused() {
        let open = GuardRules { open: true, ..GuardRules::default() };
        let mut headers = HeaderMap::new();
        assert!(check(&open, &headers, Some("localhost:7000")).is_ok(), "HTTP/2 has no header");
        assert!(check(&open, &headers, Some("evil.example")).is_err());
        headers.insert(HOST, HeaderValue::from_static("localhost:7000"));
        assert!(check(&open, &headers, Some("LOCALHOST:7000")).is_ok());
        assert_eq!(check(&open, &headers, Some("evil.example")).unwrap_err().code, ErrorCode::ForbiddenHost);
        headers.append(HOST, HeaderValue::from_static("evil.example"));
        assert_eq!(check(&open, &headers, None).unwrap_err().code, ErrorCode::InvalidHeader);
    }

    proptest! {
        /// Only a port may follow a loopback name; any other text around it makes the name foreign.
        #[test]
        fn only_a_port_may_follow_a_host_name(before in "[ -~]{0,6}", after in "[ -~]{0,6}") {
            let open = GuardRules { open: true, ..GuardRules::default() };
            let host = format!("{before}localhost{after}");
            let port = after.strip_prefix('.').unwrap_or(&after);
            let due = before.is_empty()
                && (port.is_empty() || port.strip_prefix(':').is_some_and(|p| {
                    !p.is_empty() && p.bytes().all(|b| b.is_ascii_digit()) && p.parse::<u16>().is_ok()
                }));
            prop_assert_eq!(verdict(&open, Some(&host), None) == "ok", due);
        }
    }
}
