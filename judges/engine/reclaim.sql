-- Reclaim the reservations of dead workers in all campaigns of the collection, whose money may be missing here. The
-- answers of this machine's workers were recovered before; those of another machine may be lost with it (its name is
-- before the @ of the holder), so the reservations of its workers count as spent: their calls were possibly sent and
-- paid. Lock order: the collection's advisory lock (LOCK) with a limit; reservations, tally, the collection's tally.
WITH dead AS (
    DELETE FROM judges_reservation v USING judges_campaign c
    WHERE c.id = v.campaign_id AND v.until < now()
      AND c.collection_id = (SELECT collection_id FROM judges_campaign WHERE id = :campaign)
    RETURNING v.campaign_id, c.collection_id, v.usd, v.calls,
        strpos(v.holder, '@') > 0 AND split_part(v.holder, '@', 1) <> split_part(:holder, '@', 1) AS lost
),
counted AS (
    INSERT INTO judges_tally AS t (campaign_id, shard, key, value)
    SELECT campaign_id, 0, key, sum(value) FROM dead CROSS JOIN LATERAL
        (VALUES ('calls_possible', calls::float8), ('cost_possible', usd)) AS k(key, value)
    WHERE lost AND value > 0 GROUP BY 1, 3 ORDER BY 1, 3
    ON CONFLICT (campaign_id, shard, key) DO UPDATE SET value = t.value + EXCLUDED.value
)
INSERT INTO judges_collectiontally AS t (collection_id, shard, spent, day, day_spent)
SELECT collection_id, 0, sum(usd), (now() AT TIME ZONE 'UTC')::date, sum(usd)
FROM dead WHERE lost GROUP BY 1 HAVING sum(usd) > 0
ON CONFLICT (collection_id, shard) DO UPDATE
SET spent = t.spent + EXCLUDED.spent, day = GREATEST(t.day, EXCLUDED.day),
    day_spent = CASE WHEN t.day > EXCLUDED.day THEN t.day_spent WHEN t.day < EXCLUDED.day THEN EXCLUDED.day_spent
                     ELSE t.day_spent + EXCLUDED.day_spent END;
