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
       q.instruction, d.title, d.text AS document, d.external_id AS source, d.html, q.answers_html
FROM corpus_item i
JOIN corpus_pair p ON p.id = i.pair_id
JOIN corpus_query q ON q.id = p.query_id
JOIN corpus_document d ON d.id = p.document_id;

-- Pairs with current texts, with the ids of both. A pair of an older version of a text keeps its evidence but has the ids
-- of the newer one: in an export it would be in twice.

CREATE VIEW current_pair AS
SELECT p.id, p.collection_id, p.query_id, p.document_id, p.is_candidate, p.teacher_score,
       q.external_id AS query, d.external_id AS document
FROM corpus_pair p
JOIN corpus_query q ON q.id = p.query_id AND q.is_current
JOIN corpus_document d ON d.id = p.document_id AND d.is_current;

-- Labels as exports hold them, with the label of now: read as the export would read it today, policies' alone where it
-- was made of theirs. `grade` null: the export holds judgments.

CREATE VIEW held_label AS
SELECT r.id AS record, r.export, e.query_id, e.split, held.pair, held.grade, held.origin, n.grade AS now,
       l.origin AS origin_now, held.grade IS NOT NULL AND held.grade IS DISTINCT FROM n.grade AS has_changed
FROM corpus_exportrecord r JOIN corpus_exportedlabels e ON e.record_id = r.id
CROSS JOIN LATERAL unnest(e.pairs, e.grades, e.origins) AS held (pair, grade, origin)
LEFT JOIN corpus_label l ON l.pair_id = held.pair AND l.aspect_id IS NULL
LEFT JOIN LATERAL (
    SELECT j.grade FROM current_judgment j JOIN corpus_assessor a ON a.id = j.assessor_id AND a.kind = 'policy'
    WHERE r.by_policies AND j.pair_id = held.pair AND j.aspect_id IS NULL AND j.step <> 'adjudication'
    ORDER BY j.id DESC LIMIT 1) policy ON r.by_policies
CROSS JOIN LATERAL (SELECT CASE WHEN r.by_policies THEN policy.grade ELSE l.grade END AS grade) n;
