-- The grades of a version of the qrels, as read_rows.sql gives labels; not every pair of it is a row of corpus_pair.
-- Reads only.
SELECT coalesce(p.id, 0), q.id, d.id, q.external_id, d.external_id, of_query.grade, of_query.origin, p.teacher_score,
       coalesce(votes.yes, 0)::int, coalesce(votes.votes, 0)::int, coalesce(votes.panel, 0)::int,
       (SELECT max(j.created_at) FROM current_judgment j WHERE j.pair_id = p.id AND j.aspect_id IS NULL), NULL::float8
FROM benchmark_qrels v JOIN benchmark_qrelsrow r ON r.qrels_id = v.id
CROSS JOIN LATERAL unnest(r.documents, r.grades, r.origins) AS of_query(document_id, grade, origin)
JOIN corpus_query q ON q.id = r.query_id AND q.is_current
JOIN corpus_document d ON d.id = of_query.document_id AND d.is_current
LEFT JOIN corpus_pair p ON p.query_id = q.id AND p.document_id = d.id
LEFT JOIN last_votes(:campaigns) votes ON votes.pair_id = p.id
WHERE v.collection_id = :collection AND v.number = :qrels
ORDER BY q.external_id COLLATE "C", d.external_id COLLATE "C";
