-- Labels of a filling's pairs that people gave, or the policy of this filling. Reads only.
SELECT p.query_id, p.document_id, l.grade, l.origin
FROM benchmark_filling f CROSS JOIN LATERAL unnest(f.pairs) AS asked(pair_id)
JOIN corpus_pair p ON p.id = asked.pair_id
JOIN corpus_label l ON l.pair_id = asked.pair_id AND l.aspect_id IS NULL
WHERE f.id = :filling AND (l.origin = ANY(:final) OR (
    -- As in count_funnel.sql: of an ended campaign before one that goes on.
    SELECT w.state FROM judges_work w WHERE w.pair_id = p.id AND w.campaign_id = ANY(:campaigns)
    ORDER BY w.state IN ('pending', 'running'), w.state = 'failed', w.campaign_id DESC LIMIT 1) = 'labelled')
ORDER BY p.query_id, p.document_id;
