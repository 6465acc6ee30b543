-- Record the aggregated labels of an export by query (annotation.exports.label_sources.aggregated_labels). Those made
-- of all grades (`by_grades`) are not labels of the collection, so their grades are left out. No locks; new rows.
INSERT INTO corpus_exportedlabels (record_id, query_id, split, pairs, grades, origins)
SELECT :record, query, '', array_agg(pair ORDER BY pair), array_agg(grade ORDER BY pair),
       array_agg(origin ORDER BY pair)
FROM (
    SELECT p.query_id AS query, p.id AS pair, CASE WHEN :by_grades THEN NULL ELSE l.grade END AS grade, l.origin
    FROM unnest(:label_pairs::bigint[], :label_grades::smallint[], :label_origins::text[]) AS l(pair_id, grade, origin)
    JOIN current_pair p ON p.id = l.pair_id AND p.collection_id = :collection
    WHERE (:origins::text[] IS NULL OR l.origin = ANY(:origins::text[]))
      AND NOT EXISTS (SELECT FROM unnest(:left_out::bigint[]) AS excluded(pair) WHERE excluded.pair = p.id)
) labels GROUP BY query;
