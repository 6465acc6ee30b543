-- Reference grades of what is current, by query; of several the newest. Those of the collection's own experts
-- measure people and belong to no qrels. Reads only.
SELECT p.query_id, array_agg(p.document_id ORDER BY p.document_id), array_agg(s.grade ORDER BY p.document_id),
       array_agg('original'::text)
FROM (
    SELECT DISTINCT ON (j.pair_id) j.pair_id, j.grade
    FROM corpus_assessor a JOIN current_judgment j ON j.assessor_id = a.id
    WHERE a.collection_id = :collection AND a.kind = 'reference' AND a.name <> 'experts' AND j.aspect_id IS NULL
    ORDER BY j.pair_id, j.id DESC
) s JOIN current_pair p ON p.id = s.pair_id
GROUP BY p.query_id;
