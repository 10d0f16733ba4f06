-- Notes that the database is up. A gap is an outage, whose time no lease pays for.
CREATE OR REPLACE FUNCTION ralph_seal.pulse() RETURNS VOID LANGUAGE sql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
    UPDATE ralph_seal.pulse SET at = now(),
        up_since = CASE WHEN now() - at > interval '10 seconds' THEN now() ELSE up_since END
$$
