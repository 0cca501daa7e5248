//! The settings file of a person, and the environment that overrides it.
//!
//! It lies in the home folder and never in a repository: who clones one must not have their code, or a key from their
//! environment, sent where somebody else says.

use lukasa_engine::code::summaries::PER_PASS;
use lukasa_engine::model_endpoint::{EndpointConfig, Key, TIMEOUT};
use lukasa_model::{Error, ErrorKind, Result};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A language model to ask.
pub struct Model {
    pub endpoint: EndpointConfig,
    pub per_pass: usize,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Settings {
    model: ModelSettings,
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

/// The model that is configured; none unless somebody names its URL.
pub fn model() -> Result<Option<Model>> {
    model_from(&|name| std::env::var(name).ok().filter(|v| !v.is_empty()))
}

fn model_from(env: &dyn Fn(&str) -> Option<String>) -> Result<Option<Model>> {
    let ModelSettings { url, name, key_env, timeout_seconds, per_pass } = read(env)?.model;
    let Some(url) = env("LUKASA_MODEL_URL").or(url).filter(|url| url != "off") else { return Ok(None) };
    let name = env("LUKASA_MODEL_NAME").or(name).unwrap_or_default();
    let timeout = number(env, "LUKASA_MODEL_TIMEOUT_SECONDS")?.or(timeout_seconds).map_or(TIMEOUT, Duration::from_secs);
    let per_pass = match number(env, "LUKASA_MODEL_PER_PASS")? {
        Some(number) => usize::try_from(number).unwrap_or(usize::MAX),
        None => per_pass.unwrap_or(PER_PASS),
    };
    let key = match env("LUKASA_MODEL_KEY_ENV").or(key_env) {
        Some(variable) => Some(key(env, &variable)?),
        None => None,
    };
    Ok(Some(Model { endpoint: EndpointConfig { url, name, key, timeout }, per_pass }))
}

fn key(env: &dyn Fn(&str) -> Option<String>, variable: &str) -> Result<Key> {
    let is_name = variable.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
    if !is_name {
        // It may be the key itself, which nobody should see.
        return Err(Error::invalid("invalid_model", "model.key_env is not the name of an environment variable")
            .hint("name the variable that holds the key, in capitals, for example MODEL_KEY; not the key"));
    }
    env(variable).map(Key::new).ok_or_else(|| {
        Error::invalid("invalid_model", format!("model.key_env names `{variable}`, and there is no such variable"))
            .hint(format!("set {variable} to the key, or leave model.key_env out if none is needed"))
    })
}

fn number(env: &dyn Fn(&str) -> Option<String>, variable: &str) -> Result<Option<u64>> {
    let Some(text) = env(variable) else { return Ok(None) };
    let number =
        text.parse().map_err(|_| Error::invalid("invalid_model", format!("{variable}: `{text}` is not a number")));
    number.map(Some)
}

/// `LUKASA_CONFIG`, else `lukasa/config.toml` where settings are kept.
fn read(env: &dyn Fn(&str) -> Option<String>) -> Result<Settings> {
    let named = env("LUKASA_CONFIG").map(PathBuf::from);
    let usual = || {
        let folder = env("XDG_CONFIG_HOME").map(PathBuf::from);
        let folder = folder.or_else(|| env("HOME").map(|home| Path::new(&home).join(".config")));
        folder.map(|folder| folder.join("lukasa").join("config.toml"))
    };
    let must_be = named.is_some();
    let Some(path) = named.or_else(usual) else { return Ok(Settings::default()) };
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound && !must_be => return Ok(Settings::default()),
        Err(e) => {
            return Err(Error::new(ErrorKind::Unavailable, "file_failure", format!("`{}`: {e}", path.display())));
        }
    };
    toml::from_str(&text).map_err(|e| {
        let line = e.span().map_or(1, |span| text[..span.start].matches('\n').count() + 1);
        // Not the line itself: there may be something on it that was not meant to be shown.
        Error::invalid("invalid_settings", format!("`{}`, line {line}: {}", path.display(), e.message()))
            .hint("docs/configuration.md lists the settings")
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test says what it expects by failing")]

    use super::*;

    fn of(variables: &[(&str, &str)]) -> Result<Option<Model>> {
        model_from(&|name| variables.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned()))
    }

    #[test]
    fn nothing_is_asked_unless_somebody_says_whom() {
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
    fn mistakes_are_told_without_what_may_be_a_key() {
        let url = ("LUKASA_MODEL_URL", "http://a/v1");
        let fault = |variables: &[(&str, &str)]| of(variables).map(|_| ()).unwrap_err();
        assert!(fault(&[url, ("LUKASA_MODEL_KEY_ENV", "UNSET")]).message.contains("`UNSET`"));
        assert!(!fault(&[url, ("LUKASA_MODEL_KEY_ENV", "sk-secret")]).message.contains("secret"));
        assert_eq!(fault(&[url, ("LUKASA_MODEL_PER_PASS", "many")]).code, "invalid_model");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.toml");
        std::fs::write(&path, "[model]\nkey = \"sk-secret\"\n").unwrap();
        let error = fault(&[("LUKASA_CONFIG", path.to_str().unwrap())]);
        assert!(error.code == "invalid_settings" && error.message.contains("line 2"), "{error}");
        assert!(!error.message.contains("sk-secret"), "{error}");
        assert_eq!(fault(&[("LUKASA_CONFIG", "/nowhere/at/all")]).code, "file_failure");
    }
}
