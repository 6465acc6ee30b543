-- The labels that an export holds, by query, where they were made anew (annotation.exports.label_sources.aggregated_labels).
-- What all grades make (`by_grades`) is no label of the collection, which may become another one. No locks; new rows.
INSERT INTO corpus_exportedlabels (record_id, query_id, split, pairs, grades, origins)
SELECT :record, query, '', array_agg(pair ORDER BY pair), array_agg(grade ORDER BY pair),
       array_agg(origin ORDER BY pair)
FROM (
    SELECT p.query_id AS query, p.id AS pair, CASE WHEN :by_grades THEN NULL ELSE l.grade END AS grade, l.origin
    FROM unnest(:label_pairs::bigint[], :label_grades::smallint[], :label_origins::text[]) AS l(pair_id, grade, origin)
    JOIN current_pair p ON p.id = l.pair_id AND p.collection_id = :collection
    WHERE (:origins::text[] IS NULL OR l.origin = ANY(:origins::text[]))
      AND NOT EXISTS (SELECT FROM unnest(:left_out::bigint[]) AS gone(pair) WHERE gone.pair = p.id)
) held GROUP BY query;
