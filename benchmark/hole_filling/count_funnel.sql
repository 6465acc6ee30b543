-- What became of the pairs that a filling asked about; the last column is how many stand alike in all others. Of each
-- pair: its outcome in a campaign of this configuration, and the label. DISTINCT ON keeps one row of work for each
-- pair: of an ended campaign before one that goes on, and a failure only where none gave an outcome. A pair was
-- dropped by the filter when nobody else was asked about it. Reads only.
WITH asked AS MATERIALIZED (SELECT unnest(pairs) AS pair_id FROM benchmark_filling WHERE id = :filling),
work AS MATERIALIZED (
    SELECT DISTINCT ON (w.pair_id) w.pair_id, w.state, w.label, w.agreed_in_round, w.campaign_id
    FROM asked JOIN judges_work w ON w.pair_id = asked.pair_id AND w.campaign_id = ANY(:campaigns)
    ORDER BY w.pair_id, w.state IN ('pending', 'running'), w.state = 'failed', w.campaign_id DESC
)
SELECT w.state, w.agreed_in_round, coalesce(l.origin = ANY(:final), false), coalesce(l.grade >= :relevant, false),
    coalesce(:filtered AND w.state = 'labelled' AND w.label = 0 AND w.agreed_in_round IS NULL AND NOT EXISTS (
        SELECT FROM judges_attempt a WHERE a.campaign_id = w.campaign_id AND a.pair_id = w.pair_id
            AND a.role IN ('for', 'against', 'vote')), false),
    count(*)
FROM asked LEFT JOIN work w ON w.pair_id = asked.pair_id
LEFT JOIN corpus_label l ON l.pair_id = asked.pair_id AND l.aspect_id IS NULL
GROUP BY 1, 2, 3, 4, 5;
