//! Clean checkouts hold the commit, work as separate repos, and trust nothing that an agent left in `.git`.

use crate::support::{Fixture, checkpoint, git};
use ralph_loop_domain::ports::Workspace;
use std::fs;
use std::os::unix::fs::PermissionsExt;

#[test]
fn clean_checkout_has_history_and_tags_but_no_hooks_or_settings() {
    let fixture = Fixture::new();
    fixture.git(&["tag", "-a", "v1", "-m", "one"]);
    fixture.git(&["config", "user.nonsense", "mine"]);
    fs::create_dir_all(fixture.top.join(".git/hooks")).unwrap();
    fs::write(fixture.top.join(".git/hooks/post-checkout"), "#!/bin/sh\nexit 1\n").unwrap();
    let (mut workspace, _) = fixture.begun();
    fixture.write("new", "x\n");
    let commit = checkpoint(&mut workspace, 1).commit.unwrap();
    let into = fixture.dir.path().join("clean");
    workspace.checkout_clean(&commit, &into).unwrap();
    assert!(!into.join(".git/objects/info/alternates").exists(), "it borrows no objects");
    assert!(!into.join(".git/hooks").exists());
    assert_eq!(git(&into, &["status", "--porcelain"]), "");
    assert!(git(&into, &["describe"]).starts_with("v1-1-g"));
    assert_eq!(git(&into, &["rev-list", "--count", "HEAD"]), "2");
    assert!(!fs::read_to_string(into.join(".git/config")).unwrap().contains("nonsense"));
    assert_eq!(workspace.verify_checkout(&commit, &into).unwrap(), Vec::<String>::new());
    // Changes there stay there.
    git(&into, &["tag", "v2"]);
    assert_eq!(fixture.git(&["tag"]), "v1");
}

#[test]
fn an_object_that_was_overwritten_in_the_repo_is_noticed() {
    let fixture = Fixture::new();
    fixture.write("check.sh", "exit 1\n");
    fixture.git(&["add", "-A"]);
    fixture.git(&["commit", "-q", "-m", "check"]);
    let (mut workspace, _) = fixture.begun();
    fixture.write("new", "x\n");
    let commit = checkpoint(&mut workspace, 1).commit.unwrap();
    let path_of = |id: &str| fixture.top.join(format!(".git/objects/{}/{}", &id[..2], &id[2..]));
    let overwrite = |id: &str, with: &str| {
        let old = fs::read(path_of(id)).unwrap();
        fs::set_permissions(path_of(id), fs::Permissions::from_mode(0o644)).unwrap();
        fs::copy(path_of(with), path_of(id)).unwrap();
        old
    };
    fixture.write("../easy", "exit 0\n");
    let easy = fixture.git(&["hash-object", "-w", "../easy"]);
    let real = fixture.git(&["rev-parse", &format!("{commit}:check.sh")]);
    let old = overwrite(&real, &easy);
    let into = fixture.dir.path().join("blob");
    workspace.checkout_clean(&commit, &into).unwrap();
    assert_eq!(fs::read_to_string(into.join("check.sh")).unwrap(), "exit 0\n", "git itself does not notice");
    let found = workspace.verify_checkout(&commit, &into).unwrap();
    assert!(found.len() == 1 && found[0].contains("`check.sh`"), "{found:?}");
    fs::write(path_of(&real), old).unwrap();

    let tree = fixture.git(&["rev-parse", &format!("{commit}^{{tree}}")]);
    let other = fixture.git(&["rev-parse", "HEAD^{tree}"]);
    let old = overwrite(&tree, &other);
    let into = fixture.dir.path().join("tree");
    workspace.checkout_clean(&commit, &into).unwrap();
    let found = workspace.verify_checkout(&commit, &into).unwrap();
    assert!(found.iter().any(|f| f.contains("its tree")), "{found:?}");
    fs::write(path_of(&tree), old).unwrap();

    let into = fixture.dir.path().join("sound");
    workspace.checkout_clean(&commit, &into).unwrap();
    assert_eq!(workspace.verify_checkout(&commit, &into).unwrap(), Vec::<String>::new());
}

#[test]
fn only_original_filters_apply() {
    let fixture = Fixture::new();
    fixture.git(&["config", "filter.up.smudge", "tr a-z A-Z"]);
    fixture.git(&["config", "filter.up.clean", "tr A-Z a-z"]);
    fixture.write(".gitattributes", "loud filter=up\n");
    fixture.write("loud", "shout\n");
    fixture.git(&["add", "-A"]);
    fixture.git(&["commit", "-q", "-m", "filters"]);
    let (mut workspace, _) = fixture.begun();
    let ran = fixture.dir.path().join("ran");
    fixture.git(&["config", "filter.up.smudge", &format!("touch {}; echo forged", ran.display())]);
    fixture.git(&["config", "core.attributesFile", "/nowhere"]);
    fixture.write("new", "x\n");
    let commit = checkpoint(&mut workspace, 1).commit.unwrap();
    let into = fixture.dir.path().join("clean");
    workspace.checkout_clean(&commit, &into).unwrap();
    assert_eq!(fs::read_to_string(into.join("loud")).unwrap(), "SHOUT\n");
    assert!(!ran.exists());
    assert_eq!(workspace.verify_checkout(&commit, &into).unwrap(), Vec::<String>::new());
}

#[test]
fn replacements_and_grafts_of_the_repo_are_not_in_the_checkout() {
    let fixture = Fixture::new();
    fixture.write("check.sh", "exit 1\n");
    fixture.git(&["add", "-A"]);
    fixture.git(&["commit", "-q", "-m", "check"]);
    let (mut workspace, _) = fixture.begun();
    fixture.write("new", "x\n");
    let commit = checkpoint(&mut workspace, 1).commit.unwrap();
    fixture.write("../easy", "exit 0\n");
    let easy = fixture.git(&["hash-object", "-w", "../easy"]);
    let real = fixture.git(&["rev-parse", "HEAD:check.sh"]);
    fixture.git(&["replace", &real, &easy]);
    let into = fixture.dir.path().join("clean");
    workspace.checkout_clean(&commit, &into).unwrap();
    assert_eq!(fs::read_to_string(into.join("check.sh")).unwrap(), "exit 1\n");
    assert_eq!(git(&into, &["show", "HEAD:check.sh"]), "exit 1");
    assert_eq!(git(&into, &["replace", "-l"]), "");
}

#[test]
fn unrecorded_files_are_listed_by_folder() {
    let fixture = Fixture::new();
    fixture.write(".gitignore", "node_modules/\n.env\n*.log\n");
    fixture.write("node_modules/a/index.js", "x\n");
    fixture.write("node_modules/b/index.js", "x\n");
    fixture.write(".env", "KEY=1\n");
    let (workspace, _) = fixture.begun();
    assert_eq!(workspace.unrecorded().unwrap(), [".env", "node_modules/"]);
}
