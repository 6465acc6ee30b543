-- The newest answer of each assessor to each comparison of a collection, or of one set (:set not null), without
-- withdrawn ones. Locks nothing.
SELECT c.id, a.query_id, a.document_id, b.document_id, newest.outcome, newest.assessor_id,
    CASE WHEN assessor.kind = 'person' THEN 'person' ELSE 'judge' END, newest.swapped
FROM annotation_comparisonset s
JOIN annotation_comparison c ON c.set_id = s.id
JOIN corpus_pair a ON a.id = c.first_id
JOIN corpus_pair b ON b.id = c.second_id
JOIN LATERAL (
    SELECT DISTINCT ON (p.assessor_id) p.assessor_id, p.outcome, p.swapped
    FROM annotation_preference p WHERE p.comparison_id = c.id ORDER BY p.assessor_id, p.id DESC
) newest ON newest.outcome <> ''
JOIN corpus_assessor assessor ON assessor.id = newest.assessor_id
WHERE s.collection_id = :collection AND (:set::bigint IS NULL OR s.id = :set::bigint)
ORDER BY s.number, c.seq, newest.assessor_id;
