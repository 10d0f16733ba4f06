//! Sessions of browsers: a signed cookie, so that a restart of the server ends none; and a short list of those that were ended
//! before their time. Both files can be read by their owner only.

use super::{People, Person, random_bytes, same};
use crate::home::ServerHome;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use ralph_loop_app::AppError;
use ring::hmac;
use std::collections::BTreeMap;
use std::sync::Mutex;

/// How long a session lasts, in seconds.
pub const AGE: i64 = 14 * 24 * 3600;

/// The file of sessions that were ended.
const ENDED: &str = "ended-sessions.json";

/// The cookie of a session.
pub const COOKIE: &str = "ralph_session";

/// Ended sessions that are remembered until their time is over.
const ENDED_MAX: usize = 20_000;

/// Signs and reads cookies.
pub struct Sessions {
    key: hmac::Key,
    home: ServerHome,
    /// Sessions that somebody has ended, with the second at which they would have ended by themselves.
    ended: Mutex<BTreeMap<String, i64>>,
}

/// What a cookie says: who, until when, the mark of their token, and its own name.
type Claims = (String, i64, String, String);

impl std::fmt::Debug for Sessions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sessions")
    }
}

/// A session that was read.
#[derive(Debug, Clone)]
pub struct Ticket {
    /// Who is logged in.
    pub person: Person,
    /// What unsafe requests of this session must say.
    pub csrf: String,
}

impl Sessions {
    /// With the key of this server; the first start makes one.
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

    /// Ends the session of a cookie: whoever has kept a copy of it is nobody from now on, after a restart too.
    pub fn end(&self, cookie: &str, now: Timestamp) -> Result<(), AppError> {
        let Some((_, until, _, name)) = self.claims(cookie) else { return Ok(()) };
        let mut ended = self.ended.lock().unwrap_or_else(|e| e.into_inner());
        ended.retain(|_, until| *until > now.as_second());
        if ended.len() >= ENDED_MAX {
            // The one that ends by itself first.
            let first = ended.iter().min_by_key(|(_, until)| **until).map(|(name, _)| name.clone());
            first.map(|name| ended.remove(&name));
        }
        ended.insert(name, until);
        let text = serde_json::to_vec(&*ended).unwrap_or_default();
        self.home.write_private(&self.home.file(ENDED), &text)
    }

    /// What a cookie of this server says.
    fn claims(&self, cookie: &str) -> Option<Claims> {
        let (text, signature) = cookie.split_once('.')?;
        if !same(self.sign("session", text).as_bytes(), signature.as_bytes()) {
            return None;
        }
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(text).ok()?).ok()
    }

    /// A cookie for this person.
    pub fn issue(&self, people: &People, name: &str, now: Timestamp) -> Result<String, AppError> {
        let mark = people.by_name(name).map(|(_, mark)| mark).unwrap_or_default();
        let nonce = ralph_loop_protocol::id::hex(&random_bytes::<8>()?);
        let claims = serde_json::json!([name, now.as_second() + AGE, mark, nonce]).to_string();
        let text = URL_SAFE_NO_PAD.encode(claims);
        Ok(format!("{text}.{}", self.sign("session", &text)))
    }

    /// Whose cookie this is. One that was ended, or of somebody whose token was taken away, is nobody's.
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
