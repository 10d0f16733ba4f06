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
}

/// What names the account of the login file `login`; nothing if it names none.
fn names(login: &Path) -> &'static [Name] {
    match login.to_str() {
        Some(".claude/.credentials.json") => &[
            Name { file: ".claude/.credentials.json", at: "/organizationUuid", claim: None },
            Name { file: ".claude.json", at: "/oauthAccount/accountUuid", claim: None },
        ],
        Some(".codex/auth.json") => {
            &[Name { file: ".codex/auth.json", at: "/tokens/account_id", claim: None }]
        }
        Some(".gemini/oauth_creds.json") => {
            &[Name { file: ".gemini/oauth_creds.json", at: "/id_token", claim: Some("sub") }]
        }
        _ => &[],
    }
}

/// The account of the login file `login`, whose home's files `read` returns; `None` if it doesn't name one in full.
pub(super) fn account(login: &Path, read: impl Fn(&Path) -> Option<Vec<u8>>) -> Option<Vec<String>> {
    let found: Option<Vec<String>> = names(login).iter().map(|name| name.value(&read)).collect();
    found.filter(|found| !found.is_empty())
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
