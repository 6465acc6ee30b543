-- Pairs that people were asked about, by stratum, with their probability; null where they have not settled one
-- yet. An escalated pair, and a labelled one that people met before, were asked for certain; the others by the
-- audit's draw. A labelled pair that an admin handed to people after an audit failed
-- (annotation.quality.label_quality.returning) is in no sample. Reads only.
WITH sampled AS (
    SELECT w.pair_id, a.item_id AS item, a.stratum, a.probability
    FROM judges_work w JOIN judges_audit a ON a.campaign_id = w.campaign_id AND a.pair_id = w.pair_id
    WHERE w.campaign_id = :campaign AND w.state IN ('labelled', 'escalated') AND w.reason <> 'error'
    UNION ALL
    SELECT w.pair_id, i.id, 'asked ' || CASE w.state WHEN 'escalated' THEN w.reason ELSE w.state END, 1.0
    FROM judges_work w JOIN LATERAL (
        SELECT id FROM corpus_item WHERE pair_id = w.pair_id AND reason NOT IN ('audit', 'evidence')
            AND NOT is_measuring(reason) AND state <> 'withdrawn'
        ORDER BY state = 'settled' DESC, id DESC LIMIT 1) i ON true
    WHERE w.campaign_id = :campaign AND w.state IN ('labelled', 'escalated') AND w.reason <> 'error'
      AND NOT EXISTS (
        SELECT FROM judges_audit a WHERE a.campaign_id = w.campaign_id AND a.pair_id = w.pair_id)
)
SELECT s.pair_id, s.stratum, s.probability,
    (SELECT j.grade FROM current_judgment j JOIN corpus_item i ON i.id = j.item_id
     WHERE j.item_id = s.item AND i.state = 'settled' AND j.step IN ('final', 'adjudication')
     GROUP BY j.grade ORDER BY bool_or(j.step = 'adjudication') DESC, count(*) DESC LIMIT 1) >= :relevant
FROM sampled s;
