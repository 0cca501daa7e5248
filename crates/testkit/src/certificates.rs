//! A private certificate authority for tests, run with the `openssl` program.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Signs certificates and stores them in a folder.
pub struct Authority {
    folder: PathBuf,
    name: String,
}

/// The files of a certificate and its private key.
#[derive(Clone, Debug)]
pub struct Certificate {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

impl Authority {
    /// Creates an authority with this name in a folder. Without the `openssl` program, reports that on standard error
    /// and returns `None`; with `CI` set, panics instead.
    pub fn new(folder: &Path, name: &str) -> Option<Authority> {
        if !Command::new("openssl").arg("version").output().is_ok_and(|out| out.status.success()) {
            assert!(std::env::var_os("CI").is_none(), "CI must test TLS: there is no openssl program");
            eprintln!("SKIPPED: there is no openssl program to make certificates with");
            return None;
        }
        let authority = Authority { folder: folder.to_owned(), name: name.to_owned() };
        let (key, root) = (authority.file("key"), authority.root());
        let subject = format!("/CN={name}");
        authority.openssl(&["req", "-x509", "-days", "30", "-subj", &subject], &[("-keyout", &key), ("-out", &root)]);
        Some(authority)
    }

    /// The file of the authority's own certificate.
    pub fn root(&self) -> PathBuf {
        self.file("pem")
    }

    /// Issues a certificate for a host, for example `IP:127.0.0.1` or `DNS:db.example`.
    pub fn issue(&self, name: &str, host: &str) -> Certificate {
        let file = |kind: &str| self.folder.join(format!("{}-{name}.{kind}", self.name));
        let (key, request, certificate, more) = (file("key"), file("csr"), file("pem"), file("ext"));
        std::fs::write(&more, format!("subjectAltName={host}\n")).expect("a file");
        let subject = format!("/CN={name}");
        self.openssl(&["req", "-subj", &subject], &[("-keyout", &key), ("-out", &request)]);
        let files = [
            ("-in", &request),
            ("-CA", &self.root()),
            ("-CAkey", &self.file("key")),
            ("-extfile", &more),
            ("-out", &certificate),
        ];
        self.openssl(&["x509", "-req", "-CAcreateserial", "-days", "30"], &files);
        Certificate { certificate, key }
    }

    fn file(&self, kind: &str) -> PathBuf {
        self.folder.join(format!("{}.{kind}", self.name))
    }

    fn openssl(&self, words: &[&str], files: &[(&str, &PathBuf)]) {
        let mut command = Command::new("openssl");
        command.args(words);
        if words[0] == "req" {
            command.args(["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]);
        }
        for (flag, path) in files {
            command.arg(flag).arg(path);
        }
        let out = command.stdin(Stdio::null()).output().expect("it runs");
        assert!(out.status.success(), "{command:?}: {}", String::from_utf8_lossy(&out.stderr));
    }
}
