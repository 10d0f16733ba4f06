//! Users and the digests of their tokens, in a private file. Tokens themselves aren't stored.

use super::{Role, random_token, same};
use crate::home::ServerHome;
use jiff::Timestamp;
use ralph_loop_app::AppError;
use ralph_loop_protocol::id::Digest;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;

/// Limits for users and for the length of a name.
const MOST: usize = 1000;
const NAME_MAX: usize = 60;
/// Shorter tokens are too easy to guess.
const TOKEN_MIN: usize = 16;

/// A logged-in user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    pub name: String,
    pub role: Role,
}

/// A user in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PersonInfo {
    /// The name.
    pub name: String,
    /// The role.
    pub role: Role,
    /// When the token was created.
    pub created_at: Timestamp,
    /// When it was last used, as far as this server knows.
    pub last_used: Option<Timestamp>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Entry {
    name: String,
    role: Role,
    token: Digest,
    created_at: Timestamp,
}

/// All users.
#[derive(Debug)]
pub struct People {
    home: ServerHome,
    entries: Mutex<Vec<Entry>>,
    /// The server's owner, who isn't in the file.
    owner: Entry,
    used: Mutex<BTreeMap<String, Timestamp>>,
}

impl People {
    /// Reads the users. `owner` and `token` belong to the user who started the server.
    pub fn open(home: &ServerHome, owner: &str, token: &str, now: Timestamp) -> Result<Self, AppError> {
        if token.len() < TOKEN_MIN {
            return Err(AppError::usage(format!("the token has less than {TOKEN_MIN} characters"))
                .hint("`openssl rand -hex 32` makes a good one"));
        }
        let entries = match home.read_private(&file(home))? {
            Some(bytes) => serde_json::from_slice(&bytes).map_err(|e| {
                AppError::environment(format!("`{}` is damaged: {e}", file(home).display()))
                    .hint("repair or remove it; its users then need new tokens")
            })?,
            None => Vec::new(),
        };
        let owner = Entry {
            name: owner.to_owned(),
            role: Role::Admin,
            token: Digest::of(token.as_bytes()),
            created_at: now,
        };
        Ok(Self { home: home.clone(), entries: Mutex::new(entries), owner, used: Mutex::default() })
    }

    /// The user with this token. Compares all tokens, to take constant time.
    pub fn by_token(&self, token: &str, now: Timestamp) -> Option<Person> {
        let digest = Digest::of(token.as_bytes());
        let entries = self.lock();
        let mut found = None;
        for entry in entries.iter().chain([&self.owner]) {
            if same(entry.token.as_str().as_bytes(), digest.as_str().as_bytes()) {
                found = Some(Person { name: entry.name.clone(), role: entry.role });
            }
        }
        if let Some(person) = &found {
            self.used.lock().unwrap_or_else(|e| e.into_inner()).insert(person.name.clone(), now);
        }
        found
    }

    /// The owner.
    pub fn owner(&self) -> Person {
        Person { name: self.owner.name.clone(), role: Role::Admin }
    }

    /// The user of this name, and a mark that changes with their token.
    pub fn by_name(&self, name: &str) -> Option<(Person, String)> {
        let entries = self.lock();
        let entry = entries.iter().chain([&self.owner]).find(|entry| entry.name == name)?;
        let person = Person { name: entry.name.clone(), role: entry.role };
        Some((person, entry.token.as_str().chars().take(16).collect()))
    }

    /// All users by name.
    pub fn list(&self) -> Vec<PersonInfo> {
        let used = self.used.lock().unwrap_or_else(|e| e.into_inner());
        let mut all: Vec<PersonInfo> = self
            .lock()
            .iter()
            .chain([&self.owner])
            .map(|entry| PersonInfo {
                name: entry.name.clone(),
                role: entry.role,
                created_at: entry.created_at,
                last_used: used.get(&entry.name).copied(),
            })
            .collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }

    /// Adds a user; the token is returned once and not stored.
    pub fn add(&self, name: &str, role: Role, now: Timestamp) -> Result<String, AppError> {
        let fine = (1..=NAME_MAX).contains(&name.len())
            && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '@'));
        if !fine {
            return Err(AppError::usage("invalid user name")
                .hint(format!("up to {NAME_MAX} letters, digits, `-`, `_`, `.` and `@`")));
        }
        let token = random_token()?;
        let mut entries = self.lock();
        if entries.iter().any(|entry| entry.name == name) || self.owner.name == name {
            return Err(AppError::usage(format!("user `{name}` already exists"))
                .hint("remove them first to give them a new token"));
        }
        if entries.len() >= MOST {
            return Err(AppError::usage(format!("{MOST} users already have tokens")));
        }
        let entry =
            Entry { name: name.to_owned(), role, token: Digest::of(token.as_bytes()), created_at: now };
        entries.push(entry);
        self.save(&entries)?;
        Ok(token)
    }

    /// Revokes a user's token; returns whether the user existed.
    pub fn remove(&self, name: &str) -> Result<bool, AppError> {
        let mut entries = self.lock();
        let before = entries.len();
        entries.retain(|entry| entry.name != name);
        if entries.len() == before {
            return Ok(false);
        }
        self.save(&entries)?;
        Ok(true)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Entry>> {
        self.entries.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn save(&self, entries: &[Entry]) -> Result<(), AppError> {
        let text = serde_json::to_vec_pretty(entries).unwrap_or_default();
        self.home.write_private(&file(&self.home), &text)
    }
}

fn file(home: &ServerHome) -> PathBuf {
    home.file("people.json")
}
