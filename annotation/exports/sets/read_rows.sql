-- Labelled pairs of a training set with their teacher scores, by query id and document id. `labels`: resolved;
-- machine, those of policies; or made, aggregated of all grades (annotation.exports.label_sources.aggregated_labels).
-- The time is that of the pair's newest judgment: labels themselves may be rebuilt at any time. Reads only.
WITH labels AS (
    SELECT l.pair_id, l.grade, l.origin, NULL::float8 AS posterior FROM corpus_label l
    WHERE :labels = 'resolved' AND l.aspect_id IS NULL
    UNION ALL
    (SELECT DISTINCT ON (j.pair_id) j.pair_id, j.grade, a.name, NULL
     FROM current_judgment j JOIN corpus_assessor a ON a.id = j.assessor_id AND a.collection_id = :collection
     WHERE :labels = 'machine' AND a.kind = 'policy' AND j.step <> 'adjudication' AND j.aspect_id IS NULL
     ORDER BY j.pair_id, j.id DESC)
    UNION ALL
    SELECT aggregated.* FROM unnest(:label_pairs::bigint[], :label_grades::smallint[], :label_origins::text[],
                              :label_posteriors::float8[]) AS aggregated(pair_id, grade, origin, posterior)
)
SELECT p.id, p.query_id, p.document_id, p.query, p.document, l.grade, l.origin, p.teacher_score,
       coalesce(v.yes, 0)::int, coalesce(v.votes, 0)::int, coalesce(v.panel, 0)::int,
       (SELECT max(j.created_at) FROM current_judgment j WHERE j.pair_id = p.id AND j.aspect_id IS NULL), l.posterior
FROM labels l JOIN current_pair p ON p.id = l.pair_id AND p.collection_id = :collection
LEFT JOIN last_votes(:campaigns) v ON v.pair_id = p.id
WHERE (:origins::text[] IS NULL OR l.origin = ANY(:origins::text[]))
  AND NOT EXISTS (SELECT FROM unnest(:left_out::bigint[]) AS excluded(pair) WHERE excluded.pair = p.id)
ORDER BY p.query COLLATE "C", p.document COLLATE "C";
