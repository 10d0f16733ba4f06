//! Deleting infrastructure.

use super::Call;
use crate::guard::category::{Category, Refusal};

/// Words with which the programs of clouds delete.
const DELETES: &[&str] =
    &["delete", "destroy", "terminate", "rb", "purge", "remove", "rm", "deprovision", "drain", "uninstall"];
const CLOUDS: &[&str] = &[
    "aws",
    "gcloud",
    "az",
    "doctl",
    "linode-cli",
    "hcloud",
    "oci",
    "ibmcloud",
    "scw",
    "vultr-cli",
    "eksctl",
    "kops",
    "flyctl",
    "fly",
    "heroku",
    "railway",
    "vercel",
    "netlify",
    "firebase",
    "supabase",
    "cf",
    "pulumi",
    "cdk",
    "sst",
    "serverless",
    "sls",
    "gsutil",
    "render",
    "cloudctl",
    "ovhcloud",
    "neonctl",
    "planetscale",
    "pscale",
];

pub(super) fn rule(call: &Call<'_>) -> Option<Refusal> {
    let refuse = || call.refuse(Category::Cloud, "It deletes infrastructure.");
    let verbs = call.verbs();
    let dry = call.option(&["--dry-run", "--dryrun", "--help"]) || call.has(&["--dry-run=client"]);
    if dry {
        return None;
    }
    match call.name {
        "terraform" | "tofu" | "terragrunt" | "opentofu" => {
            let removes = call.option(&["-destroy"])
                || verbs.first() == Some(&"destroy")
                || verbs.starts_with(&["state", "rm"])
                || verbs.starts_with(&["workspace", "delete"])
                || verbs.contains(&"destroy");
            if removes { refuse() } else { None }
        }
        "kubectl" | "oc" | "k" => {
            // The name of a namespace may stand before it.
            let verb =
                verbs.iter().take(3).find(|verb| ["delete", "drain", "cordon", "replace"].contains(*verb));
            let deletes = verb.is_some();
            let forced = verb != Some(&"replace") || call.option(&["--force"]);
            if deletes && forced { refuse() } else { None }
        }
        "helm" if verbs.first().is_some_and(|verb| ["uninstall", "delete", "del", "un"].contains(verb)) => {
            refuse()
        }
        "ansible" | "ansible-playbook" if call.args.iter().any(|arg| arg.text.contains("state=absent")) => {
            refuse()
        }
        "docker" | "podman" => {
            let volumes = verbs.starts_with(&["volume", "rm"])
                || verbs.starts_with(&["volume", "prune"])
                || verbs.starts_with(&["system", "prune"])
                    && (call.option(&["--volumes"]) || call.short('a'));
            if volumes { refuse() } else { None }
        }
        name if CLOUDS.contains(&name) => {
            let deletes = verbs.iter().any(|verb| {
                DELETES.iter().any(|word| {
                    verb == word
                        || verb.starts_with(&format!("{word}-"))
                        || verb.ends_with(&format!(":{word}"))
                })
            });
            let prefix = verbs.get(1).is_some_and(|verb| {
                ["delete-", "terminate-", "remove-", "deregister-"]
                    .iter()
                    .any(|start| verb.starts_with(start))
            });
            // One object is no infrastructure; all below a place are.
            let one = name == "aws" && verbs.starts_with(&["s3", "rm"]) && !call.option(&["--recursive"]);
            if (deletes || prefix) && !one { refuse() } else { None }
        }
        _ => None,
    }
}
