-- What people marked in documents, by query id and document id. Reads only.
SELECT p.query, p.document, a.name, j.grade, span.start, span.end,
       substr(d.text, span.start + 1, span.end - span.start), j.created_at
FROM current_judgment j JOIN corpus_assessor a ON a.id = j.assessor_id AND a.collection_id = :collection
CROSS JOIN LATERAL (
    SELECT (bounds ->> 0)::int AS start, (bounds ->> 1)::int AS end FROM jsonb_array_elements(j.spans) bounds) span
JOIN current_pair p ON p.id = j.pair_id AND p.collection_id = :collection
JOIN corpus_document d ON d.id = p.document_id
WHERE j.spans IS NOT NULL AND j.aspect_id IS NULL
ORDER BY p.query COLLATE "C", p.document COLLATE "C", a.name COLLATE "C", j.id, span.start;
