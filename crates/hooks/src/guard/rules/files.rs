//! Removing, moving or overwriting what is not the project's.

use super::Call;
use crate::guard::category::{Category, Refusal};
use crate::guard::value::UNKNOWN;

const REMOVERS: &[&str] =
    &["rm", "rmdir", "unlink", "shred", "srm", "rimraf", "del", "del-cli", "trash", "wipe", "truncate"];
/// Programs that write their last argument, or all of them.
const WRITERS: &[&str] = &["cp", "mv", "ln", "install", "rsync", "tee", "touch", "dd", "sponge"];

pub(super) fn rule(call: &Call<'_>) -> Option<Refusal> {
    let removal = |text: &str| {
        // Of a path that begins with something unknown, nothing can be said.
        if text.starts_with(UNKNOWN) {
            return None;
        }
        call.places.removal(&(call.resolve)(text)).and_then(|(category, why)| call.refuse(category, why))
    };
    let writing = |text: &str| {
        if text.starts_with(UNKNOWN) {
            return None;
        }
        call.places.writing(&(call.resolve)(text)).and_then(|(category, why)| call.refuse(category, why))
    };
    if call.option(&["--no-preserve-root"]) {
        return call.refuse(Category::Files, "It would take the whole machine with it.");
    }
    match call.name {
        name if REMOVERS.contains(&name) => operands(call).find_map(removal),
        "chmod" | "chown" | "chgrp" | "chattr" | "setfacl" => {
            let recursive = call.short('R') || call.option(&["--recursive"]);
            let paths = || call.operands().skip(1).map(|arg| arg.text.as_str());
            if recursive { paths().find_map(removal) } else { paths().find_map(writing) }
        }
        "mv" => {
            let paths: Vec<&str> = operands(call).collect();
            let (last, from) = paths.split_last()?;
            from.iter().find_map(|text| removal(text)).or_else(|| writing(last))
        }
        "tee" | "touch" | "mkdir" => operands(call).find_map(writing),
        name if WRITERS.contains(&name) && name != "dd" => operands(call).last().and_then(writing),
        "sed" | "gsed" | "perl" if call.short('i') || call.option(&["--in-place"]) => {
            operands(call).skip(1).find_map(writing)
        }
        "find" | "fd" if call.has(&["-delete"]) => {
            let narrowed = ["-name", "-iname", "-path", "-mtime", "-regex", "-newer", "-size"];
            let root = operands(call).next().unwrap_or(".");
            if call.has(&narrowed) && root != "/" { None } else { removal(root) }
        }
        "git" if call.is("git", &["clean"]) => {
            let all = call.short('f') && call.short('d') && call.short('x');
            let everything = all && call.operands().count() == 1;
            if everything {
                call.refuse(Category::Files, "It removes what git ignores, too: settings, keys, caches.")
            } else {
                None
            }
        }
        "curl" | "wget" => call.value(&["-o", "--output", "-O", "--output-document"]).and_then(writing),
        "tar" => call.value(&["-C", "--directory"]).and_then(writing),
        _ => None,
    }
}

fn operands<'a>(call: &'a Call<'_>) -> impl Iterator<Item = &'a str> {
    call.operands().map(|arg| arg.text.as_str()).filter(|text| *text != "-" && !text.is_empty())
}
