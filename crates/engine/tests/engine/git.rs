//! Reading repositories of every layout, made here without the `git` program.

use crate::made::Made;
use gix::ObjectId;
use gix::objs::tree::EntryKind;
use lukasa_engine::features::code::git::{ChangedFile, GitHead, Repository, TreeEntry, blob_id};
use lukasa_model::{Error, ErrorCode, ErrorKind};
use std::fs;
use std::path::Path;

const EMPTY_BLOB: &str = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391";

impl Made {
    /// One commit of one file.
    fn plain(&self, branch: &str, n: u32, parents: &[ObjectId]) -> ObjectId {
        self.commit(branch, n, parents, &[("a", EntryKind::Blob, &n.to_string())])
    }

    fn open(&self) -> Repository {
        open(&self.root)
    }
}

fn open(path: &Path) -> Repository {
    Repository::discover(path).unwrap().unwrap()
}

fn refused(path: &Path) -> Error {
    Repository::discover(path).err().unwrap()
}

fn hex(id: &[u8; 20]) -> String {
    ObjectId::Sha1(*id).to_string()
}

fn head(branch: Option<&str>, commit: Option<ObjectId>) -> GitHead {
    GitHead { branch: branch.map(str::to_owned), commit: commit.map(|id| id.to_string()) }
}

#[test]
fn contents_have_the_ids_git_gives() {
    assert_eq!(hex(&blob_id(b"")), EMPTY_BLOB);
    assert_eq!(hex(&blob_id(b"what is up, doc?")), "bd9dbf5aae1a3862dd1526723246b20206e5fc37");
    assert_eq!(hex(&blob_id(b"test content\n")), "d670460b4b4aece5915caf5c68d12f560a9fe3e4");
}

#[test]
fn a_folder_is_in_a_repository_or_in_none() {
    let folder = tempfile::tempdir().unwrap();
    assert!(Repository::discover(folder.path()).unwrap().is_none());
    assert_eq!(refused(&folder.path().join("gone")).code, ErrorCode::NotAFolder);

    let made = Made::new();
    fs::create_dir_all(made.root.join("deep/down")).unwrap();
    let repository = open(&made.root.join("deep/down"));
    assert_eq!(repository.work_dir(), Some(made.root.as_path()));
    assert_eq!(repository.common_dir(), made.root.join(".git"));
    assert!(!repository.is_worktree());

    fs::write(made.root.join("deep/.git"), "gitdir: ../.git/modules/gone\n").unwrap();
    let error = refused(&made.root.join("deep/down"));
    assert_eq!((error.kind, error.code), (ErrorKind::Unavailable, ErrorCode::UnreadableRepository));
}

#[test]
fn before_the_first_commit_there_is_a_branch_and_no_commit() {
    let made = Made::new();
    let repository = made.open();
    assert_eq!(repository.head().unwrap(), head(Some("main"), None));
    assert_eq!(repository.default_branch(), "main");
    assert_eq!(repository.commit("HEAD").unwrap_err().code, ErrorCode::UnknownCommit);
}

#[test]
fn branches_tags_and_ids_name_commits() {
    let made = Made::new();
    let one = made.plain("main", 1, &[]);
    let two = made.plain("feature/x", 2, &[one]);
    let tag = gix::objs::Tag {
        target: two,
        target_kind: gix::objs::Kind::Commit,
        name: "v1".into(),
        tagger: None,
        message: "a tag\n".into(),
        signature: None,
    };
    let tag = made.git.write_object(&tag).unwrap().detach();
    made.file("refs/tags/v1", format!("{tag}\n"));
    made.file("HEAD", "ref: refs/heads/feature/x\n");

    let repository = made.open();
    assert_eq!(repository.head().unwrap(), head(Some("feature/x"), Some(two)));
    let id = two.to_string();
    for spec in ["HEAD", "feature/x", "refs/heads/feature/x", "v1", &id, &id[..7]] {
        let commit = repository.commit(spec).unwrap();
        assert_eq!(commit.id, id, "{spec}");
        assert_eq!(commit.parents, [one.to_string()]);
        assert_eq!((commit.time_ms, commit.summary.as_str()), (3_000, "commit 2"));
        assert_eq!(commit.author, "Ann <ann@example.org>");
    }
    assert_eq!(repository.commit("HEAD~1").unwrap().id, one.to_string());
}

#[test]
fn what_names_no_commit_is_unknown() {
    let made = Made::new();
    made.plain("main", 1, &[]);
    let repository = made.open();
    let content = hex(&blob_id(b"1"));
    for spec in ["", "nothing", "main~1", "main..main", "^", "@{u}", "-x", "ffffff9", &"f".repeat(40), &content] {
        let error = repository.commit(spec).unwrap_err();
        assert_eq!((error.kind, error.code), (ErrorKind::NotFound, ErrorCode::UnknownCommit), "{spec}");
        assert!(error.message.contains(&format!("`{spec}`")) && error.hint.is_some(), "{spec}");
    }
    assert_eq!(repository.tree("nothing").unwrap_err().code, ErrorCode::UnknownCommit);
    assert_eq!(repository.changes("main", "nothing").unwrap_err().code, ErrorCode::UnknownCommit);
    assert_eq!(repository.blob([7; 20]).unwrap_err().code, ErrorCode::MissingObject);
}

#[test]
fn a_short_id_of_two_commits_is_ambiguous() {
    let made = Made::new();
    let mut seen = std::collections::BTreeSet::new();
    let shared =
        (0..).map(|n| made.plain("main", n, &[]).to_string()[..4].to_owned()).find(|p| !seen.insert(p.clone()));
    let error = made.open().commit(&shared.unwrap()).unwrap_err();
    assert_eq!((error.kind, error.code), (ErrorKind::InvalidInput, ErrorCode::AmbiguousCommit));
}

#[test]
fn a_detached_head_is_on_no_branch() {
    let made = Made::new();
    let one = made.plain("main", 1, &[]);
    made.plain("main", 2, &[one]);
    made.file("HEAD", format!("{one}\n"));
    assert_eq!(made.open().head().unwrap(), head(None, Some(one)));
}

#[test]
fn packed_references_count() {
    let made = Made::new();
    let one = made.plain("main", 1, &[]);
    let two = made.plain("side", 2, &[one]);
    fs::remove_dir_all(made.git.git_dir().join("refs/heads")).unwrap();
    made.file(
        "packed-refs",
        format!("# pack-refs with: peeled fully-peeled sorted \n{one} refs/heads/main\n{two} refs/heads/side\n"),
    );
    let repository = made.open();
    assert_eq!(repository.head().unwrap(), head(Some("main"), Some(one)));
    assert_eq!(repository.commit("side").unwrap().id, two.to_string());
    assert_eq!(repository.default_branch(), "main");
}

#[test]
fn the_default_branch_is_what_origin_says_else_the_likeliest() {
    let made = Made::new();
    let default = || made.open().default_branch();
    let one = made.plain("odd-one", 1, &[]);
    made.file("HEAD", format!("{one}\n"));
    assert_eq!(default(), "odd-one");
    made.plain("odd-two", 2, &[]);
    made.file("HEAD", "ref: refs/heads/odd-two\n");
    assert_eq!(default(), "odd-two");
    made.plain("master", 3, &[]);
    assert_eq!(default(), "master");
    made.plain("main", 4, &[]);
    assert_eq!(default(), "main");
    let config = fs::read_to_string(made.git.git_dir().join("config")).unwrap();
    made.file("config", format!("{config}[init]\n\tdefaultBranch = absent\n"));
    assert_eq!(default(), "main");
    made.file("config", format!("{config}[init]\n\tdefaultBranch = odd-one\n"));
    assert_eq!(default(), "odd-one");
    made.file("refs/remotes/origin/HEAD", "ref: refs/remotes/origin/release/2\n");
    assert_eq!(default(), "release/2");
}

#[test]
fn linked_worktrees_share_what_the_main_one_has() {
    let made = Made::new();
    let one = made.plain("main", 1, &[]);
    let two = made.plain("side", 2, &[one]);
    let linked = made.beside("linked");
    fs::create_dir_all(linked.join("sub")).unwrap();
    fs::write(linked.join(".git"), format!("gitdir: {}\n", made.git.git_dir().join("worktrees/linked").display()))
        .unwrap();
    made.file("worktrees/linked/HEAD", "ref: refs/heads/side\n");
    made.file("worktrees/linked/commondir", "../..\n");
    made.file("worktrees/linked/gitdir", format!("{}\n", linked.join(".git").display()));

    let repository = open(&linked.join("sub"));
    assert!(repository.is_worktree());
    assert_eq!(repository.work_dir(), Some(linked.as_path()));
    assert_eq!(repository.common_dir(), made.open().common_dir());
    assert_eq!(repository.head().unwrap(), head(Some("side"), Some(two)));
    assert_eq!(repository.default_branch(), "main");
    assert_eq!(repository.tree("main").unwrap()["a"].id, blob_id(b"1"));
    assert!(!made.open().is_worktree());
}

#[test]
fn submodules_are_repositories_of_their_own() {
    let (made, inner) = (Made::new(), Made::new());
    let one = inner.plain("main", 1, &[]);
    let modules = made.git.git_dir().join("modules");
    fs::create_dir(&modules).unwrap();
    fs::rename(inner.git.git_dir(), modules.join("sub")).unwrap();
    fs::create_dir(made.root.join("sub")).unwrap();
    fs::write(made.root.join("sub/.git"), "gitdir: ../.git/modules/sub\n").unwrap();
    let repository = open(&made.root.join("sub"));
    assert_eq!(repository.work_dir(), Some(made.root.join("sub").as_path()));
    assert_eq!(repository.head().unwrap(), head(Some("main"), Some(one)));
    assert!(!repository.is_worktree());
}

#[test]
fn bare_repositories_have_history_and_no_working_tree() {
    let made = Made::of(gix::create::Kind::Bare, "owner+name");
    let one = made.plain("main", 1, &[]);
    let repository = made.open();
    assert_eq!((repository.work_dir(), repository.common_dir()), (None, made.root.as_path()));
    assert_eq!(repository.head().unwrap(), head(Some("main"), Some(one)));
    assert_eq!(repository.tree("HEAD").unwrap().len(), 1);
}

#[test]
fn objects_may_be_elsewhere() {
    let (made, other) = (Made::new(), Made::new());
    let one = made.plain("main", 1, &[]);
    other.file("objects/info/alternates", format!("{}\n", made.git.git_dir().join("objects").display()));
    other.file("refs/heads/main", format!("{one}\n"));
    assert_eq!(other.open().blob(blob_id(b"1")).unwrap(), b"1");
}

#[test]
fn other_formats_are_refused() {
    let made = Made::new();
    made.file("config", "[core]\n\trepositoryformatversion = 1\n[extensions]\n\trefstorage = another\n");
    let error = refused(&made.root);
    assert_eq!((error.kind, error.code), (ErrorKind::Unsupported, ErrorCode::UnsupportedRepository));
    assert!(error.hint.is_some());
}

#[test]
fn a_tree_lists_files_of_all_folders() {
    let made = Made::new();
    let files = [
        ("a.txt", EntryKind::Blob, ""),
        ("bin/run", EntryKind::BlobExecutable, "#!/bin/sh\n"),
        ("bin/deep/er", EntryKind::Blob, "er"),
        ("link", EntryKind::Link, "a.txt"),
        ("ünï", EntryKind::Blob, "u"),
        ("vendor/sub", EntryKind::Commit, &"1".repeat(40)),
    ];
    made.commit("main", 1, &[], &files);
    let repository = made.open();
    let tree = repository.tree("main").unwrap();
    let paths: Vec<&str> = tree.keys().map(String::as_str).collect();
    assert_eq!(paths, ["a.txt", "bin/deep/er", "bin/run", "link", "ünï"]);
    assert_eq!(hex(&tree["a.txt"].id), EMPTY_BLOB);
    assert_eq!(tree["bin/run"], TreeEntry { id: blob_id(b"#!/bin/sh\n"), executable: true, symlink: false });
    assert_eq!(tree["link"], TreeEntry { id: blob_id(b"a.txt"), executable: false, symlink: true });
    assert_eq!(repository.blob(tree["link"].id).unwrap(), b"a.txt");
}

#[test]
fn changes_are_the_files_that_differ() {
    use EntryKind::{Blob, BlobExecutable, Commit};
    let made = Made::new();
    let (old, new) = ("1".repeat(40), "2".repeat(40));
    let before = [
        ("same/kept", Blob, "kept"),
        ("changed", Blob, "old"),
        ("gone/a", Blob, "a"),
        ("gone/b", Blob, "b"),
        ("folder", Blob, "was a file"),
        ("mode", Blob, "mode"),
        ("module", Commit, &old),
        ("module-then", Commit, &old),
    ];
    let after = [
        ("same/kept", Blob, "kept"),
        ("changed", Blob, "new"),
        ("moved/a", Blob, "a"),
        ("folder/file", Blob, "is in a folder"),
        ("mode", BlobExecutable, "mode"),
        ("module", Commit, &new),
        ("module-then", Blob, "now a file"),
    ];
    let one = made.commit("main", 1, &[], &before);
    made.commit("main", 2, &[one], &after);

    let change = |path: &str, before: Option<&str>, after: Option<&str>| ChangedFile {
        path: path.to_owned(),
        before: before.map(|text| blob_id(text.as_bytes())),
        after: after.map(|text| blob_id(text.as_bytes())),
    };
    let expected = [
        change("changed", Some("old"), Some("new")),
        change("folder", Some("was a file"), None),
        change("folder/file", None, Some("is in a folder")),
        change("gone/a", Some("a"), None),
        change("gone/b", Some("b"), None),
        change("mode", Some("mode"), Some("mode")),
        change("module-then", None, Some("now a file")),
        change("moved/a", None, Some("a")),
    ];
    let repository = made.open();
    assert_eq!(repository.changes("main~1", "main").unwrap(), expected);
    assert_eq!(repository.changes("main", "main").unwrap(), []);
}

#[test]
fn history_is_followed_along_first_parents_and_branches_meet() {
    // 1 - 2 - 4 - 5 (main; 4 merges 3)
    //   \ 3 / - 6 (side); 9 stands alone
    let made = Made::new();
    let one = made.plain("main", 1, &[]);
    let two = made.plain("main", 2, &[one]);
    let three = made.plain("side", 3, &[one]);
    let four = made.plain("main", 4, &[two, three]);
    let five = made.plain("main", 5, &[four]);
    made.plain("side", 6, &[three]);
    made.plain("alone", 9, &[]);

    let repository = made.open();
    let ids = |from: &str, n: usize| -> Vec<String> {
        repository.first_parents(from, n).unwrap().into_iter().map(|c| c.id).collect()
    };
    let all = [five, four, two, one].map(|id| id.to_string());
    assert_eq!(ids("main", 100), all);
    assert_eq!(ids("main", 2), all[..2]);
    assert_eq!(ids("main", 0), [""; 0]);
    assert_eq!(repository.first_parents("main", 2).unwrap()[1].parents, [two.to_string(), three.to_string()]);

    assert_eq!(repository.merge_base("main", "side").unwrap(), Some(three.to_string()));
    assert_eq!(repository.merge_base("main~2", "side").unwrap(), Some(one.to_string()));
    assert_eq!(repository.merge_base("main", "main").unwrap(), Some(five.to_string()));
    assert_eq!(repository.merge_base("main", "alone").unwrap(), None);
}

#[test]
fn a_shallow_clone_ends_where_it_says() {
    let made = Made::new();
    let missing = ObjectId::from_hex("3".repeat(40).as_bytes()).unwrap();
    let one = made.plain("main", 1, &[missing]);
    let two = made.plain("main", 2, &[one]);
    made.plain("side", 3, &[one]);
    assert_eq!(made.open().first_parents("main", 9).unwrap_err().code, ErrorCode::MissingObject);

    made.file("shallow", format!("{one}\n"));
    let repository = made.open();
    let commits = repository.first_parents("main", 9).unwrap();
    assert_eq!(commits.iter().map(|c| c.id.clone()).collect::<Vec<_>>(), [two.to_string(), one.to_string()]);
    assert_eq!(commits[1].parents, [""; 0]);
    assert_eq!(repository.merge_base("main", "side").unwrap(), Some(one.to_string()));
}

#[test]
fn many_threads_read_one_repository() {
    let made = Made::new();
    let files: Vec<String> = (0..64).map(|n| format!("file{n}")).collect();
    let files: Vec<_> = files.iter().map(|name| (name.as_str(), EntryKind::Blob, name.as_str())).collect();
    made.commit("main", 1, &[], &files);
    let repository = made.open();
    let tree = repository.tree("main").unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for (path, entry) in &tree {
                    assert_eq!(repository.blob(entry.id).unwrap(), path.as_bytes());
                }
            });
        }
    });
}
