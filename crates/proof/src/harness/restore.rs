use super::{manifest, rust_inline};
use ralph_loop_protocol::proof::level::{HarnessChange, HarnessSource};
use ralph_loop_safe_fs::{Kind, Links, SafeDir};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// Larger files aren't copied.
const FILE_MAX: u64 = 64 * 1024 * 1024;

/// Puts the original harness into a checkout of the work: changed and deleted files come back, added ones go, manifests keep
/// their new dependencies.
pub fn original_harness(start: &Path, work: &Path, changes: &[&HarnessChange]) -> io::Result<()> {
    lay(start, work, changes, true)
}

/// Puts the work's harness into a checkout of the original product.
pub fn new_harness(work: &Path, start: &Path, changes: &[&HarnessChange]) -> io::Result<()> {
    lay(work, start, changes, false)
}

fn lay(from: &Path, into: &Path, changes: &[&HarnessChange], keep_dependencies: bool) -> io::Result<()> {
    let (from, into) = (SafeDir::open(from)?, SafeDir::open(into)?);
    // Removals first: they may block a folder.
    for change in changes.iter().filter(|change| from.facts(&change.path).is_err()) {
        let path = change.path.as_str();
        if change.source == HarnessSource::InlineTests {
            if let Some(product) = text(&into, path) {
                into.replace(path, rust_inline::with_tests_of(None, &product).as_bytes())?;
            }
        } else if into.facts(path).is_ok() {
            into.remove(path)?;
            remove_empty_folders(path, &from, &into)?;
        }
    }
    for change in changes {
        let path = change.path.as_str();
        let Ok(facts) = from.facts(path) else { continue };
        if change.source == HarnessSource::InlineTests {
            if let (Some(tests), Some(product)) = (text(&from, path), text(&into, path)) {
                into.replace(path, rust_inline::with_tests_of(Some(&tests), &product).as_bytes())?;
            }
            continue;
        }
        match facts.kind {
            Kind::Link => into.link(path, &from.read_link(path)?)?,
            Kind::File => {
                let merged = text(&from, path)
                    .zip(text(&into, path))
                    .filter(|_| keep_dependencies)
                    .and_then(|(old, new)| manifest::with_dependencies(path, &old, &new));
                let bytes = match merged {
                    Some(text) => text.into_bytes(),
                    None => from.read(path, Links::Refused, FILE_MAX)?,
                };
                let mode = from.open_file(path, Links::Refused)?.metadata()?.permissions().mode();
                if into.facts(path).is_ok() {
                    into.remove(path)?;
                }
                into.write_with(path, &bytes, mode & 0o777)?;
            }
            _ => return Err(io::Error::other(format!("{path} isn't a regular file"))),
        }
    }
    Ok(())
}

/// Removes empty folders that didn't exist before, because a check may test for a folder.
fn remove_empty_folders(path: &str, from: &SafeDir, into: &SafeDir) -> io::Result<()> {
    let mut folder = path;
    while let Some((above, _)) = folder.rsplit_once('/') {
        let is_empty = into.entries(above, 1).is_ok_and(|inside| inside.is_empty());
        if from.facts(above).is_ok() || !is_empty {
            break;
        }
        into.remove(above)?;
        folder = above;
    }
    Ok(())
}

fn text(folder: &SafeDir, path: &str) -> Option<String> {
    folder.read_text(path, Links::Refused, FILE_MAX).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn write(top: &Path, path: &str, text: &str) {
        let path = top.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn change(path: &str, source: HarnessSource) -> HarnessChange {
        HarnessChange { path: path.into(), added: false, source, named: false, what: String::new() }
    }

    #[test]
    fn the_original_harness_replaces_the_new_one() {
        let folder = tempfile::tempdir().unwrap();
        let (start, work) = (folder.path().join("start"), folder.path().join("work"));
        write(&start, "tests/run.sh", "old");
        fs::set_permissions(start.join("tests/run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
        write(&start, "tests/gone.py", "gone");
        write(&start, "package.json", r#"{"scripts":{"test":"jest"}}"#);
        write(&start, "src/a.rs", "fn a() {}\n#[cfg(test)]\nmod t { old }\n");
        write(&work, "tests/run.sh", "new");
        write(&work, "test/deep/more.py", "new");
        write(&work, "package.json", r#"{"scripts":{"test":"true"},"dependencies":{"x":"1"}}"#);
        write(&work, "src/a.rs", "fn a() { 1 }\n#[cfg(test)]\nmod t { new }\n");
        write(&work, "src/b.rs", "fn b() {}\n#[cfg(test)]\nmod t { b }\n");
        let whole = ["tests/run.sh", "tests/gone.py", "test/deep/more.py", "package.json"];
        let mut changes: Vec<HarnessChange> = whole.map(|path| change(path, HarnessSource::Glob)).into();
        changes.extend(["src/a.rs", "src/b.rs"].map(|path| change(path, HarnessSource::InlineTests)));
        let read = |path: &str| fs::read_to_string(work.join(path)).unwrap();

        original_harness(&start, &work, &changes.iter().collect::<Vec<_>>()).unwrap();
        assert_eq!((read("tests/run.sh").as_str(), read("tests/gone.py").as_str()), ("old", "gone"));
        assert!(fs::metadata(work.join("tests/run.sh")).unwrap().permissions().mode() & 0o100 != 0);
        assert!(!work.join("test").exists(), "added files and their folders go");
        assert_eq!(
            read("package.json"),
            "{\"scripts\":{\"test\":\"jest\"},\"dependencies\":{\"x\":\"1\"}}\n"
        );
        assert!(read("src/a.rs").contains("{ 1 }") && read("src/a.rs").contains("old"));
        assert_eq!(read("src/b.rs"), "fn b() {}\n\n");
    }

    #[test]
    fn the_new_harness_goes_over_the_original_product() {
        let folder = tempfile::tempdir().unwrap();
        let (start, work) = (folder.path().join("start"), folder.path().join("work"));
        write(&start, "src/a.rs", "fn a() {}\n");
        write(&work, "src/a.rs", "fn a() { 1 }\n#[cfg(test)]\nmod t { new }\n");
        write(&work, "tests/new.rs", "new");
        let changes =
            [change("src/a.rs", HarnessSource::InlineTests), change("tests/new.rs", HarnessSource::Glob)];
        new_harness(&work, &start, &changes.iter().collect::<Vec<_>>()).unwrap();
        let source = fs::read_to_string(start.join("src/a.rs")).unwrap();
        assert!(source.starts_with("fn a() {}\n") && source.contains("new"));
        assert!(start.join("tests/new.rs").exists());
    }
}
