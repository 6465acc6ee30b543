-- Store the outcomes of pairs, with their labels, judgments, items and audits. Everything is computed from `ended`,
-- the pairs whose lease is still ours, so a late worker changes nothing. Lock order: pairs (lock_pairs), work, then
-- judgments, labels, items, audits, tallies, each in the order of its keys.
WITH r AS MATERIALIZED (
    SELECT * FROM json_to_recordset(:rows::json) AS r(
        work bigint, fence int, campaign bigint, pair bigint, collection bigint, state text, label smallint,
        reason text, error text, agreed smallint, "window" smallint, uncertainty float8, priority float8,
        overlap smallint,
        assessor bigint, grade smallint, origin text, stratum text, probability float8, drawn bool)
),
ended AS (
    UPDATE judges_work w SET state = r.state, label = r.label, reason = r.reason, error = r.error,
        agreed_in_round = r.agreed, "window" = COALESCE(r."window", 0), stratum = COALESCE(r.stratum, ''),
        lease_until = NULL, ended_at = now()
    FROM r WHERE w.id = r.work AND w.fence = r.fence AND w.state = 'running'
    RETURNING r.*
),
judged AS (
    INSERT INTO corpus_judgment (pair_id, assessor_id, step, grade, supersedes_id, arm, guideline, comment)
    SELECT e.pair, e.assessor, 'final', e.grade, head.id, '', 0, ''
    FROM ended e LEFT JOIN LATERAL (
        SELECT j.id FROM judgment_head j
        WHERE j.pair_id = e.pair AND j.assessor_id = e.assessor AND j.item_id IS NULL AND j.aspect_id IS NULL
        ORDER BY j.id DESC LIMIT 1) head ON true
    WHERE e.state = 'labelled'
),
labelled AS (
    INSERT INTO corpus_label AS l (pair_id, aspect_id, grade, origin)
    SELECT e.pair, NULL::bigint, e.grade, e.origin FROM ended e WHERE e.state = 'labelled' ORDER BY e.pair
    ON CONFLICT (pair_id, aspect_id) DO UPDATE
    SET grade = EXCLUDED.grade, origin = EXCLUDED.origin, updated_at = now()
    WHERE (l.grade, l.origin) IS DISTINCT FROM (EXCLUDED.grade, EXCLUDED.origin)
      AND l.origin NOT IN ('people', 'adjudicator')
),
uncertain AS (
    UPDATE corpus_pair p SET uncertainty = e.uncertainty FROM ended e
    WHERE p.id = e.pair AND e.state = 'escalated' AND p.uncertainty <> e.uncertainty
),
standing AS MATERIALIZED (
    SELECT i.id, i.campaign, e.campaign AS taker FROM ended e JOIN corpus_item i ON i.pair_id = e.pair
        AND i.reason = e.reason AND i.state IN ('open', 'conflict') AND i.campaign IS DISTINCT FROM e.campaign
    WHERE e.state = 'escalated'
),
taken AS (UPDATE corpus_item i SET campaign = s.taker FROM standing s WHERE i.id = s.id),
moved AS (SELECT campaign FROM standing WHERE campaign IN (SELECT id FROM judges_campaign)),
opened AS (
    INSERT INTO corpus_item
        (collection_id, pair_id, campaign, reason, priority, overlap, seq, state, taken, done)
    SELECT collection, pair, campaign, reason, priority, overlap, next_seq(pair, reason), 'open', 0, 0
    FROM (
        SELECT e.collection, e.pair, e.campaign, e.reason, e.priority, e.overlap
        FROM ended e WHERE e.state = 'escalated' AND NOT EXISTS (
            SELECT 1 FROM corpus_item i
            WHERE i.pair_id = e.pair AND i.reason = e.reason AND i.state IN ('open', 'conflict'))
    ) new_items ORDER BY pair
),
routed AS MATERIALIZED (
    SELECT e.* FROM ended e WHERE e.state = 'labelled' AND e.stratum IS NOT NULL AND (
        SELECT true FROM corpus_item i
        WHERE i.pair_id = e.pair AND i.reason <> 'audit' AND NOT is_measuring(i.reason)
        LIMIT 1) IS NOT TRUE
),
drawn AS MATERIALIZED (
    SELECT e.*, i.id AS item, i.state AS item_state FROM routed e LEFT JOIN LATERAL (
        SELECT id, state FROM corpus_item WHERE pair_id = e.pair AND reason = 'audit' AND state <> 'withdrawn'
        ORDER BY seq DESC LIMIT 1) i ON true
    WHERE e.drawn
),
audit_items AS (
    INSERT INTO corpus_item
        (collection_id, pair_id, campaign, reason, priority, overlap, seq, state, taken, done)
    SELECT collection, pair, campaign, reason, priority, overlap, next_seq(pair, reason), 'open', 0, 0
    FROM (
        SELECT d.collection, d.pair, d.campaign, 'audit' AS reason, d.priority, 2 AS overlap
        FROM drawn d WHERE d.item IS NULL
    ) new_items ORDER BY pair
    ON CONFLICT DO NOTHING
    RETURNING id, pair_id
),
audited AS (
    INSERT INTO judges_audit (campaign_id, pair_id, item_id, stratum, probability, label)
    SELECT d.campaign, d.pair, COALESCE(d.item, n.id), d.stratum, d.probability, d.label
    FROM drawn d LEFT JOIN audit_items n ON n.pair_id = d.pair
    WHERE COALESCE(d.item, n.id) IS NOT NULL ORDER BY d.pair
    ON CONFLICT DO NOTHING
),
sums AS (
    SELECT campaign, :shard::int AS shard, key, sum(value) AS value FROM (
        SELECT campaign, CASE state WHEN 'labelled' THEN 'labelled:' || label
                                    WHEN 'escalated' THEN 'escalated:' || reason ELSE 'failed' END, 1 FROM ended
        UNION ALL SELECT campaign, 'agreed:' || agreed, 1 FROM ended WHERE agreed IS NOT NULL
        UNION ALL SELECT campaign, 'moved', 1 FROM moved
        UNION ALL SELECT campaign, 'route:' || stratum, 1 FROM routed
        UNION ALL SELECT campaign, 'escalated:audit', 1 FROM drawn
        UNION ALL SELECT campaign, 'audited', 1 FROM drawn WHERE item_state = 'settled') AS k(campaign, key, value)
    GROUP BY 1, 3 ORDER BY 1, 3
),
tallied AS (
    INSERT INTO judges_tally AS t (campaign_id, shard, key, value)
    SELECT campaign, shard, key, value FROM sums
    ON CONFLICT (campaign_id, shard, key) DO UPDATE SET value = t.value + EXCLUDED.value
)
SELECT work FROM ended;
