-- Store a judgment and all that follows from it. `taken` goes up for a late judgment on a returned lease; an item that
-- a bulk action reserved for a person is for everybody again. Lock order: assignment and item (locked by lock_own.sql),
-- label, tally.
WITH judged AS (
    INSERT INTO corpus_judgment (pair_id, assessor_id, item_id, step, grade, supersedes_id, arm, guideline,
                                 milliseconds, idle_milliseconds, spans, comment)
    VALUES (:pair, :assessor, :item, 'final', :grade, :supersedes, :arm,
            coalesce((SELECT max(version) FROM annotation_guideline WHERE collection_id = :collection), 0),
            :milliseconds, :idle, :spans::jsonb, :comment)
    RETURNING id
), ended AS (
    UPDATE annotation_assignment
    SET state = 'done', ended_at = now(), judgment_id = (SELECT id FROM judged), draft = NULL
    WHERE id = :assignment
), counted AS (
    UPDATE corpus_item
    SET done = done + 1, taken = taken + :retaken::int, state = :state::text,
        reserved = reserved AND reason IN ('study', 'repeat'),
        settled_at = CASE WHEN :state::text = 'settled' THEN now() END
    WHERE id = :item
), labelled AS (
    -- Never over a newer resolved item of the same pair, whose label follows from later judgments.
    INSERT INTO corpus_label AS l (pair_id, aspect_id, grade, origin)
    SELECT :pair::bigint, NULL::bigint, :label::int, 'people'
    WHERE :label::int IS NOT NULL AND NOT EXISTS (
        SELECT FROM corpus_item newer
        WHERE newer.pair_id = :pair AND newer.id > :item AND newer.state = 'settled'
          AND newer.reason <> 'evidence' AND newer.reason <> ALL (:measuring))
    ON CONFLICT (pair_id, aspect_id) DO UPDATE
    SET grade = EXCLUDED.grade, origin = EXCLUDED.origin, updated_at = now()
    WHERE (l.grade, l.origin) IS DISTINCT FROM (EXCLUDED.grade, EXCLUDED.origin)
      AND l.origin <> 'adjudicator'
), tallied AS (
    INSERT INTO judges_tally AS t (campaign_id, shard, key, value)
    SELECT :campaign::bigint, :shard::int, :tally::text, 1
    WHERE :campaign::bigint IS NOT NULL AND :label::int IS NOT NULL
    ON CONFLICT (campaign_id, shard, key) DO UPDATE SET value = t.value + EXCLUDED.value
)
SELECT id FROM judged;
