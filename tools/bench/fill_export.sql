-- A collection of labelled pairs: a hundred documents for each query.
INSERT INTO corpus_query (collection_id, external_id, version, is_current, text, metadata, content_hash, answers,
                          instruction)
SELECT :collection, 'q' || n, 1, true, 'A question.', '{}', md5('q' || n), '{}', ''
FROM generate_series(1, :queries) n;
INSERT INTO corpus_document (collection_id, external_id, version, is_current, text, metadata, content_hash, title)
SELECT :collection, 'd' || n, 1, true, repeat('word ', 130), '{}', md5('d' || n), ''
FROM generate_series(1, :documents) n;
INSERT INTO corpus_pair (collection_id, query_id, document_id, uncertainty)
SELECT :collection, q.id, d.id, 0
FROM (SELECT id, row_number() OVER (ORDER BY id) - 1 AS n FROM corpus_query WHERE collection_id = :collection) q
CROSS JOIN generate_series(0, 99) k
JOIN (SELECT id, row_number() OVER (ORDER BY id) - 1 AS n FROM corpus_document
      WHERE collection_id = :collection) d ON d.n = (q.n * 37 + k * 11) % :documents;
INSERT INTO corpus_label (pair_id, grade, origin)
SELECT id, id % 2, 'debate+ensemble' FROM corpus_pair WHERE collection_id = :collection;
ANALYZE corpus_query, corpus_document, corpus_pair, corpus_label;
