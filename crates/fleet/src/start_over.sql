-- Takes back what was journaled of a run that was never prepared. Workers may delete nothing else.
CREATE OR REPLACE FUNCTION ralph_seal.start_over(of_run TEXT, of_epoch BIGINT) RETURNS BOOLEAN
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    UPDATE ralph_seal.leases l SET head = 0
    FROM ralph_seal.runs r
    WHERE l.run = of_run AND l.epoch = of_epoch AND l.until > now() AND r.run = l.run
        AND (r.given_role = session_user OR pg_has_role(session_user, current_user, 'MEMBER'));
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    DELETE FROM ralph_seal.events WHERE run = of_run;
    RETURN true;
END
$$
