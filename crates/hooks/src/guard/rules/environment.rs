//! Printing the environment, with its keys.

use super::Call;
use crate::guard::category::{Category, Refusal};
use ralph_loop_domain::secret_name::is_secret_name;

pub(super) fn rule(call: &Call<'_>) -> Option<Refusal> {
    let refuse = || call.refuse(Category::Environment, "The environment holds keys.");
    let flags_only = call.operands().next().is_none();
    match call.name {
        "env" if call.operands().all(|arg| arg.text.contains('=')) && !call.has(&["--help", "--version"]) => {
            // With `-i` nothing is left that could be told.
            if call.has(&["-i", "-", "--ignore-environment"]) { None } else { refuse() }
        }
        "printenv" => {
            let secret = call.operands().any(|arg| is_secret_name(&arg.text));
            if flags_only || secret { refuse() } else { None }
        }
        "jq" | "yq" if call.has(&["env", "$ENV", "$ENV|.", "env|."]) => refuse(),
        "set" if call.args.is_empty() => refuse(),
        "export" | "declare" | "typeset" if flags_only && !call.has(&["-f", "-F"]) => refuse(),
        "compgen" if call.has(&["-e", "-v"]) => refuse(),
        "ps" if call
            .args
            .iter()
            .any(|arg| arg.text.contains('e') && !arg.text.starts_with('-') && arg.text.contains("ww")) =>
        {
            refuse()
        }
        "echo" | "printf" | "print" if call.args.iter().any(|arg| arg.taint.secret) => {
            call.refuse(Category::Environment, "It prints a secret.")
        }
        _ => None,
    }
}
