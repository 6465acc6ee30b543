-- Of labels that judges gave, and of pairs that people settled: with a reference grade, and equal to it. Reads
-- only.
WITH own AS MATERIALIZED (
    SELECT pair_id, state, label FROM judges_work
    WHERE campaign_id = :campaign AND state IN ('labelled', 'escalated')
),
gold AS (SELECT pair_id, grade >= :relevant AS relevant FROM reference_grades(:collection))
SELECT count(*) FILTER (WHERE w.state = 'labelled'),
    count(*) FILTER (WHERE w.state = 'labelled' AND (w.label = 1) = gold.relevant),
    count(*) FILTER (WHERE w.state = 'escalated' AND l.origin IN ('people', 'adjudicator')),
    count(*) FILTER (WHERE w.state = 'escalated' AND l.origin IN ('people', 'adjudicator')
                     AND (l.grade >= :relevant) = gold.relevant)
FROM own w JOIN gold ON gold.pair_id = w.pair_id
LEFT JOIN corpus_label l ON l.pair_id = w.pair_id AND l.aspect_id IS NULL;
