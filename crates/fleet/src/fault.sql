-- Ends a hold that has no result. Each class of fault has one answer:
--
-- outage   the database, the store or the network: again soon, never counted
-- crash    the driver died: held back for 10 s, 30 s, 2 min, 10 min
-- worker   this machine can't drive the run: others may at once, this one after the same times
--
-- After five crashes or unfit workers without an iteration in between, the run rests until a person steers it. A lease that
-- runs out is the fourth class, `lost`; `take` answers it.
CREATE OR REPLACE FUNCTION ralph_seal.fault(of_run TEXT, of_epoch BIGINT, class TEXT, why TEXT) RETURNS BOOLEAN
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    times CONSTANT interval[] := ARRAY['10 seconds', '30 seconds', '2 minutes', '10 minutes'];
    counted CONSTANT int := CASE WHEN class = 'outage' THEN 0 ELSE 1 END;
BEGIN
    UPDATE ralph_seal.leases l SET until = NULL, holder = NULL
    FROM ralph_seal.runs r
    WHERE l.run = of_run AND l.epoch = of_epoch AND l.holder IS NOT NULL AND r.run = l.run
        AND (r.given_role = session_user OR pg_has_role(session_user, current_user, 'MEMBER'));
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    UPDATE ralph_seal.runs r SET
        status = CASE WHEN r.fails + counted >= 5 THEN 'resting' ELSE 'queued' END,
        fails = r.fails + counted, tries = r.tries + 1, fault = class, problem = why,
        avoid = CASE class WHEN 'worker' THEN r.worker END, avoid_until = now() + times[least(r.fails + 1, 4)],
        worker = NULL,
        not_before = now() + CASE class
            WHEN 'outage' THEN least(60, power(2, least(r.tries, 6))) * (0.5 + random() / 2) * interval '1 second'
            WHEN 'worker' THEN interval '0'
            ELSE times[least(r.fails + 1, 4)]
        END
    WHERE r.run = of_run;
    UPDATE ralph_seal.faults f SET total = total + 1 WHERE f.class = fault.class;
    RETURN true;
END
$$
