//! Reads `package.json`, `tsconfig.json` and `jsconfig.json` and prepares them for the resolver.

use super::files::{ROOT, above, upwards};
use super::{CONDITIONS, ENTRY_FIELDS, package_name};
use crate::resolve::imports::normalise;
use crate::resolve::program::join;
use oxc_resolver::{ExtendsField, TsConfig};
use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// A folder with a `package.json`.
pub struct ManifestPackage {
    pub folder: String,
    pub name: Option<String>,
    /// Paths of its entries according to the manifest, without a leading `./`.
    pub entries: Vec<String>,
}

/// Packages of the repository by name, then by the folder below which the name refers to that package.
pub type PackageLinks = FxHashMap<String, FxHashMap<String, PackageLink>>;

/// The package that a name refers to in a folder.
pub struct PackageLink {
    pub package: usize,
    pub folder: String,
}

/// The manifests of a repository.
#[derive(Default)]
pub struct Manifests {
    pub packages: Vec<ManifestPackage>,
    /// Contents as the resolver sees them; malformed manifests are missing.
    pub texts: FxHashMap<String, String>,
    /// Conditions of `exports` that lead to source and that only this repository uses.
    pub conditions: Vec<String>,
    pub links: PackageLinks,
}

/// Folders with samples: their packages are not imported from elsewhere.
const SAMPLES: [&str; 14] = [
    "test",
    "tests",
    "__tests__",
    "fixture",
    "fixtures",
    "__fixtures__",
    "testdata",
    "__mocks__",
    "mocks",
    "example",
    "examples",
    "template",
    "templates",
    "demo",
];

const DEPENDENCIES: [&str; 4] = ["dependencies", "devDependencies", "peerDependencies", "optionalDependencies"];

impl Manifests {
    pub fn read<'a>(manifests: impl Iterator<Item = &'a (String, String)>) -> Manifests {
        let mut all = Manifests::default();
        let mut configs: FxHashMap<&str, &str> = FxHashMap::default();
        // Names of packages from a registry.
        let mut outside: FxHashSet<String> = FxHashSet::default();
        for (path, text) in manifests {
            if path.rsplit('/').next() == Some("package.json") {
                all.read_package(path, text, &mut outside);
            } else {
                configs.insert(path, text);
            }
        }
        all.link(&outside);
        for (path, text) in &configs {
            let Some(text) = all.config(path, text, &configs) else { continue };
            // The resolver only looks for `tsconfig.json`.
            if path.ends_with("jsconfig.json") {
                let usual = join(above(path), "tsconfig.json");
                if !configs.contains_key(usual.as_str()) {
                    all.texts.insert(usual, text.clone());
                }
            }
            all.texts.insert((*path).to_owned(), text);
        }
        all
    }

    fn read_package(&mut self, path: &str, text: &str, outside: &mut FxHashSet<String>) {
        let text = text.trim_start_matches('\u{feff}');
        let Ok(Value::Object(fields)) = serde_json::from_str::<Value>(text) else { return };
        let folder = above(path);
        if sample(folder).is_none() {
            for (name, range) in DEPENDENCIES.iter().filter_map(|kind| fields.get(*kind)?.as_object()).flatten() {
                let range = range.as_str().unwrap_or("*");
                if range != "*" && !["workspace:", "file:", "link:", "portal:"].iter().any(|k| range.starts_with(k)) {
                    outside.insert(name.clone());
                }
            }
        }
        if let Some(exports) = fields.get("exports") {
            self.read_conditions(exports);
        }
        let mut entries: Vec<String> = Vec::new();
        let texts = ENTRY_FIELDS.iter().filter_map(|field| fields.get(*field)?.as_str());
        entries.extend(texts.map(normalise));
        if let Some(exports) = fields.get("exports") {
            leaves(exports.get(".").unwrap_or(exports), &mut entries);
        }
        let name = fields.get("name").and_then(Value::as_str).filter(|name| !name.is_empty()).map(str::to_owned);
        self.packages.push(ManifestPackage { folder: folder.to_owned(), name, entries });
        self.texts.insert(path.to_owned(), text.to_owned());
    }

    /// Collects conditions that lead to TypeScript. They are specific to the repository, because no runtime uses them.
    fn read_conditions(&mut self, exports: &Value) {
        match exports {
            Value::Object(fields) => {
                for (key, value) in fields {
                    let source = value.as_str().is_some_and(|path| {
                        (path.ends_with(".ts") || path.ends_with(".tsx")) && !path.ends_with(".d.ts")
                    });
                    let known =
                        key.starts_with('.') || key == "default" || CONDITIONS.iter().any(|c| c.contains(&&**key));
                    if source && !known && !self.conditions.contains(key) {
                        self.conditions.push(key.clone());
                    }
                    self.read_conditions(value);
                }
            }
            Value::Array(values) => values.iter().for_each(|value| self.read_conditions(value)),
            _ => {}
        }
    }

    /// Makes every named package importable from anywhere. Of several with one name, the one with the nearest common
    /// parent package applies.
    fn link(&mut self, outside: &FxHashSet<String>) {
        let folders: FxHashSet<&str> = self.packages.iter().map(|package| &*package.folder).collect();
        let mut named: FxHashMap<&str, u32> = FxHashMap::default();
        for name in self.packages.iter().filter_map(|package| package.name.as_deref()) {
            *named.entry(name).or_default() += 1;
        }
        // The preferred one is inserted first and not replaced.
        let mut order: Vec<usize> = (0..self.packages.len()).collect();
        order.sort_by_key(|number| {
            let folder = &self.packages[*number].folder;
            (sample(folder).is_some(), folder.matches('/').count(), folder)
        });
        for package in order {
            let ManifestPackage { folder, name: Some(name), .. } = &self.packages[package] else { continue };
            if folder.split('/').any(|part| part == "node_modules") {
                continue;
            }
            let by_folder = self.links.entry(name.clone()).or_default();
            // A sample with the name of a real dependency replaces it only within the samples.
            let end = sample(folder).filter(|_| outside.contains(name));
            for above in upwards(folder) {
                let last = end == Some(above);
                // Only necessary links, because the resolver tries many paths in each folder with links.
                if above.is_empty() || last || (named[name.as_str()] > 1 && folders.contains(above)) {
                    let link = || PackageLink { package, folder: folder.clone() };
                    by_folder.entry(above.to_owned()).or_insert_with(link);
                }
                if last {
                    break;
                }
            }
        }
    }

    /// A configuration reduced to the settings that name modules. Its `extends` is resolved here, because the resolver
    /// would reject a configuration that extends one outside the repository.
    fn config(&self, path: &str, text: &str, configs: &FxHashMap<&str, &str>) -> Option<String> {
        let full = PathBuf::from(format!("{ROOT}{path}"));
        let config = TsConfig::parse(true, &full, &full, text.to_owned()).ok()?;
        let folder = above(path);
        let found = |to: &str| {
            let places = [to.to_owned(), format!("{to}.json"), join(to, "tsconfig.json")];
            places.into_iter().find(|place| configs.contains_key(place.as_str()) && place != path)
        };
        let extends: Vec<String> = match &config.extends {
            Some(ExtendsField::Single(one)) => vec![one.clone()],
            Some(ExtendsField::Multiple(many)) => many.clone(),
            None => vec![],
        };
        let extends = extends.iter().filter_map(|to| {
            if to.starts_with('.') {
                return found(&normalise(&join(folder, to)));
            }
            let name = package_name(to);
            let by_folder = self.links.get(name)?;
            let link = upwards(folder).find_map(|folder| by_folder.get(folder))?;
            found(&normalise(&join(&link.folder, &to[name.len()..])))
        });
        let references = config.references.iter().filter_map(|to| found(&normalise(&join(folder, to.path.to_str()?))));
        let options = &config.compiler_options;
        let text = json!({
            "extends": extends.map(|to| format!("{ROOT}{to}")).collect::<Vec<_>>(),
            "files": config.files,
            "include": config.include,
            "exclude": config.exclude,
            "compilerOptions": {
                "baseUrl": options.base_url,
                "paths": options.paths,
                "rootDirs": options.root_dirs,
                // Always set: JavaScript beside TypeScript uses the same aliases.
                "allowJs": true,
            },
            "references": references.map(|to| json!({ "path": Path::new(ROOT).join(to) })).collect::<Vec<_>>(),
        });
        Some(text.to_string())
    }
}

/// The outermost folder of samples that contains a folder, or is it.
fn sample(folder: &str) -> Option<&str> {
    let mut end = 0;
    for part in folder.split('/') {
        end += part.len();
        if SAMPLES.contains(&part) {
            return Some(&folder[..end]);
        }
        end += 1;
    }
    None
}

/// All paths of an entry of `exports`.
fn leaves(value: &Value, into: &mut Vec<String>) {
    match value {
        Value::String(path) => into.push(normalise(path)),
        Value::Array(values) => values.iter().for_each(|value| leaves(value, into)),
        Value::Object(fields) => {
            fields.iter().filter(|(key, _)| !key.starts_with('.')).for_each(|(_, value)| leaves(value, into));
        }
        _ => {}
    }
}
