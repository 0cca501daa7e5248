//! `lukasa serve` over HTTPS.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test says what it expects by failing")]

use lukasa_testkit::Authority;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn lukasa(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lukasa"));
    command.current_dir(folder).env("LUKASA_STORE", folder.join("lukasa.db")).env("LUKASA_PROJECT", "shop");
    command.env("LUKASA_MODEL_URL", "off").env("XDG_RUNTIME_DIR", folder);
    command.args(["serve", "--listen", "127.0.0.1:0", "--no-watch", "--no-embed"]).stdin(Stdio::null());
    command
}

/// Sends a request with OpenSSL, which verifies the certificate.
fn ask(address: &str, root: &Path, more: &[&str]) -> Output {
    let mut command = Command::new("openssl");
    command.args(["s_client", "-quiet", "-verify_return_error", "-verify_ip", "127.0.0.1", "-connect", address]);
    command.arg("-CAfile").arg(root).args(more);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("openssl runs");
    let request = format!("GET /healthz HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    // If the certificate is refused, the process has already ended.
    let _ = child.stdin.take().unwrap().write_all(request.as_bytes());
    child.wait_with_output().unwrap()
}

#[test]
fn a_server_with_a_certificate_is_reached_by_https_only() {
    let folder = tempfile::tempdir().unwrap();
    let Some(authority) = Authority::new(folder.path(), "ours") else { return };
    let stranger = Authority::new(folder.path(), "theirs").unwrap();
    let own = authority.issue("server", "IP:127.0.0.1");
    let other = authority.issue("other", "IP:127.0.0.1");
    let mut command = lukasa(folder.path());
    command.arg("--tls-cert").arg(&own.certificate).arg("--tls-key").arg(&own.key);
    let mut server = Server(command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap());
    let mut line = String::new();
    BufReader::new(server.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.split("https://").nth(1).and_then(|rest| rest.split(' ').next()).expect("it prints where");

    let answer = ask(address, &authority.root(), &[]);
    let text = String::from_utf8_lossy(&answer.stdout);
    assert!(
        text.starts_with("HTTP/1.1 200") && text.contains("\"ok\""),
        "{text}{}",
        String::from_utf8_lossy(&answer.stderr)
    );
    let tls12 = ask(address, &authority.root(), &["-tls1_2"]);
    assert!(tls12.stdout.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&tls12.stderr));
    let strange = ask(address, &stranger.root(), &[]);
    assert!(strange.stdout.is_empty() && !strange.status.success(), "a client that trusts another authority refuses");
    let plain = lukasa_testkit::http::try_ask(address.parse().unwrap(), "GET", "/healthz", &[], "");
    assert!(!matches!(plain, Ok(Some(reply)) if reply.status == 200), "nothing is answered without TLS");
    assert!(ask(address, &authority.root(), &[]).stdout.starts_with(b"HTTP/1.1 200"), "it goes on after that");
    drop(server);

    for (certificate, key, code) in [
        (&own.certificate, &other.key, "invalid_certificate"),
        (&own.key, &own.key, "invalid_certificate"),
        (&folder.path().join("nowhere.pem"), &own.key, "invalid_certificate"),
    ] {
        let out = lukasa(folder.path()).arg("--tls-cert").arg(certificate).arg("--tls-key").arg(key).output().unwrap();
        let text = String::from_utf8_lossy(&out.stderr);
        assert!(!out.status.success() && text.contains(code), "{text}");
    }
    let out = lukasa(folder.path()).arg("--tls-cert").arg(&own.certificate).output().unwrap();
    assert_eq!(out.status.code(), Some(2), "one file without the other is no command");
}
