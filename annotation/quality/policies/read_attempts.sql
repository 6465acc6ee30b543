-- Attempts of a campaign's ended pairs, pair by pair; one that failed has no outcome under any policy. A call
-- that was taken over from an earlier one counts as what that one took: a policy is priced as if it began. Reads
-- only.
SELECT a.pair_id, a.role, a.round + a.generation, a.agent_pair + a.place, a.outcome, a.counts, a.verdict, a.cached,
    coalesce(sent.milliseconds, a.milliseconds), CASE WHEN sent.id IS NULL THEN a.cost ELSE sent.cost END,
    CASE WHEN a.role IN ('for', 'against') AND a.counts THEN a.quotes END, a.probabilities,
    a."window", w."window"
FROM judges_work w
JOIN judges_attempt a ON a.campaign_id = w.campaign_id AND a.pair_id = w.pair_id
LEFT JOIN LATERAL (
    SELECT o.id, o.milliseconds, o.cost FROM judges_attempt o
    WHERE a.cached AND o.cache_key = a.cache_key AND o.outcome = 'labelled' AND NOT o.cached
    ORDER BY o.id LIMIT 1) sent ON true
WHERE w.campaign_id = :campaign AND w.state IN ('labelled', 'escalated') AND w.reason <> 'error'
    AND a.role = ANY(:roles)
ORDER BY a.pair_id, a.id;
