//! Words of runs, kept in memory: looking for a part of a word in a hundred thousand rows of a database takes seconds, here it takes
//! milliseconds. Filled once somebody looks at the list, who may search next, and kept as rows are written. For the index in a file only: to a database that
//! several servers share, others write as well.

use super::{Index, Pool};
use crate::problem::Problem;
use sqlx::sqlite::SqlitePool;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::RwLock;

/// Rows that are named to the database one by one; more are found by looking at them in their order.
const FEW: usize = 400;

/// What is searched of each run, by its id.
type Texts = HashMap<String, Box<str>>;

/// The words of all runs; nothing before somebody looks at the list.
#[derive(Debug, Default)]
pub(super) struct Words {
    all: Arc<RwLock<Option<Texts>>>,
    /// Somebody has begun to fill it.
    begun: AtomicBool,
}

/// What a search has found.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// All of them.
    Few(Vec<String>),
    /// So many.
    Many(i64),
}

impl Words {
    /// Keeps what is searched of rows that were written.
    pub(super) async fn put(&self, rows: impl Iterator<Item = (String, String)> + Send) {
        if let Some(all) = self.all.write().await.as_mut() {
            all.extend(rows.map(|(id, text)| (id, text.into_boxed_str())));
        }
    }

    /// Forgets a run.
    pub(super) async fn remove(&self, run: &str) {
        if let Some(all) = self.all.write().await.as_mut() {
            all.remove(run);
        }
    }

    /// Forgets everything, until somebody searches again.
    pub(super) async fn clear(&self) {
        *self.all.write().await = None;
        self.begun.store(false, Ordering::Release);
    }
}

impl Index {
    /// Fills the words in the background, once: whoever looks at the list may search next.
    pub(super) fn warm(self: &Arc<Self>) {
        if matches!(self.pool, Pool::Sqlite(_)) && !self.words.begun.swap(true, Ordering::AcqRel) {
            let own = self.clone();
            tokio::spawn(async move {
                if let Pool::Sqlite(pool) = &own.pool {
                    // A search tries again, and says what is wrong.
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
        // Whoever writes a row waits until they are all here, and adds its own then.
        if all.is_none() {
            let rows: Vec<(String, String)> =
                sqlx::query_as("SELECT id, search FROM runs").fetch_all(pool).await?;
            *all = Some(rows.into_iter().map(|(id, text)| (id, text.into_boxed_str())).collect());
        }
        Ok(())
    }

    /// The runs in which every one of these words stands; nothing where the database has to look itself.
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
    // The rarest is most likely the longest: most rows are left after one look.
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
