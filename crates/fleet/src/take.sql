-- Gives a worker one of the runs that wait, if one fits: the dispatcher of the fleet.
--
-- Workers call it with their own login, which sees no run until it is given one, so the function has the rights of its owner.
-- It only points a worker at a run. The lease decides who drives it; a run whose worker doesn't take its lease waits again.
CREATE OR REPLACE FUNCTION ralph_seal.take(asking TEXT) RETURNS TEXT LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET jit = off SET enable_seqscan = off AS $$
DECLARE
    given TEXT;
BEGIN
    -- Takes run one after another: each sees what the one before it gave away, so `at_once` and fairness hold. A worker's own login
    -- may not take this lock, and so can't stop the others; an advisory lock has no such protection.
    LOCK TABLE ralph_seal.version IN SHARE ROW EXCLUSIVE MODE;

    PERFORM ralph_seal.pulse();

    -- A worker that was cut off gets its own runs back first: it has their files.
    UPDATE ralph_seal.runs SET status = 'queued', not_before = now() + interval '10 seconds' WHERE run = (
        SELECT run FROM ralph_seal.runs r JOIN ralph_seal.leases l USING (run) JOIN ralph_seal.workers w ON w.id = r.worker
        WHERE r.worker = asking AND r.status = 'driven' AND l.until <= now()
            AND NOT w.draining AND NOT w.revoked AND w.health = 'ok'
            AND (w.role = session_user OR pg_has_role(session_user, current_user, 'MEMBER'))
        LIMIT 1 FOR UPDATE OF r, l SKIP LOCKED
    ) RETURNING run INTO given;
    IF given IS NOT NULL THEN
        RETURN given;
    END IF;

    -- Runs whose lease ran out wait again. Both rows are locked: a run that is being taken right now stays with its new driver.
    -- Nobody could renew a lease while the database was down, so that time doesn't count.
    WITH lost AS (
        UPDATE ralph_seal.runs SET status = 'queued', worker = NULL, fault = 'lost' WHERE run IN (
            SELECT run FROM ralph_seal.runs r JOIN ralph_seal.leases l USING (run)
            WHERE r.worker IS NOT NULL AND r.status = 'driven' AND (l.until IS NULL
                OR l.until <= now() AND now() >= l.lasts + (SELECT up_since FROM ralph_seal.pulse))
            FOR UPDATE SKIP LOCKED
        ) RETURNING run
    )
    UPDATE ralph_seal.faults SET total = total + (SELECT count(*) FROM lost)
    WHERE class = 'lost' AND EXISTS (SELECT FROM lost);

    WITH RECURSIVE
    -- Runs that workers drive, or were given a moment ago.
    active AS MATERIALIZED (
        SELECT worker, person, source FROM ralph_seal.runs
        WHERE worker IS NOT NULL AND (status = 'driven' OR status = 'queued' AND not_before > now())
    ),
    by_person AS MATERIALIZED (SELECT person, count(*) AS runs FROM active GROUP BY person),
    by_source AS MATERIALIZED (SELECT source, count(*) AS runs FROM active GROUP BY source),
    me AS MATERIALIZED (
        SELECT id, role, labels, kinds,
            ARRAY(SELECT substr(label, 6) FROM unnest(labels) label WHERE starts_with(label, 'repo:')) AS repos
        FROM ralph_seal.workers
        WHERE id = asking AND NOT draining AND NOT revoked AND health = 'ok'
            -- A worker that was enrolled asks for itself alone; the server's login asks for every worker.
            AND (role = session_user OR pg_has_role(session_user, current_user, 'MEMBER'))
            AND capacity > (SELECT count(*) FROM active WHERE worker = asking)
    ),
    -- What waiting runs need: one index probe per different set of labels. Runs that this worker can't take end here, so they cost
    -- it nothing, however many they are.
    wanted AS (
        SELECT min(needs) AS needs FROM ralph_seal.runs WHERE status = 'queued'
        UNION ALL
        SELECT (SELECT min(r.needs) FROM ralph_seal.runs r WHERE r.status = 'queued' AND r.needs > w.needs)
        FROM wanted w WHERE w.needs IS NOT NULL
    ),
    -- Who has such runs, and from which source: one index probe for each, too.
    groups AS (
        SELECT first.* FROM me JOIN wanted w ON w.needs <@ me.labels CROSS JOIN LATERAL (
            SELECT needs, person, source FROM ralph_seal.runs r WHERE status = 'queued' AND r.needs = w.needs
            ORDER BY person, source LIMIT 1
        ) first
        UNION ALL
        SELECT next.* FROM groups g CROSS JOIN LATERAL (
            SELECT needs, person, source FROM ralph_seal.runs r
            WHERE status = 'queued' AND r.needs = g.needs AND (r.person, r.source) > (g.person, g.source)
            ORDER BY person, source LIMIT 1
        ) next
    ),
    -- The oldest run of each that this worker can take.
    heads AS (
        SELECT head.run, head.queued_at, coalesce(p.runs, 0) AS active
        FROM me CROSS JOIN groups g LEFT JOIN by_person p USING (person) LEFT JOIN by_source s USING (source)
        CROSS JOIN LATERAL (
            SELECT run, queued_at FROM ralph_seal.runs r
            WHERE r.status = 'queued' AND r.needs = g.needs AND r.person = g.person AND r.source = g.source
                AND r.not_before <= now() AND r.kinds <= me.kinds
                AND (r.avoid IS DISTINCT FROM me.id OR r.avoid_until <= now())
                AND (r.at_once IS NULL OR r.at_once > coalesce(s.runs, 0))
                AND (me.repos = '{}' OR EXISTS (
                    SELECT FROM unnest(me.repos) known
                    WHERE right('/' || regexp_replace(r.repo, '(\.git)?/*$', ''), length(known) + 1)
                        IN ('/' || known, ':' || known)
                ))
            ORDER BY r.queued_at LIMIT 1
        ) head
    ),
    pick AS (
        SELECT r.run FROM ralph_seal.runs r JOIN heads USING (run)
        WHERE r.status = 'queued' AND r.not_before <= now()
        ORDER BY heads.active, heads.queued_at, run LIMIT 1 FOR UPDATE OF r SKIP LOCKED
    )
    -- Ten seconds to take its lease.
    UPDATE ralph_seal.runs r SET worker = me.id, given_role = me.role, not_before = now() + interval '10 seconds'
    FROM pick, me WHERE r.run = pick.run RETURNING r.run INTO given;
    RETURN given;
END
$$
