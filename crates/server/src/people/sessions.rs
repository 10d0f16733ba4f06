//! Sessions of browsers: a signed cookie and nothing else, so that a restart of the server ends none. The key is a file that only
//! its owner can read.

use super::{People, Person, random_bytes, same};
use crate::home::ServerHome;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use ralph_app::AppError;
use ring::hmac;

/// How long a session lasts, in seconds.
pub const AGE: i64 = 14 * 24 * 3600;

/// The cookie of a session.
pub const COOKIE: &str = "ralph_session";

/// Signs and reads cookies.
pub struct Sessions {
    key: hmac::Key,
}

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
        Ok(Self { key: hmac::Key::new(hmac::HMAC_SHA256, &bytes) })
    }

    /// A cookie for this person.
    pub fn issue(&self, people: &People, name: &str, now: Timestamp) -> Result<String, AppError> {
        let mark = people.by_name(name).map(|(_, mark)| mark).unwrap_or_default();
        let nonce = ralph_domain::id::hex(&random_bytes::<8>()?);
        let claims = serde_json::json!([name, now.as_second() + AGE, mark, nonce]).to_string();
        let text = URL_SAFE_NO_PAD.encode(claims);
        Ok(format!("{text}.{}", self.sign("session", &text)))
    }

    /// Whose cookie this is. One of somebody whose token was taken away is nobody's.
    pub fn read(&self, people: &People, cookie: &str, now: Timestamp) -> Option<Ticket> {
        let (text, signature) = cookie.split_once('.')?;
        if !same(self.sign("session", text).as_bytes(), signature.as_bytes()) {
            return None;
        }
        let claims = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (name, until, mark, _): (String, i64, String, String) = serde_json::from_slice(&claims).ok()?;
        let (person, known) = people.by_name(&name)?;
        let holds = until > now.as_second() && same(known.as_bytes(), mark.as_bytes());
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
