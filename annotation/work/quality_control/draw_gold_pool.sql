-- One random pair of each query that no gold set has yet, with what its stratum follows from. Reads only.
SELECT DISTINCT ON (p.query_id) p.query_id, p.id, cardinality(q.answers) AS answers,
       array_length(regexp_split_to_array(trim(q.text), '\s+'), 1) AS words
FROM corpus_pair p JOIN corpus_query q ON q.id = p.query_id AND q.is_current
JOIN corpus_document d ON d.id = p.document_id AND d.is_current
WHERE p.collection_id = :collection AND p.is_candidate
  AND NOT EXISTS (SELECT FROM annotation_goldpair g JOIN corpus_pair gp ON gp.id = g.pair_id
                  WHERE gp.query_id = p.query_id)
ORDER BY p.query_id, hashint8extended(p.id, :seed);
