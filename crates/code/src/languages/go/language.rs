//! Go as a language: its names, rules and imports.

use super::build;
use super::builtins::NAMES;
use crate::build::{Build, Constraint};
use crate::facts::{FileFacts, SourceImport};
use crate::languages::rules::{BuiltinCall, Constructs, LanguageRules, Modules};
use crate::languages::{Imports, Language, OutsideModule, OwnParser, SourceFile};
use crate::resolve::{FileId, PossibleValue, Program};

pub(crate) struct Go;

static PARSER: OwnParser = OwnParser { parse: |text, _| super::parse(text), facts: super::read };

static RULES: LanguageRules = LanguageRules {
    modules: Modules::Folders,
    builtins: NAMES,
    methods_outside_types: true,
    structural_interfaces: true,
    only_interfaces_inherit: true,
    constructs: Constructs::Nothing,
    ..LanguageRules::DEFAULT
};

impl Language for Go {
    fn name(&self) -> &'static str {
        "go"
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["go"]
    }

    fn package_managers(&self) -> &'static [&'static str] {
        &["gomod"]
    }

    fn outside_module(&self, package: &str, spaces: &[&str]) -> OutsideModule {
        let package = if spaces.is_empty() { package.to_owned() } else { spaces.join("/") };
        OutsideModule { builtin: package == "builtin", package, names: vec![] }
    }

    fn grammar(&self) -> tree_sitter::Language {
        tree_sitter_go::LANGUAGE.into()
    }

    fn read(&self, source: SourceFile<'_>) -> FileFacts {
        PARSER.read(source)
    }

    fn own_parser(&self) -> Option<&'static OwnParser> {
        Some(&PARSER)
    }

    fn rules(&self) -> &'static LanguageRules {
        &RULES
    }

    fn builtin_call(&self, name: &str) -> Option<BuiltinCall> {
        Some(match name {
            "copy" => BuiltinCall::Argument,
            "max" | "min" => BuiltinCall::Element,
            "int" | "len" | "bool" => BuiltinCall::Number,
            _ => return None,
        })
    }

    fn usual_build(&self) -> &'static dyn Build {
        &*build::DEFAULT
    }

    fn nearest_build(&self, constraint: &Constraint) -> Option<Box<dyn Build>> {
        Some(Box::new(build::nearest(constraint)?))
    }

    fn is_manifest(&self, name: &str) -> bool {
        name == "go.mod"
    }

    fn imports(&self, _program: &Program, manifests: &[(String, String)]) -> Box<dyn Imports> {
        Box::new(GoImports::read(manifests))
    }
}

struct GoImports {
    /// Paths of modules with their folders, the longest path first.
    modules: Vec<(String, String)>,
}

impl GoImports {
    fn read(manifests: &[(String, String)]) -> GoImports {
        let mut modules = Vec::new();
        for (path, text) in manifests {
            let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
            if name != "go.mod" {
                continue;
            }
            if let Some(module) = text.lines().find_map(|line| line.trim().strip_prefix("module ")) {
                let module = module.split("//").next().unwrap_or(module).trim().trim_matches('"');
                modules.push((module.to_owned(), folder.to_owned()));
            }
        }
        modules.sort_by_key(|(path, _)| std::cmp::Reverse(path.len()));
        GoImports { modules }
    }

    fn folder(&self, program: &Program, path: &str) -> Option<PossibleValue> {
        for (module, folder) in &self.modules {
            let inside = if path == module {
                Some("")
            } else {
                path.strip_prefix(module.as_str()).and_then(|rest| rest.strip_prefix('/'))
            };
            if let Some(inside) = inside {
                let folder = match (folder.as_str(), inside) {
                    ("", inside) => inside.to_owned(),
                    (folder, "") => folder.to_owned(),
                    (folder, inside) => format!("{folder}/{inside}"),
                };
                return program.find_folder(&folder).map(PossibleValue::Folder);
            }
        }
        if self.modules.is_empty() {
            // Without a `go.mod`: the only folder whose path ends with the import path.
            let mut found = program.folders().filter(|(id, folder)| {
                !program.folder_files(*id).is_empty()
                    && (***folder == *path || folder.strip_suffix(path).is_some_and(|b| b.ends_with('/')))
            });
            if let (Some((id, _)), None) = (found.next(), found.next()) {
                return Some(PossibleValue::Folder(id));
            }
        }
        None
    }
}

impl Imports for GoImports {
    fn resolve(
        &self,
        program: &Program,
        _file: FileId,
        import: &SourceImport,
        outside: &dyn Fn(&str) -> Option<PossibleValue>,
    ) -> Option<PossibleValue> {
        self.folder(program, &import.module).or_else(|| outside(&import.module))
    }
}
