-- Passes on what a held run prints, for a few minutes.
CREATE OR REPLACE FUNCTION ralph_seal.output(of_run TEXT, of_epoch BIGINT, said BYTEA) RETURNS VOID
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    INSERT INTO ralph_seal.output (run, epoch, lines)
    SELECT of_run, of_epoch, said FROM ralph_seal.leases l JOIN ralph_seal.runs r USING (run)
    WHERE run = of_run AND l.epoch = of_epoch AND l.until > now() AND length(said) <= 65536
        AND (r.given_role = session_user OR pg_has_role(session_user, current_user, 'MEMBER'));
    DELETE FROM ralph_seal.output WHERE run = of_run AND at < now() - interval '2 minutes'
        AND EXISTS (SELECT FROM ralph_seal.leases WHERE run = of_run AND epoch = of_epoch);
$$
