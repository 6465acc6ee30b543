-- The labels that an export holds, by query. No locks; new rows.
INSERT INTO corpus_exportedlabels (record_id, query_id, split, pairs, grades, origins)
SELECT :record, query, '', array_agg(pair ORDER BY pair), array_agg(grade ORDER BY pair),
       array_agg(origin ORDER BY pair)
FROM (
    SELECT p.query_id AS query, p.id AS pair, l.grade, l.origin
    FROM corpus_label l JOIN current_pair p ON p.id = l.pair_id AND p.collection_id = :collection
    WHERE l.aspect_id IS NULL AND (:origins::text[] IS NULL OR l.origin = ANY(:origins::text[]))
      AND NOT EXISTS (SELECT FROM unnest(:left_out::bigint[]) AS excluded(pair) WHERE excluded.pair = p.id)
) labels GROUP BY query;
