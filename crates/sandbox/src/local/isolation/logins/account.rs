//! The account that a login names. A login comes back from a sandbox only if it names the same one as before.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;
use std::path::Path;

/// Where a part of an account's name is.
struct Name {
    /// The file below the home.
    file: &'static str,
    /// The value in it, as a JSON pointer.
    at: &'static str,
    /// The claim, if the value is a token with claims.
    claim: Option<&'static str>,
    /// Whether there is no account without it; other parts are compared only.
    is_required: bool,
}

const fn plain(file: &'static str, at: &'static str) -> Name {
    Name { file, at, claim: None, is_required: true }
}

/// What names the account of the login file `login`; nothing if it names none.
fn names(login: &Path) -> &'static [Name] {
    match login.to_str() {
        Some(".claude/.credentials.json") => {
            const {
                &[
                    Name { is_required: false, ..plain(".claude/.credentials.json", "/organizationUuid") },
                    plain(".claude.json", "/oauthAccount/accountUuid"),
                    Name { is_required: false, ..plain(".claude.json", "/oauthAccount/organizationUuid") },
                ]
            }
        }
        Some(".codex/auth.json") => const { &[plain(".codex/auth.json", "/tokens/account_id")] },
        Some(".gemini/oauth_creds.json") => {
            const { &[Name { claim: Some("sub"), ..plain(".gemini/oauth_creds.json", "/id_token") }] }
        }
        _ => &[],
    }
}

/// The account of the login file `login`, whose home's files `read` returns; `None` if it doesn't name one in full.
pub(super) fn account(login: &Path, read: impl Fn(&Path) -> Option<Vec<u8>>) -> Option<Vec<Option<String>>> {
    let parts = names(login).iter().map(|name| match name.value(&read) {
        None if name.is_required => None,
        part => Some(part),
    });
    parts.collect::<Option<Vec<_>>>().filter(|found| !found.is_empty())
}

impl Name {
    fn value(&self, read: &impl Fn(&Path) -> Option<Vec<u8>>) -> Option<String> {
        let file: Value = serde_json::from_slice(&read(Path::new(self.file))?).ok()?;
        let text = file.pointer(self.at)?.as_str()?;
        let name = match self.claim {
            None => text.to_owned(),
            Some(claim) => {
                let claims = URL_SAFE_NO_PAD.decode(text.split('.').nth(1)?).ok()?;
                serde_json::from_slice::<Value>(&claims).ok()?.get(claim)?.as_str()?.to_owned()
            }
        };
        (!name.is_empty()).then_some(name)
    }
}
