-- Bodies of attempts, in 16 partitions by campaign: what is counted never reads them. Who truncates the table truncates
-- its partitions, which refuse it.

CREATE TABLE judges_attemptbody (
    campaign_id bigint NOT NULL REFERENCES judges_campaign ON DELETE CASCADE,
    attempt_id bigint NOT NULL,
    messages bytea NOT NULL,
    raw bytea NOT NULL,
    PRIMARY KEY (campaign_id, attempt_id)
) PARTITION BY HASH (campaign_id);

CREATE FUNCTION judges_no_truncate() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'Cannot truncate table %: it is append-only', TG_TABLE_NAME; END $$;

DO $$
BEGIN
    FOR n IN 0..15 LOOP
        EXECUTE format(
            'CREATE TABLE judges_attemptbody_%1$s PARTITION OF judges_attemptbody '
            'FOR VALUES WITH (MODULUS 16, REMAINDER %1$s); '
            'ALTER TABLE judges_attemptbody_%1$s ALTER COLUMN messages SET STORAGE EXTERNAL, '
            'ALTER COLUMN raw SET STORAGE EXTERNAL; '
            'CREATE TRIGGER no_truncate BEFORE TRUNCATE ON judges_attemptbody_%1$s '
            'FOR EACH STATEMENT EXECUTE FUNCTION judges_no_truncate()', n);
    END LOOP;
END $$;

-- Attempts whose answers count: of a document that is judged in windows, those on the deciding window.

CREATE VIEW counted_attempt AS
SELECT a.* FROM judges_attempt a
WHERE a.counts AND (a."window" = 0 OR EXISTS (
    SELECT FROM judges_work w
    WHERE w.campaign_id = a.campaign_id AND w.pair_id = a.pair_id AND w."window" = a."window"));
