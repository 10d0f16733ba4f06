//! No path leads out of the workspace, or into git's own folder.

use super::fixture::{at, wrong};
use super::{Check, Fault, Fixture};
use ralph_loop_domain::ports::{SandboxError, WriteMode::Replace};
use std::path::Path;

pub(super) const CHECKS: &[Check] = &[
    Check { name: "paths: absolute, `..` and `.git` are refused", needs: &[], run: written_out },
    Check { name: "paths: links that lead out are refused", needs: &[], run: links },
];

fn refused(fixture: &Fixture<'_>, path: &Path) -> Result<(), Fault> {
    let s = fixture.sandbox();
    let outside = |verb: &str, result: Result<(), SandboxError>| match result {
        Err(SandboxError::OutsideWorkspace(_)) => Ok(()),
        Err(other) => wrong(format!("{verb} `{}` failed otherwise: {other}", path.display())),
        Ok(()) => wrong(format!("{verb} `{}` worked", path.display())),
    };
    outside("reading", s.read(path).map(drop))?;
    outside("writing", s.write(path, b"x", Replace))?;
    outside("appending to", s.write(path, b"x", ralph_loop_domain::ports::WriteMode::Append))?;
    outside("listing", s.list(path).map(drop))
}

fn written_out(fixture: &Fixture<'_>) -> Result<(), Fault> {
    for path in ["/etc/passwd", "../x", "a/../../x", ".git/config", "a/.git/hooks/x", ".GIT/config"] {
        refused(fixture, at(path))?;
        if fixture.sandbox().remove(at(path)).is_ok() {
            return wrong(format!("removing `{path}` worked"));
        }
    }
    Ok(())
}

fn links(fixture: &Fixture<'_>) -> Result<(), Fault> {
    fixture.run(
        "ln -s /etc out; ln -s /etc/passwd file; ln -s ../.. up; ln -s out chain; \
         mkdir -p inner && echo fine > inner/f; ln -s inner in; mkdir -p .git; ln -s .git git",
    )?;
    for path in ["out/passwd", "file", "up/x", "chain/passwd", "out/new/x", "git/config"] {
        refused(fixture, &fixture.path(path))?;
    }
    // A link that stays inside is a path like any other.
    super::fixture::eq("inside", fixture.sandbox().read(&fixture.path("in/f"))?, Some(b"fine\n".to_vec()))
}
