-- Store an adjudicator's decision on a conflict and all that follows from it. Lock order: the item and its pair
-- (locked before), the label, the tally.
WITH judged AS (
    INSERT INTO corpus_judgment (pair_id, assessor_id, item_id, step, grade, supersedes_id, arm, guideline,
                                 milliseconds, idle_milliseconds, comment)
    VALUES (:pair, :assessor, :item, 'adjudication', :grade, :supersedes, :arm, :guideline,
            :milliseconds, :idle, :comment)
    RETURNING id
), settled AS (
    UPDATE corpus_item SET state = 'settled', settled_at = now() WHERE id = :item
), labelled AS (
    INSERT INTO corpus_label AS l (pair_id, aspect_id, grade, origin)
    VALUES (:pair, NULL, :grade::int, 'adjudicator')
    ON CONFLICT (pair_id, aspect_id) DO UPDATE
    SET grade = EXCLUDED.grade, origin = EXCLUDED.origin, updated_at = now()
    WHERE (l.grade, l.origin) IS DISTINCT FROM (EXCLUDED.grade, EXCLUDED.origin)
), tallied AS (
    INSERT INTO judges_tally AS t (campaign_id, shard, key, value)
    SELECT :campaign::bigint, :shard::int, :tally::text, 1 WHERE :campaign::bigint IS NOT NULL
    ON CONFLICT (campaign_id, shard, key) DO UPDATE SET value = t.value + EXCLUDED.value
)
SELECT id FROM judged;
