-- The lines of the aspects file: aspects with their documents and what their last review said, by query id.
-- Reads only.
SELECT q.external_id, a.external_id, a.text, a.rationale, a.importance,
       COALESCE((SELECT array_agg(d.external_id ORDER BY d.external_id COLLATE "C")
                 FROM corpus_label l JOIN corpus_pair p ON p.id = l.pair_id
                 JOIN corpus_document d ON d.id = p.document_id
                 WHERE l.aspect_id = a.id AND l.grade >= :relevant_from AND d.is_current), '{}'),
       CASE WHEN v.id IS NULL THEN NULL
            WHEN v.final_id <> (SELECT n.id FROM corpus_aspectrevision n WHERE n.query_id = q.id
                                ORDER BY n.number DESC LIMIT 1) THEN 'outdated'
            WHEN v.accepted THEN 'accepted' ELSE 'changed' END,
       (SELECT (e ->> 'importance')::int FROM jsonb_array_elements(v.found) e WHERE e ->> 'id' = a.external_id),
       (v.own ->> a.external_id)::int
FROM corpus_aspect a JOIN corpus_query q ON q.id = a.query_id
LEFT JOIN LATERAL (
    SELECT r.id, r.final_id, r.accepted, f.aspects AS found, s.answers -> 'importances' AS own
    FROM corpus_aspectreview r JOIN corpus_aspectrevision f ON f.id = r.revision_id
    JOIN corpus_reviewstep s ON s.review_id = r.id AND s.kind = 'weights'
    WHERE r.query_id = q.id AND r.state = 'submitted' ORDER BY r.id DESC LIMIT 1
) v ON true
WHERE q.collection_id = :collection AND q.is_current AND a.is_current
ORDER BY q.external_id COLLATE "C", a.place, a.id;
