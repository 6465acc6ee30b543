-- People's answers on the drawn pairs of a campaign, by route and part. Reads only.
WITH drawn AS (
    SELECT a.id, a.stratum, a.label, a.probability, coalesce(width_bucket(w.ended_at, g.sampled_at), 0) AS part,
        i.state,
        (SELECT j.grade FROM current_judgment j WHERE j.item_id = i.id AND i.state = 'settled'
         GROUP BY j.grade
         ORDER BY bool_or(j.step = 'adjudication') DESC, count(*) DESC LIMIT 1) >= :relevant AS relevant
    FROM judges_audit a JOIN corpus_item i ON i.id = a.item_id JOIN judges_campaign g ON g.id = a.campaign_id
    LEFT JOIN judges_work w ON w.campaign_id = a.campaign_id AND w.pair_id = a.pair_id
    WHERE a.campaign_id = :campaign
)
SELECT stratum, part, count(*), count(relevant), count(*) FILTER (WHERE relevant = (label = 1)),
       count(*) FILTER (WHERE state = 'conflict'), sum(1 / probability)
FROM drawn GROUP BY stratum, part ORDER BY stratum, part;
