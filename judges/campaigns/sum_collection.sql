-- The newest campaign that judges and was not cancelled, with the sums of all that judge. Reads only.
SELECT c.id, c.number, c.policy, c.state, c.stopped_by, c.paused_because, c.protocol::json, sums.totals
FROM (SELECT COALESCE(json_object_agg(key, value), '{}') AS totals FROM (
    SELECT t.key, sum(t.value) AS value FROM judges_tally t JOIN judges_campaign g ON g.id = t.campaign_id
    WHERE g.collection_id = :collection AND g.kind = 'judging'
      AND (t.key LIKE 'calls%' OR t.key LIKE 'tokens%' OR t.key LIKE 'cost%'
        OR t.key LIKE 'answered:%') GROUP BY t.key) counters) sums
LEFT JOIN LATERAL (
    SELECT * FROM judges_campaign WHERE collection_id = :collection AND kind = 'judging' AND state <> :cancelled
    ORDER BY id DESC LIMIT 1) c ON true;
