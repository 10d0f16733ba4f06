//! An in-memory search index of run texts: substring search over a hundred thousand database rows takes
//! seconds, here milliseconds. Filled when the list is first read, updated with each row. Only for SQLite:
//! several servers may write to a shared database.

use super::{Index, Pool};
use crate::http::problem::Problem;
use sqlx::sqlite::SqlitePool;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::RwLock;

/// Matches passed to the database by id; with more, rows are scanned in order.
const FEW: usize = 400;

/// Search text by run id.
type Texts = HashMap<String, Box<str>>;

/// Search texts; empty until the list is first read.
#[derive(Debug, Default)]
pub(super) struct Words {
    all: Arc<RwLock<Option<Texts>>>,
    /// Filling has started.
    begun: AtomicBool,
}

/// The result of a search.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// All matches.
    Few(Vec<String>),
    /// The number of matches.
    Many(i64),
}

impl Words {
    /// Updates written rows.
    pub(super) async fn put(&self, rows: impl Iterator<Item = (String, String)> + Send) {
        if let Some(all) = self.all.write().await.as_mut() {
            all.extend(rows.map(|(id, text)| (id, text.into_boxed_str())));
        }
    }

    pub(super) async fn remove(&self, run: &str) {
        if let Some(all) = self.all.write().await.as_mut() {
            all.remove(run);
        }
    }

    /// Clears everything until the next search.
    pub(super) async fn clear(&self) {
        *self.all.write().await = None;
        self.begun.store(false, Ordering::Release);
    }
}

impl Index {
    /// Fills the index in the background, once: after the list, a search is likely.
    pub(super) fn warm(self: &Arc<Self>) {
        if matches!(self.pool, Pool::Sqlite(_)) && !self.words.begun.swap(true, Ordering::AcqRel) {
            let own = self.clone();
            tokio::spawn(async move {
                if let Pool::Sqlite(pool) = &own.pool {
                    // A search retries and reports errors.
                    let _ = own.fill(pool).await;
                }
            });
        }
    }

    async fn fill(&self, pool: &SqlitePool) -> Result<(), sqlx::Error> {
        if self.words.all.read().await.is_some() {
            return Ok(());
        }
        let mut all = self.words.all.write().await;
        // Writers wait until everything is loaded, then add their rows.
        if all.is_none() {
            let rows: Vec<(String, String)> =
                sqlx::query_as("SELECT id, search FROM runs").fetch_all(pool).await?;
            *all = Some(rows.into_iter().map(|(id, text)| (id, text.into_boxed_str())).collect());
        }
        Ok(())
    }

    /// Runs containing all terms; `None` if the database must search.
    pub(super) async fn find(&self, words: &[String]) -> Result<Option<Found>, Problem> {
        let Pool::Sqlite(pool) = &self.pool else { return Ok(None) };
        if words.is_empty() {
            return Ok(None);
        }
        self.fill(pool).await?;
        let all = self.words.all.clone().read_owned().await;
        let words = words.to_vec();
        let found = tokio::task::spawn_blocking(move || all.as_ref().map(|all| look(all, &words))).await;
        Ok(found.unwrap_or_default())
    }
}

fn look(all: &Texts, words: &[String]) -> Found {
    // The longest term is likely the rarest.
    let mut words: Vec<&String> = words.iter().collect();
    words.sort_by_key(|word| std::cmp::Reverse(word.len()));
    let finders: Vec<memchr::memmem::Finder<'_>> =
        words.iter().map(|word| memchr::memmem::Finder::new(word.as_bytes())).collect();
    let (mut few, mut many) = (Vec::new(), 0_i64);
    for (id, text) in all {
        if finders.iter().all(|finder| finder.find(text.as_bytes()).is_some()) {
            many += 1;
            if few.len() < FEW {
                few.push(id.clone());
            }
        }
    }
    if usize::try_from(many).is_ok_and(|many| many == few.len()) {
        Found::Few(few)
    } else {
        Found::Many(many)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_must_stand_there_and_many_are_only_counted() {
        let row =
            |n: usize| (format!("r{n}"), format!("r{n} task {n} /home/project-{}", n % 7).into_boxed_str());
        let all: Texts = (0..1000).map(row).collect();
        let find = |words: &[&str]| look(&all, &words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>());
        assert_eq!(find(&["task", "r777 "]), Found::Few(vec!["r777".into()]));
        assert_eq!(find(&["task"]), Found::Many(1000));
        assert_eq!(find(&["nothing"]), Found::Few(Vec::new()));
        let Found::Few(some) = find(&["ject-3", "task"]) else { panic!("few") };
        assert_eq!(some.len(), 143);
    }
}
