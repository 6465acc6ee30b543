-- Functions that a statement takes in as if they were written in it, and the texts of a task.

-- Reasons of items whose judgments measure: they come to no label and to no conflict.

CREATE FUNCTION is_measuring(reason text) RETURNS bool LANGUAGE sql IMMUTABLE
RETURN reason IN ('study', 'check', 'repeat', 'qualification');

-- The number of a pair's next item with this reason.

CREATE FUNCTION next_seq(pair bigint, for_reason text) RETURNS int LANGUAGE sql STABLE
RETURN coalesce((SELECT max(i.seq) + 1 FROM corpus_item i WHERE i.pair_id = pair AND i.reason = for_reason), 0);

-- The priority of a pair's item under a collection's order; smaller is assigned first.

CREATE FUNCTION queue_priority(ordering text, seed int, pair bigint, query bigint, uncertainty float8)
RETURNS float8 LANGUAGE sql STABLE
RETURN CASE ordering
    WHEN 'query' THEN query::float8
    WHEN 'random' THEN
        ('x' || left(encode(sha256(convert_to(seed::text || ':' || pair, 'UTF8')), 'hex'), 12)
        )::bit(48)::bigint / 281474976710656::float8
    ELSE -uncertainty END;

-- One reference grade for each pair: what experts said before what was imported, and of that the newest.

CREATE FUNCTION reference_grades(collection bigint) RETURNS TABLE (pair_id bigint, grade smallint)
LANGUAGE sql STABLE AS $$
    SELECT DISTINCT ON (j.pair_id) j.pair_id, j.grade
    FROM current_judgment j JOIN corpus_assessor a ON a.id = j.assessor_id
    WHERE a.collection_id = collection AND a.kind = 'reference' AND j.aspect_id IS NULL
    ORDER BY j.pair_id, a.name <> 'experts', j.id DESC
$$;

-- The same of one pair.

CREATE FUNCTION reference_of(pair bigint) RETURNS TABLE (grade smallint) LANGUAGE sql STABLE ROWS 1 AS $$
    SELECT j.grade FROM current_judgment j JOIN corpus_assessor a ON a.id = j.assessor_id AND a.kind = 'reference'
    WHERE j.pair_id = pair AND j.aspect_id IS NULL
    ORDER BY a.name <> 'experts', j.id DESC LIMIT 1
$$;

CREATE VIEW task_text AS
SELECT i.id AS item, i.pair_id, coalesce(nullif(i.shown_as, ''), i.reason) AS reason, i.arm, q.text AS query, q.answers,
       q.instruction, d.title, d.text AS document, d.external_id AS source
FROM corpus_item i
JOIN corpus_pair p ON p.id = i.pair_id
JOIN corpus_query q ON q.id = p.query_id
JOIN corpus_document d ON d.id = p.document_id;
