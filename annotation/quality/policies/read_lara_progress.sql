-- All pairs of a calibrated campaign with the votes that it calibrates. People's label is read for the pairs
-- alone that this campaign handed to them: no other can reach the fit. Reads only.
SELECT w.id, w.pair_id, p.query_id, w.state = 'escalated', v.verdict,
    coalesce((v.probabilities ->> 'yes')::float8, 1 - (v.probabilities ->> 'no')::float8),
    coalesce((v.probabilities ->> 'no')::float8, 1 - (v.probabilities ->> 'yes')::float8),
    (l.grade >= :relevant)::int
FROM judges_work w
JOIN corpus_pair p ON p.id = w.pair_id
JOIN counted_attempt v ON v.campaign_id = :source AND v.pair_id = w.pair_id AND v.role = 'vote'
    AND v.place = :place
LEFT JOIN corpus_label l ON l.pair_id = w.pair_id AND l.aspect_id IS NULL AND l.origin = ANY(:people)
    AND w.state = 'escalated'
WHERE w.campaign_id = :campaign ORDER BY w.pair_id;
