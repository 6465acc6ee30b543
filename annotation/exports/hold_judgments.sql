-- The pairs whose judgments an export holds, by query; `marks`: those with marks alone. No locks; new rows.
INSERT INTO corpus_exportedlabels (record_id, query_id, split, pairs, grades, origins)
SELECT :record, query, '', array_agg(pair ORDER BY pair), array_agg(grade ORDER BY pair),
       array_agg(origin ORDER BY pair)
FROM (
    SELECT p.query_id AS query, p.id AS pair, NULL::smallint AS grade, '' AS origin
    FROM current_judgment j JOIN corpus_assessor a ON a.id = j.assessor_id AND a.collection_id = :collection
    JOIN current_pair p ON p.id = j.pair_id AND p.collection_id = :collection
    WHERE j.aspect_id IS NULL AND (NOT :marks OR j.spans IS NOT NULL)
    UNION
    SELECT p.query_id, p.id, NULL, ''
    FROM counted_attempt v JOIN judges_campaign c ON c.id = v.campaign_id AND c.collection_id = :collection
    JOIN current_pair p ON p.id = v.pair_id AND p.collection_id = :collection
    WHERE NOT :marks AND v.role = 'vote' AND v.outcome = 'labelled'
) judgments GROUP BY query;
