//! The docs are correct: links, paths and items exist, words of the glossary are used, error codes, metrics, events and
//! scopes are listed. `cli/documented.rs` tests that their commands parse.

#![allow(clippy::unwrap_used, reason = "a test says what it expects by failing")]

use lukasa_model::ErrorCode;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn files(folder: &Path, ending: &str, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()) {
        let name = entry.file_name().unwrap().to_string_lossy().into_owned();
        if entry.is_dir() && !name.starts_with('.') && name != "target" {
            files(&entry, ending, found);
        } else if name.ends_with(ending) {
            found.push(entry);
        }
    }
}

/// All pages, except what tests of parsers read.
fn pages() -> Vec<PathBuf> {
    let mut pages = Vec::new();
    files(&root(), ".md", &mut pages);
    pages.retain(|page| !page.strip_prefix(root()).unwrap().starts_with("crates"));
    assert!(pages.len() > 20);
    pages
}

fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

/// Lines of a page outside of its code blocks.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut in_block = false;
    text.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        in_block ^= is_fence;
        !in_block && !is_fence
    })
}

/// The ids of a page's headings, as GitHub makes them.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = prose(text).filter_map(|line| line.strip_prefix('#'));
    let id = |heading: &str| -> String {
        let heading = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    headings.map(id).collect()
}

/// The targets of a text's links.
fn links(text: &str) -> impl Iterator<Item = &str> {
    text.split("](").skip(1).filter_map(|rest| rest.split(')').next())
}

/// Why a link of a page leads nowhere.
fn broken(page: &Path, link: &str) -> Option<String> {
    if link.contains("://") {
        return None;
    }
    let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
    let target = if path.is_empty() { page.to_owned() } else { page.parent().unwrap().join(path) };
    if !target.exists() {
        return Some(format!("{}: `{link}` does not exist", shown(page)));
    }
    let is_missing = || !anchors(&std::fs::read_to_string(&target).unwrap()).contains(anchor);
    (!anchor.is_empty() && is_missing()).then(|| format!("{}: `{link}` has no such heading", shown(page)))
}

#[test]
fn links_lead_to_files_and_headings() {
    let mut wrong = Vec::new();
    for page in pages() {
        let text = std::fs::read_to_string(&page).unwrap();
        wrong.extend(links(&text).filter_map(|link| broken(&page, link)));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn wrong_links_are_found() {
    let page = root().join("docs/facts.md");
    assert_eq!(broken(&page, "graph.md#names"), None);
    assert_eq!(broken(&page, "#two-times"), None);
    assert!(broken(&page, "nowhere.md").is_some());
    assert!(broken(&page, "graph.md#no-such-heading").is_some());
}

/// The texts between backticks of a line.
fn quoted(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// `a/{b,c}` as `a/b` and `a/c`.
fn alternatives(path: &str) -> Vec<String> {
    let parts = path.split_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?)));
    match parts {
        Some((before, (names, after))) => names.split(',').map(|name| format!("{before}{name}{after}")).collect(),
        None => vec![path.to_owned()],
    }
}

/// Whether one name of a path fits: `<name>` and `*` stand for any text.
fn fits(pattern: &str, name: &str) -> bool {
    let (from, to) = if let Some(star) = pattern.find('*') {
        (star, star + 1)
    } else if let (Some(open), Some(close)) = (pattern.find('<'), pattern.find('>')) {
        (open, close + 1)
    } else {
        return pattern == name;
    };
    let (before, after) = (&pattern[..from], &pattern[to..]);
    name.len() >= before.len() + after.len() && name.starts_with(before) && name.ends_with(after)
}

/// The first file or folder below a folder that a path stands for.
fn resolve(folder: &Path, path: &str) -> Option<PathBuf> {
    let (first, rest) = path.split_once('/').unwrap_or((path, ""));
    if first.is_empty() {
        return Some(folder.to_owned());
    }
    if !first.contains(['*', '<']) {
        let next = folder.join(first);
        return if next.exists() { resolve(&next, rest) } else { None };
    }
    let mut entries: Vec<PathBuf> = std::fs::read_dir(folder).ok()?.map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    let mut fitting = entries.into_iter().filter(|entry| fits(first, &entry.file_name().unwrap().to_string_lossy()));
    fitting.find_map(|entry| resolve(&entry, rest))
}

/// Paths of the table "Where do I find …?" that do not exist. Each begins in `crates/` or in the root, or is relative
/// to an earlier path of its cell or a folder above it.
fn missing_in_table(table: &str) -> Vec<String> {
    let mut missing = Vec::new();
    for cell in table.lines().filter_map(|row| row.strip_prefix('|')?.split('|').nth(1)) {
        let mut bases = vec![root().join("crates"), root()];
        for path in quoted(cell).filter(|text| is_path(text)).flat_map(alternatives) {
            let Some(found) = bases.iter().rev().find_map(|base| resolve(base, &path)) else {
                missing.push(path);
                continue;
            };
            let above: Vec<_> = found.ancestors().take_while(|folder| **folder != root()).map(Path::to_owned).collect();
            bases.extend(above.into_iter().rev().filter(|folder| folder.is_dir()));
        }
    }
    missing
}

/// Whether a quoted text is the path of a source, and not a name, a setting or a route.
fn is_path(text: &str) -> bool {
    let is_source = [".rs", ".md", ".json", ".scm", ".sql", ".toml", "/"].iter().any(|ending| text.ends_with(ending));
    is_source && !text.starts_with('/') && !text.contains([' ', '~', ':', '$', '(', '"'])
}

#[test]
fn paths_in_architecture_exist() {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let table = text.split("\n## Where do I find").nth(1).unwrap().split("\n## ").next().unwrap();
    assert!(table.lines().count() > 100);
    let missing = missing_in_table(table);
    assert!(missing.is_empty(), "ARCHITECTURE.md, \"Where do I find …?\": {missing:#?}");
    assert_eq!(missing_in_table("| a | `model/src/plan.rs`, `nowhere.rs` |"), ["nowhere.rs"]);

    // In sentences a path may begin anywhere.
    let mut all = Vec::new();
    for folder in ["crates", "docs", "packs", "models", "evals"] {
        files(&root().join(folder), "", &mut all);
    }
    let all: Vec<Vec<String>> = all.iter().map(|file| shown(file).split('/').map(String::from).collect()).collect();
    let exists = |path: &str| {
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        all.iter()
            .any(|file| file.windows(parts.len()).any(|at| parts.iter().zip(at).all(|(part, name)| fits(part, name))))
    };
    let named = prose(&text).flat_map(quoted).filter(|text| is_path(text)).flat_map(alternatives);
    let missing: Vec<String> = named.filter(|path| !exists(path) && resolve(&root(), path).is_none()).collect();
    assert!(missing.is_empty(), "ARCHITECTURE.md: {missing:#?}");
}

/// Whether a quoted text is the name of an item in the code: `Snapshot`, `Ledger::commit`, `next_version`.
fn is_item(text: &str) -> bool {
    let is_name = |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let is_type = |part: &str| part.starts_with(|c: char| c.is_ascii_uppercase()) && part.contains(char::is_lowercase);
    text.split("::").all(is_name) && (text.contains("::") || is_type(text) || text.contains('_'))
}

#[test]
fn items_in_architecture_exist() {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let mut sources = Vec::new();
    files(&root().join("crates"), ".rs", &mut sources);
    let code: String = sources.iter().map(|file| std::fs::read_to_string(file).unwrap()).collect();
    let known: BTreeSet<&str> = code.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
    let named: BTreeSet<&str> = prose(&text).flat_map(quoted).filter(|text| is_item(text)).collect();
    assert!(named.len() > 40);
    let missing: Vec<_> = named.iter().filter(|name| !name.split("::").all(|part| known.contains(part))).collect();
    assert!(missing.is_empty(), "ARCHITECTURE.md names what the code does not have: {missing:?}");
}

#[test]
fn paths_in_pages_exist() {
    let of_root = ["crates", "docs", "evals", "models", "packs", "tests/clients", "tools", ".ci", ".cargo"];
    let of_crates = ["model", "store", "graph", "search", "code", "engine", "server", "lukasa", "testkit"];
    let of_crates =
        of_crates.map(|name| [format!("{name}/src"), format!("{name}/tests"), format!("{name}/migrations")]);
    let begins = |path: &str, start: &str| path.strip_prefix(start).is_some_and(|rest| rest.starts_with('/'));
    let mut missing = Vec::new();
    let mut count = 0;
    for page in pages() {
        let text = std::fs::read_to_string(&page).unwrap();
        for path in prose(&text).flat_map(quoted).filter(|text| !text.contains(' ')).flat_map(alternatives) {
            let found = if of_root.iter().any(|start| begins(&path, start)) {
                resolve(&root(), &path)
            } else if of_crates.iter().flatten().any(|start| begins(&path, start)) {
                resolve(&root().join("crates"), &path)
            } else {
                continue;
            };
            count += 1;
            if found.is_none() {
                missing.push(format!("{}: `{path}`", shown(&page)));
            }
        }
    }
    assert!(count > 50, "only {count} paths were found");
    assert!(missing.is_empty(), "{missing:#?}");
}

/// The words of a text, in lower case and with one space around each.
fn words(text: &str) -> String {
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty());
    words.fold(String::from(" "), |all, word| all + &word.to_lowercase() + " ")
}

#[test]
fn every_word_of_the_glossary_is_used() {
    let glossary = root().join("docs/glossary.md");
    let text = std::fs::read_to_string(&glossary).unwrap();
    let mut all = pages();
    all.retain(|page| *page != glossary);
    let mut crates = Vec::new();
    files(&root().join("crates"), ".rs", &mut crates);
    crates.retain(|file| file.components().any(|part| part.as_os_str() == "src"));
    all.extend(crates);
    let texts: String = all.iter().map(|file| words(&std::fs::read_to_string(file).unwrap())).collect();
    let rows = text.lines().filter_map(|line| line.strip_prefix("| ")?.split(" |").next());
    let defined: Vec<&str> = rows.filter(|word| *word != "word").collect();
    assert!(defined.len() > 60);
    let is_used = |word: &str| {
        let word = words(word);
        let word = word.trim();
        let forms = [format!(" {word} "), format!(" {word}s "), format!(" {}ies ", word.trim_end_matches('y'))];
        forms.iter().any(|form| texts.contains(form))
    };
    let unused: Vec<_> = defined.iter().filter(|word| !is_used(word)).collect();
    assert!(unused.is_empty(), "only docs/glossary.md uses {unused:?}");
    let mut unique = defined.clone();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(unique.len(), defined.len(), "docs/glossary.md defines a word twice");
}

/// Names that every module may have.
const COMMON_NAMES: [&str; 7] = ["Error", "Meta", "OwnerInfo", "Request", "Response", "Result", "StoreLocation"];

/// Lines of a source without the items that only tests have, and the modules in files of their own that only tests
/// have.
fn without_tests(text: &str) -> (Vec<&str>, Vec<String>) {
    let (mut kept, mut modules) = (Vec::new(), Vec::new());
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let indent = &line[..line.len() - line.trim_start().len()];
        let attribute = line.trim_start();
        if !attribute.starts_with("#[cfg(test)]") && !attribute.starts_with("#[cfg(all(test") {
            kept.push(line);
            continue;
        }
        let mut item = lines.next().unwrap_or_default();
        while item.trim_start().starts_with("#[") {
            item = lines.next().unwrap_or_default();
        }
        if let Some(name) = item.trim_end().strip_suffix(';').and_then(|item| item.split_once("mod ")) {
            modules.push(name.1.to_owned());
        } else if item.trim_end().ends_with('{') {
            // rustfmt puts the end of an item where the item begins.
            let end = format!("{indent}}}");
            lines.by_ref().find(|line| line.trim_end() == end);
        }
    }
    (kept, modules)
}

/// The name of a type that a line defines for more than its own module.
fn public_type(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("pub")?;
    let rest = rest.strip_prefix('(').map_or(Some(rest), |rest| Some(rest.split_once(')')?.1))?.strip_prefix(' ')?;
    let rest = rest.strip_prefix("unsafe ").unwrap_or(rest);
    let kinds = ["struct ", "enum ", "trait ", "type ", "union "];
    let name = kinds.iter().find_map(|kind| rest.strip_prefix(kind))?;
    name.split(|c: char| !c.is_alphanumeric() && c != '_').next().filter(|name| !name.is_empty())
}

/// Public types of the product by their names, with the files that define them. Test code does not count, and neither
/// does `testkit`, which is test code as a whole.
fn public_types() -> BTreeMap<String, Vec<String>> {
    let mut sources = Vec::new();
    files(&root().join("crates"), ".rs", &mut sources);
    sources.retain(|file| {
        let path = file.strip_prefix(root().join("crates")).unwrap();
        path.components().nth(1).is_some_and(|part| part.as_os_str() == "src") && !path.starts_with("testkit")
    });
    let texts: Vec<(PathBuf, String)> =
        sources.into_iter().map(|file| (file.clone(), std::fs::read_to_string(file).unwrap())).collect();
    let mut of_tests = Vec::new();
    for (file, text) in &texts {
        let is_root = matches!(file.file_name().unwrap().to_str(), Some("mod.rs" | "lib.rs" | "main.rs"));
        let folder = if is_root { file.parent().unwrap().to_owned() } else { file.with_extension("") };
        of_tests.extend(without_tests(text).1.into_iter().map(|name| folder.join(name)));
    }
    let mut types: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (file, text) in &texts {
        if of_tests.iter().any(|module| file.starts_with(module) || *file == module.with_extension("rs")) {
            continue;
        }
        for name in without_tests(text).0.into_iter().filter_map(public_type) {
            types.entry(name.to_owned()).or_default().push(shown(file));
        }
    }
    types
}

#[test]
fn public_type_names_are_unique() {
    let mut types = public_types();
    assert!(types.len() > 500, "only {} types were found", types.len());
    types.retain(|name, files| files.len() > 1 && !COMMON_NAMES.contains(&name.as_str()));
    let list: Vec<String> = types.iter().map(|(name, files)| format!("{name}: {}", files.join(", "))).collect();
    assert!(list.is_empty(), "{} names are defined more than once:\n{}", list.len(), list.join("\n"));
}

#[test]
fn public_types_are_read_without_tests() {
    let text = "pub struct A<T>(T);\n    pub(crate) enum B {\npub(in a::b) type C = u8;\nstruct D;\n#[cfg(test)]\nmod x {\n    \
                pub struct E;\n}\npub unsafe trait F {}\n#[cfg(all(test, unix))]\n#[path = \"y\"]\nmod tests;\n";
    let (kept, modules) = without_tests(text);
    assert_eq!(kept.into_iter().filter_map(public_type).collect::<Vec<_>>(), ["A", "B", "C", "F"]);
    assert_eq!(modules, ["tests"]);
}

#[test]
fn every_error_code_is_listed_and_no_other() {
    let text = std::fs::read_to_string(root().join("docs/errors.md")).unwrap();
    let rows = text.lines().filter_map(|line| line.split('|').nth(3)).filter(|codes| codes.contains(", "));
    let words = rows.flat_map(|row| row.split(|c: char| !(c.is_ascii_lowercase() || c == '_')));
    let listed: BTreeSet<&str> =
        words.filter(|word| ErrorCode::from_name(word).is_some() || word.contains('_')).collect();
    let codes: BTreeSet<&str> = ErrorCode::ALL.iter().map(|code| code.name()).collect();
    let missing: Vec<_> = codes.difference(&listed).collect();
    assert!(missing.is_empty(), "docs/errors.md does not list {missing:?}");
    let unknown: Vec<_> = listed.difference(&codes).filter(|word| **word != "retry_after").collect();
    assert!(unknown.is_empty(), "docs/errors.md lists {unknown:?}, which no error has");
}

/// Names in the first column of the table under a heading.
fn listed(page: &str, heading: &str) -> Vec<String> {
    let text = std::fs::read_to_string(root().join("docs").join(page)).unwrap();
    let part =
        text.split(&format!("\n## {heading}\n")).nth(1).unwrap_or_else(|| panic!("{page} has no part {heading}"));
    let part = part.split("\n## ").next().unwrap();
    part.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next().map(String::from)).collect()
}

#[test]
fn every_metric_is_listed_and_no_other() {
    let all: Vec<_> = lukasa_engine::telemetry::metrics().all().iter().map(|metric| metric.name.to_string()).collect();
    assert!(all.len() > 40);
    assert_eq!(listed("telemetry.md", "Which metrics are there?"), all);
    let text = lukasa_engine::telemetry::metrics().text(None);
    for name in all {
        assert!(text.contains(&format!("# TYPE {name} ")), "{name}");
    }
}

#[test]
fn every_event_is_listed_and_no_other() {
    let mut sources = Vec::new();
    for crate_name in ["engine", "server", "lukasa"] {
        files(&root().join("crates").join(crate_name).join("src"), ".rs", &mut sources);
    }
    let mut logged = BTreeSet::new();
    for source in sources {
        let text = std::fs::read_to_string(source).unwrap();
        for rest in text.split("log::event(").skip(1) {
            // The first literal of the call is the name of the event.
            logged.insert(rest.split('"').nth(1).unwrap().to_string());
        }
    }
    assert_eq!(listed("telemetry.md", "What is logged?").into_iter().collect::<BTreeSet<_>>(), logged);
}

#[test]
fn every_scope_is_listed() {
    let listed: BTreeSet<String> = listed("access.md", "What are scopes?").into_iter().collect();
    for operation in lukasa_engine::operations() {
        assert!(listed.contains(operation.meta.scope), "docs/access.md does not list `{}`", operation.meta.scope);
    }
    // Scopes that operations check themselves.
    for scope in ["graph:sensitive:read", "graph:search:citations", "graph:admin:metrics", "graph:admin:cross-project"]
    {
        assert!(listed.contains(scope), "docs/access.md does not list `{scope}`");
    }
}
