-- What dead workers of all the collection's campaigns held, since it may be what is refused here. The answers
-- that a worker of this machine had were taken over before; those of another machine may be lost with it (its
-- name stands before the holder's @), so what such a worker held counts as spent: its calls were possibly sent,
-- and paid. Lock order: the collection's advisory lock (LOCK) where caps are asked for; reservations, tally, the
-- collection's tally.
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
