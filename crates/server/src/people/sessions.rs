//! Browser sessions: signed cookies, so that they survive restarts, and a short list of revoked ones. Both
//! files are private to the owner.

use super::{People, Person, random_bytes, same};
use crate::home::ServerHome;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use ralph_loop_app::AppError;
use ring::hmac;
use std::collections::BTreeMap;
use std::sync::Mutex;

/// Lifetime of a session in seconds.
pub const AGE: i64 = 14 * 24 * 3600;

/// File of revoked sessions.
const ENDED: &str = "ended-sessions.json";

/// Cookie name.
pub const COOKIE: &str = "ralph_session";

/// Revoked sessions remembered until they expire.
const ENDED_MAX: usize = 20_000;

/// Signs and reads cookies.
pub struct Sessions {
    key: hmac::Key,
    home: ServerHome,
    /// Revoked sessions with their expiry in seconds.
    ended: Mutex<BTreeMap<String, i64>>,
}

/// Content of a cookie: name, expiry, token mark, session id.
type Claims = (String, i64, String, String);

impl std::fmt::Debug for Sessions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sessions")
    }
}

/// A valid session.
#[derive(Debug, Clone)]
pub struct Ticket {
    /// The logged-in user.
    pub person: Person,
    /// The session's CSRF token.
    pub csrf: String,
}

impl Sessions {
    /// Uses this server's key; creates it at the first start.
    pub fn open(home: &ServerHome) -> Result<Self, AppError> {
        let path = home.file("session.key");
        let bytes = match home.read_private(&path)?.filter(|bytes| bytes.len() == 32) {
            Some(bytes) => bytes,
            None => {
                let bytes = random_bytes::<32>()?.to_vec();
                home.write_private(&path, &bytes)?;
                bytes
            }
        };
        let ended = home.read_private(&home.file(ENDED))?;
        let ended = ended.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
        let key = hmac::Key::new(hmac::HMAC_SHA256, &bytes);
        Ok(Self { key, home: home.clone(), ended: Mutex::new(ended) })
    }

    /// Revokes all copies of the cookie permanently.
    pub fn end(&self, cookie: &str, now: Timestamp) -> Result<(), AppError> {
        let Some((_, until, _, name)) = self.claims(cookie) else { return Ok(()) };
        let mut ended = self.ended.lock().unwrap_or_else(|e| e.into_inner());
        ended.retain(|_, until| *until > now.as_second());
        if ended.len() >= ENDED_MAX {
            // Drops the one that expires first.
            let first = ended.iter().min_by_key(|(_, until)| **until).map(|(name, _)| name.clone());
            first.map(|name| ended.remove(&name));
        }
        ended.insert(name, until);
        let text = serde_json::to_vec(&*ended).unwrap_or_default();
        self.home.write_private(&self.home.file(ENDED), &text)
    }

    /// Verifies a cookie of this server.
    fn claims(&self, cookie: &str) -> Option<Claims> {
        let (text, signature) = cookie.split_once('.')?;
        if !same(self.sign("session", text).as_bytes(), signature.as_bytes()) {
            return None;
        }
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(text).ok()?).ok()
    }

    /// A cookie for this user.
    pub fn issue(&self, people: &People, name: &str, now: Timestamp) -> Result<String, AppError> {
        let mark = people.by_name(name).map(|(_, mark)| mark).unwrap_or_default();
        let nonce = ralph_loop_protocol::id::hex(&random_bytes::<8>()?);
        let claims = serde_json::json!([name, now.as_second() + AGE, mark, nonce]).to_string();
        let text = URL_SAFE_NO_PAD.encode(claims);
        Ok(format!("{text}.{}", self.sign("session", &text)))
    }

    /// The cookie's session; `None` if it or the user's token was revoked.
    pub fn read(&self, people: &People, cookie: &str, now: Timestamp) -> Option<Ticket> {
        let (name, until, mark, own) = self.claims(cookie)?;
        let (person, known) = people.by_name(&name)?;
        let ended = self.ended.lock().unwrap_or_else(|e| e.into_inner()).contains_key(&own);
        let holds = !ended && until > now.as_second() && same(known.as_bytes(), mark.as_bytes());
        holds.then(|| Ticket { person, csrf: self.sign("csrf", cookie) })
    }

    fn sign(&self, what: &str, text: &str) -> String {
        let mut context = hmac::Context::with_key(&self.key);
        context.update(what.as_bytes());
        context.update(b"\0");
        context.update(text.as_bytes());
        URL_SAFE_NO_PAD.encode(context.sign().as_ref())
    }
}
