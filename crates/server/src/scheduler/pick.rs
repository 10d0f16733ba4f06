//! Picks the next run: fewest active runs of its user, then of its repo, then longest waiting.

use super::Queued;
use crate::live::Driven;
use std::collections::BTreeMap;

/// Limits for active runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// On this server.
    pub runs: usize,
    /// By sandbox provider.
    pub providers: BTreeMap<String, usize>,
}

/// Index of the next run; `None` if there is no room.
pub(super) fn next(waiting: &[Queued], running: &[Driven], limits: &Limits) -> Option<usize> {
    if running.len() >= limits.runs {
        return None;
    }
    let with = |provider: &str| running.iter().filter(|one| one.provider == provider).count();
    let room = |provider: &str| {
        limits.providers.get(provider).map_or(usize::MAX, |most| most.saturating_sub(with(provider)))
    };
    let fits = |queued: &Queued| room(&queued.provider) > 0;
    let of_person = |name: &str| running.iter().filter(|one| one.person.as_deref() == Some(name)).count();
    let of_repo = |repo: &str| running.iter().filter(|one| one.repo == repo).count();
    waiting
        .iter()
        .enumerate()
        .filter(|(_, queued)| queued.problem.is_none() && fits(queued))
        .min_by_key(|(at, queued)| (of_person(&queued.person), of_repo(&queued.repo), *at))
        // Runs of a race start together. The queue waits for enough places, or smaller ones would take them
        // forever.
        .filter(|(_, queued)| {
            let free = (limits.runs - running.len()).min(room(&queued.provider));
            queued.places() <= free
        })
        .map(|(at, _)| at)
}

impl Limits {
    /// Why this many runs can never start together, if so.
    pub(crate) fn refuse(&self, places: usize, provider: &str) -> Option<String> {
        let provided = self.providers.get(provider).copied().unwrap_or(usize::MAX);
        let most = self.runs.min(provided);
        (places > most).then(|| {
            format!("a race of {places} needs as many places at once, and this server has {most} of them")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;
    use ralph_loop_app::RunRequest;
    use ralph_loop_protocol::id::RunId;

    fn queued(person: &str, repo: &str, provider: &str) -> Queued {
        Queued {
            id: RunId::new("x"),
            title: String::new(),
            request: RunRequest::default(),
            person: person.into(),
            provider: provider.into(),
            repo: repo.into(),
            at: Timestamp::UNIX_EPOCH,
            auth: None,
            profiles: (None, None),
            problem: None,
            limits: (0, 0.0),
        }
    }

    #[test]
    fn turns_go_round_between_people_and_repos_within_the_limits() {
        let limits = Limits { runs: 3, providers: [("docker".to_owned(), 1)].into() };
        let waiting = [
            queued("ann", "a", "local"),
            queued("ann", "b", "local"),
            queued("bob", "a", "docker"),
            queued("bob", "a", "local"),
        ];
        let run = |at: usize| waiting[at].load().remove(0);
        assert_eq!(next(&waiting, &[], &limits), Some(0));
        assert_eq!(next(&waiting[1..], &[run(0)], &limits), Some(1), "bob has none yet");
        assert_eq!(next(&waiting[..2], &[run(0)], &limits), Some(1), "the other repo");
        assert_eq!(next(&waiting[2..], &[run(2)], &limits), Some(1), "docker is full");
        assert_eq!(next(&waiting[2..3], &[run(2)], &limits), None);
        assert_eq!(next(&waiting, &[run(0), run(1), run(3)], &limits), None, "the server is full");
        let mut race = queued("eve", "c", "local");
        let runs = ["x", "y", "z"].map(RunId::new).to_vec();
        race.request.race = Some(ralph_loop_app::RaceRequest { runs, ..Default::default() });
        let both = [race.clone(), queued("ann", "a", "local")];
        assert_eq!(next(&both, &[], &limits), Some(0));
        assert_eq!(race.load().len(), 3);
        assert_eq!(
            next(&both, &[run(0)], &limits),
            None,
            "it waits for three slots, and no other run takes them"
        );
        assert!(limits.refuse(3, "local").is_none() && limits.refuse(4, "local").is_some());
        assert!(limits.refuse(2, "docker").is_some());
        let mut refused = queued("ann", "a", "local");
        refused.problem = Some("no".into());
        assert_eq!(next(&[refused], &[], &limits), None);
    }
}
