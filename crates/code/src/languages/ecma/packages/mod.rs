//! JavaScript and TypeScript modules: relative paths, `package.json` and `tsconfig.json`.

mod files;
mod manifests;
#[cfg(test)]
mod tests;

use crate::convert::to_u32;
use crate::facts::SourceImport;
use crate::languages::Imports;
use crate::resolve::imports::normalise;
use crate::resolve::program::{is_manifest, join};
use crate::resolve::{FileId, PossibleValue, Program, ProgramFile};
use files::{ROOT, VirtualFiles, above, upwards};
use manifests::{ManifestPackage, Manifests};
use oxc_resolver::{ResolveError, ResolveOptions, ResolverGeneric, TsConfig, TsconfigDiscovery};
use rustc_hash::FxHashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

/// Resolves imports to files. Without manifests only relative paths are resolved.
#[derive(Default)]
pub struct EcmaImports {
    workspace: Option<Workspace>,
}

/// Tried in this order after a path without an extension, and for a folder's `index`. Declarations are last, because
/// the code is preferred.
const EXTENSIONS: [&str; 11] = ["ts", "tsx", "mts", "cts", "js", "jsx", "mjs", "cjs", "d.ts", "d.mts", "d.cts"];

/// TypeScript imports name the compiled file; bundlers also produce `.mjs` and `.cjs` from `.ts`.
const WRITTEN_AS: [(&str, &[&str]); 4] = [
    (".js", &[".ts", ".tsx", ".js", ".jsx", ".mts", ".mjs", ".d.ts"]),
    (".jsx", &[".tsx", ".jsx", ".d.ts"]),
    (".mjs", &[".mts", ".mjs", ".ts", ".tsx", ".js", ".d.mts"]),
    (".cjs", &[".cts", ".cjs", ".ts", ".tsx", ".js", ".d.cts"]),
];

/// Fields of `package.json` that name its entry, the closest to the source first.
const ENTRY_FIELDS: [&str; 8] =
    ["source", "module", "jsnext:main", "main", "types", "typings", "browser", "react-native"];

/// Sets of conditions in `exports`, tried in order: ES modules, CommonJS, the rest.
const CONDITIONS: [&[&str]; 3] = [
    &["source", "import", "module", "node", "development"],
    &["source", "require", "node", "production"],
    &["types", "typings", "browser", "worker", "deno", "bun", "react-native", "svelte"],
];

impl EcmaImports {
    pub fn read(program: &Program, manifests: &[(String, String)]) -> EcmaImports {
        let known = |path: &str| {
            let name = path.rsplit('/').next().unwrap_or(path);
            name.ends_with(".json") && is_manifest(path)
        };
        if !manifests.iter().any(|(path, _)| known(path)) {
            return EcmaImports::default();
        }
        let paths: Vec<Arc<str>> = program
            .ids()
            .map(|id| program.file(id))
            .filter(|file| file.facts.language.family().name() == "javascript")
            .map(|file| file.path.clone())
            .collect();
        if paths.is_empty() {
            return EcmaImports::default();
        }
        let manifests = manifests.iter().filter(|(path, _)| known(path));
        EcmaImports { workspace: Some(Workspace::new(paths, Manifests::read(manifests))) }
    }

    fn file(&self, program: &Program, file: FileId, module: &str) -> Option<FileId> {
        let here = program.file(file);
        if is_relative(module) {
            let path = normalise(&join(&here.folder, module));
            let folder = module.ends_with('/') || matches!(module.rsplit('/').next(), Some("." | ".."));
            let found = if folder { index(program, &path) } else { at(program, &path) };
            if found.is_some() {
                return found;
            }
        }
        self.workspace.as_ref()?.resolve(program, here, module)
    }
}

impl Imports for EcmaImports {
    fn resolve(
        &self,
        program: &Program,
        file: FileId,
        import: &SourceImport,
        outside: &dyn Fn(&str) -> Option<PossibleValue>,
    ) -> Option<PossibleValue> {
        match self.file(program, file, &import.module) {
            Some(found) => Some(PossibleValue::Module(found)),
            None if import.module.starts_with('.') => None,
            None => outside(&import.module),
        }
    }
}

fn is_relative(module: &str) -> bool {
    module.starts_with("./") || module.starts_with("../") || module == "." || module == ".."
}

/// The file at a path: as it is, with an extension, or its `index`.
fn at(program: &Program, path: &str) -> Option<FileId> {
    if let Some(file) = program.find_file(path) {
        return Some(file);
    }
    for extension in EXTENSIONS {
        if let Some(file) = program.find_file(&format!("{path}.{extension}")) {
            return Some(file);
        }
    }
    for (written, meant) in WRITTEN_AS {
        if let Some(stem) = path.strip_suffix(written) {
            for extension in meant {
                if let Some(file) = program.find_file(&format!("{stem}{extension}")) {
                    return Some(file);
                }
            }
        }
    }
    index(program, path)
}

fn index(program: &Program, folder: &str) -> Option<FileId> {
    EXTENSIONS.iter().find_map(|extension| program.find_file(&join(folder, &format!("index.{extension}"))))
}

/// The content of all manifests, and a cache of resolved imports.
struct Workspace {
    /// One per set of conditions; they share a cache of the file system.
    resolvers: Vec<ResolverGeneric<VirtualFiles>>,
    files: VirtualFiles,
    packages: Vec<ManifestPackage>,
    /// Configurations with aliases for modules, by folder; `tsconfig.json` first.
    configs: FxHashMap<String, Vec<Arc<TsConfig>>>,
    /// Index of each configuration, for `Question`.
    numbers: FxHashMap<PathBuf, u32>,
    answers: RwLock<FxHashMap<Question, Option<FileId>>>,
}

/// The key of a cached answer. Files of one folder may belong to different configurations.
#[derive(PartialEq, Eq, Hash)]
struct Question {
    config: u32,
    folder: Arc<str>,
    module: String,
}

/// The importing file.
struct Asking<'a> {
    file: &'a ProgramFile,
    path: PathBuf,
    config: Option<&'a TsConfig>,
    /// Whether the lookup of its configuration succeeded, even if it found none.
    owned: bool,
}

impl Workspace {
    fn new(paths: Vec<Arc<str>>, manifests: Manifests) -> Workspace {
        let Manifests { packages, texts, conditions, links } = manifests;
        let configs: Vec<String> =
            texts.keys().filter(|path| !path.ends_with("package.json")).map(|path| path.to_string()).collect();
        let files = VirtualFiles::new(paths, texts, links, &packages);
        let first = ResolverGeneric::new_with_file_system(files.clone(), options(CONDITIONS[0], &conditions));
        let more: Vec<_> =
            CONDITIONS[1..].iter().map(|names| first.clone_with_options(options(names, &conditions))).collect();
        let mut workspace = Workspace {
            resolvers: std::iter::once(first).chain(more).collect(),
            files,
            packages,
            configs: FxHashMap::default(),
            numbers: FxHashMap::default(),
            answers: RwLock::default(),
        };
        workspace.read_configs(configs);
        workspace
    }

    fn read_configs(&mut self, mut paths: Vec<String>) {
        let usual = |path: &String| path.rsplit('/').next() == Some("tsconfig.json");
        paths.sort_by_cached_key(|path| (!usual(path), path.clone()));
        for (number, path) in paths.into_iter().enumerate() {
            let full = PathBuf::from(format!("{ROOT}{path}"));
            // Skips a malformed configuration: its error would fail every lookup below it.
            if let Ok(config) = self.resolvers[0].resolve_tsconfig(&full)
                && (config.compiler_options.paths.is_some() || config.compiler_options.base_url.is_some())
            {
                self.configs.entry(above(&path).to_owned()).or_default().push(config);
            }
            self.numbers.insert(full, to_u32(number) + 1);
        }
    }

    fn resolve(&self, program: &Program, here: &ProgramFile, module: &str) -> Option<FileId> {
        let schemes = ["node:", "data:", "file:", "bun:"];
        if module.is_empty() || module.contains("://") || schemes.iter().any(|scheme| module.starts_with(scheme)) {
            return None;
        }
        let path = PathBuf::from(format!("{ROOT}{}", here.path));
        let owner = self.resolvers[0].find_tsconfig(&path);
        let config = owner.as_ref().ok().and_then(Option::as_deref);
        if !self.possible(config, &here.folder, module) {
            return None;
        }
        let number = config.and_then(|config| self.numbers.get(config.path())).copied().unwrap_or_default();
        let question = Question { config: number, folder: here.folder.clone(), module: module.to_owned() };
        if let Some(answer) = self.answers.read().unwrap_or_else(PoisonError::into_inner).get(&question) {
            return *answer;
        }
        let from = Asking { file: here, owned: owner.is_ok(), config, path };
        let answer = self.ask(program, &from, module);
        self.answers.write().unwrap_or_else(PoisonError::into_inner).insert(question, answer);
        answer
    }

    /// Whether anything in the repository can match the module. Nearly all imports are of packages outside, so this
    /// check is fast.
    fn possible(&self, owner: Option<&TsConfig>, folder: &str, module: &str) -> bool {
        module.starts_with(['.', '#', '/'])
            || self.files.has_modules()
            || self.files.package(folder, package_name(module)).is_some()
            || owner.is_some_and(|config| self.names(config, module))
            || self.configs_above(folder).any(|config| self.names(config, module))
    }

    /// Whether a configuration maps the module to an existing path. A `baseUrl` alone maps every name to some path.
    fn names(&self, config: &TsConfig, module: &str) -> bool {
        config.resolve_path_alias_or_base_url(module).iter().any(|place| self.files.may_be(place))
    }

    fn ask(&self, program: &Program, from: &Asking, module: &str) -> Option<FileId> {
        let folder = &*from.file.folder;
        // Files without a configuration, such as tests that a build excludes, still use its aliases.
        let configs = || from.config.into_iter().chain(self.configs_above(folder));
        let named = configs().filter(|config| has_alias(config, module));
        if let Some(found) = self.placed(program, named, module) {
            return Some(found);
        }
        let package = self.files.package(folder, package_name(module)).map(|number| &self.packages[number]);
        for resolver in &self.resolvers {
            let answer = if from.owned {
                resolver.resolve_file(&from.path, module)
            } else {
                resolver.resolve(format!("{ROOT}{folder}"), module)
            };
            match answer {
                Ok(answer) => {
                    if let Some(found) = self.file(program, answer.path()) {
                        return Some(package.map_or(found, |package| entry(program, package, module, found)));
                    }
                }
                Err(ResolveError::Builtin { .. }) => return None,
                Err(_) => {}
            }
        }
        if is_relative(module) {
            return None;
        }
        let based = self.placed(program, self.configs_above(folder), module);
        based.or_else(|| source(program, package?, module))
    }

    /// The file at the path to which the configurations map a module.
    fn placed<'a>(
        &self,
        program: &Program,
        configs: impl Iterator<Item = &'a TsConfig>,
        module: &str,
    ) -> Option<FileId> {
        let mut places = configs.flat_map(|config| config.resolve_path_alias_or_base_url(module));
        places.find_map(|place| {
            let answer = self.resolvers[0].resolve(ROOT, place.to_str()?).ok()?;
            self.file(program, answer.path())
        })
    }

    fn file(&self, program: &Program, path: &Path) -> Option<FileId> {
        program.find_file(&self.files.real(path)?)
    }

    fn configs_above<'a>(&'a self, folder: &'a str) -> impl Iterator<Item = &'a TsConfig> {
        upwards(folder).filter_map(|folder| self.configs.get(folder)).flatten().map(|config| &**config)
    }
}

fn options(conditions: &[&str], more: &[String]) -> ResolveOptions {
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    ResolveOptions {
        tsconfig: Some(TsconfigDiscovery::Auto),
        condition_names: owned(conditions).into_iter().chain(more.iter().cloned()).collect(),
        extension_alias: WRITTEN_AS.iter().map(|(written, meant)| ((*written).to_owned(), owned(meant))).collect(),
        extensions: EXTENSIONS.iter().map(|extension| format!(".{extension}")).collect(),
        main_fields: owned(&ENTRY_FIELDS),
        builtin_modules: true,
        allow_package_exports_in_directory_resolve: true,
        // `Files` presents linked folders in place, and the resolver must not read the real file system.
        symlinks: false,
        node_path: false,
        ..ResolveOptions::default()
    }
}

/// Whether one of a configuration's `paths` matches the module.
fn has_alias(config: &TsConfig, module: &str) -> bool {
    let mut names = config.compiler_options.paths.iter().flat_map(|paths| paths.keys());
    !module.starts_with('.')
        && names.any(|name| match name.split_once('*') {
            Some((start, end)) => module.strip_prefix(start).is_some_and(|rest| rest.ends_with(end)),
            None => name == module,
        })
}

/// The package a bare module belongs to: `a` of `a/b`, `@a/b` of `@a/b/c`.
pub(super) fn package_name(module: &str) -> &str {
    let parts = if module.starts_with('@') { 2 } else { 1 };
    module.match_indices('/').nth(parts - 1).map_or(module, |(end, _)| &module[..end])
}

/// The resolver falls back to the package's `index` if the entry in the manifest is missing; then the source is
/// preferred.
fn entry(program: &Program, package: &ManifestPackage, module: &str, found: FileId) -> FileId {
    let is_index = |path: &str| path.split('.').next() == Some("index");
    let inside = |path: &str| path.strip_prefix(&*package.folder).map(|rest| rest.trim_start_matches('/').to_owned());
    let fallen_back = package_name(module) == module
        && inside(&program.file(found).path).is_some_and(|path| is_index(&path))
        && !package.entries.is_empty()
        && !package.entries.iter().any(|entry| entry.is_empty() || is_index(entry));
    if fallen_back { index(program, &join(&package.folder, "src")).unwrap_or(found) } else { found }
}

/// The likely source of a package whose manifest names only build output.
fn source(program: &Program, package: &ManifestPackage, module: &str) -> Option<FileId> {
    let src = join(&package.folder, "src");
    let inside = module[package_name(module).len()..].trim_matches('/');
    if !inside.is_empty() {
        let built = inside.split_once('/').filter(|(first, _)| files::is_output(first)).map(|(_, rest)| rest);
        return at(program, &join(&src, inside))
            .or_else(|| at(program, &join(&package.folder, inside)))
            .or_else(|| at(program, &join(&src, built?)));
    }
    let named = package.entries.iter().filter_map(|entry| entry.split_once('/'));
    named
        .filter_map(|(_, rest)| at(program, &join(&src, rest)))
        .next()
        .or_else(|| index(program, &src))
        .or_else(|| index(program, &package.folder))
}
