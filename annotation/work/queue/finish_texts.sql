-- Resolve an item that asks for texts instead of a grade; the texts are in corpus_target. Lock order: as
-- resolve_task.sql.
WITH ended AS (
    UPDATE annotation_assignment SET state = 'done', ended_at = now(), draft = NULL WHERE id = :assignment
), tallied AS (
    INSERT INTO judges_tally AS t (campaign_id, shard, key, value)
    SELECT :campaign::bigint, :shard::int, :tally::text, 1
    WHERE :campaign::bigint IS NOT NULL
    ON CONFLICT (campaign_id, shard, key) DO UPDATE SET value = t.value + EXCLUDED.value
)
UPDATE corpus_item
SET done = done + 1, taken = taken + :retaken::int, state = 'settled', settled_at = now(),
    reserved = reserved AND reason IN ('study', 'repeat')
WHERE id = :item;
