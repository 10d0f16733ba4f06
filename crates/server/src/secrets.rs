//! Secrets for runs of this server: encrypted at rest and never shown; only whether they are set.

use crate::home::ServerHome;
use crate::people::random_bytes;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ralph_loop_app::{AppError, variables};
use ralph_loop_domain::vars::Vars;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;

/// The key as 64 hexadecimal digits.
const KEY: &str = "RALPH_SECRETS_KEY";
/// Size limit of a secret.
const VALUE_MAX: usize = 64 * 1024;

pub struct Secrets {
    home: ServerHome,
    key: LessSafeKey,
    sealed: Mutex<BTreeMap<String, String>>,
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secrets")
    }
}

impl Secrets {
    /// Uses the key in `RALPH_SECRETS_KEY`, else that in a private file.
    pub fn open(home: &ServerHome, vars: &Vars) -> Result<Self, AppError> {
        let bytes = match vars.filled(KEY) {
            Some(text) => from_hex(text.trim()).ok_or_else(|| {
                AppError::usage(format!("{KEY} isn't a valid key"))
                    .hint("it has 64 hexadecimal digits: `openssl rand -hex 32` makes one")
            })?,
            None => key_file(home)?,
        };
        let unbound = UnboundKey::new(&AES_256_GCM, &bytes)
            .map_err(|_| AppError::environment("can't use the key for the secrets"))?;
        let sealed = match home.read_private(&file(home))? {
            Some(text) => serde_json::from_slice(&text).map_err(|e| {
                AppError::environment(format!("`{}` is damaged: {e}", file(home).display()))
                    .hint("remove it and set the secrets again")
            })?,
            None => BTreeMap::new(),
        };
        let secrets = Self { home: home.clone(), key: LessSafeKey::new(unbound), sealed: Mutex::new(sealed) };
        // Reports a wrong key now, not when the first run lacks its token.
        secrets.values()?;
        Ok(secrets)
    }

    /// Names that may be set: secrets of models, code hosts and sandboxes.
    pub fn names() -> Vec<&'static str> {
        let known = variables::VARIABLES.iter().filter(|known| known.secret && known.dotenv);
        known.map(|known| known.name).filter(|name| *name != "RALPH_DB_URL").collect()
    }

    /// Every name, and whether it is set.
    pub fn list(&self) -> Vec<(String, bool)> {
        let sealed = self.lock();
        Self::names().into_iter().map(|name| (name.to_owned(), sealed.contains_key(name))).collect()
    }

    pub fn set(&self, name: &str, value: &str) -> Result<(), AppError> {
        if !Self::names().contains(&name) {
            return Err(AppError::usage(format!("runs don't use a secret `{name}`"))
                .hint(format!("one of {}", Self::names().join(", "))));
        }
        if value.trim().is_empty() || value.len() > VALUE_MAX || value.contains('\0') {
            return Err(AppError::usage(format!("the value of `{name}` is empty or too long")));
        }
        let nonce = random_bytes::<NONCE_LEN>()?;
        let mut bytes = value.as_bytes().to_vec();
        self.key
            .seal_in_place_append_tag(
                Nonce::assume_unique_for_key(nonce),
                Aad::from(name.as_bytes()),
                &mut bytes,
            )
            .map_err(|_| AppError::environment(format!("can't encrypt `{name}`")))?;
        let mut sealed = self.lock();
        sealed.insert(name.to_owned(), STANDARD.encode([&nonce[..], &bytes].concat()));
        self.save(&sealed)
    }

    /// Removes one; returns whether it was set.
    pub fn unset(&self, name: &str) -> Result<bool, AppError> {
        let mut sealed = self.lock();
        if sealed.remove(name).is_none() {
            return Ok(false);
        }
        self.save(&sealed)?;
        Ok(true)
    }

    /// The values, only for a run's process.
    pub fn values(&self) -> Result<Vec<(String, String)>, AppError> {
        let sealed = self.lock();
        sealed.iter().map(|(name, text)| Ok((name.clone(), self.open_one(name, text)?))).collect()
    }

    fn open_one(&self, name: &str, text: &str) -> Result<String, AppError> {
        let wrong = || {
            AppError::environment(format!("can't decrypt the secret `{name}` with this key")).hint(format!(
                "start with the {KEY} that it was set with, or remove `{}`",
                file(&self.home).display()
            ))
        };
        let mut bytes = STANDARD.decode(text).map_err(|_| wrong())?;
        let (nonce, sealed) = bytes.split_at_mut_checked(NONCE_LEN).ok_or_else(wrong)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| wrong())?;
        let plain = self.key.open_in_place(nonce, Aad::from(name.as_bytes()), sealed).map_err(|_| wrong())?;
        String::from_utf8(plain.to_vec()).map_err(|_| wrong())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, String>> {
        self.sealed.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn save(&self, sealed: &BTreeMap<String, String>) -> Result<(), AppError> {
        let text = serde_json::to_vec_pretty(sealed).unwrap_or_default();
        self.home.write_private(&file(&self.home), &text)
    }
}

fn file(home: &ServerHome) -> PathBuf {
    home.file("secrets.json")
}

fn key_file(home: &ServerHome) -> Result<Vec<u8>, AppError> {
    let path = home.file("secrets.key");
    if let Some(bytes) = home.read_private(&path)?.filter(|bytes| bytes.len() == 32) {
        return Ok(bytes);
    }
    let bytes = random_bytes::<32>()?.to_vec();
    home.write_private(&path, &bytes)?;
    Ok(bytes)
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let pairs = text.as_bytes().chunks(2);
    let bytes: Option<Vec<u8>> =
        pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect();
    bytes.filter(|bytes| bytes.len() == 32 && text.len() == 64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ralph_loop_journal::folder::layout::StateHome;

    fn open(folder: &std::path::Path, key: Option<&str>) -> Result<Secrets, AppError> {
        let home = ServerHome::make(&StateHome::at(folder)).unwrap();
        Secrets::open(&home, &key.map(|key| (KEY, key.to_owned())).into_iter().collect())
    }

    #[test]
    fn a_secret_is_on_disk_only_encrypted_and_needs_its_key() {
        let folder = tempfile::tempdir().unwrap();
        let secrets = open(folder.path(), None).unwrap();
        secrets.set("ANTHROPIC_API_KEY", "sk-very-secret").unwrap();
        assert!(secrets.set("PATH", "/evil").is_err());
        let text = std::fs::read_to_string(folder.path().join("server/secrets.json")).unwrap();
        assert!(!text.contains("very-secret"), "{text}");
        let again = open(folder.path(), None).unwrap();
        assert_eq!(again.values().unwrap(), [("ANTHROPIC_API_KEY".to_owned(), "sk-very-secret".to_owned())]);
        assert!(again.list().contains(&("ANTHROPIC_API_KEY".to_owned(), true)));
        let other = "11".repeat(32);
        let error = open(folder.path(), Some(&other)).unwrap_err();
        assert!(error.message.contains("ANTHROPIC_API_KEY") && !error.message.contains("very"), "{error}");
        assert!(open(folder.path(), Some("short")).is_err());
        assert!(again.unset("ANTHROPIC_API_KEY").unwrap() && !again.unset("ANTHROPIC_API_KEY").unwrap());
    }

    #[test]
    fn a_key_file_that_others_can_read_is_refused() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        open(folder.path(), None).unwrap();
        let path = folder.path().join("server/secrets.key");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        let error = open(folder.path(), None).unwrap_err();
        assert!(error.message.contains("others can read"), "{error}");
    }
}
