-- Derive the labels of these pairs again, and count what changed: adjudication before people, people before
-- imported people, those before a policy. The same rule stands once more in tests/corpus/test_labels.py, in
-- plain Python, and is held against this statement. Lock order: the pairs (locked before, in the order of their
-- ids), then labels.
WITH wanted AS MATERIALIZED (SELECT unnest(:pairs::bigint[]) AS id),
standing AS MATERIALIZED (
    SELECT j.id, j.pair_id, j.aspect_id, j.grade, j.step, j.item_id, a.kind, a.name,
           COALESCE(i.state = 'settled', j.aspect_id IS NOT NULL) AS settled,
           bool_or(a.kind = 'person') OVER (PARTITION BY j.pair_id, j.aspect_id) AS judged_here
    FROM wanted
    JOIN current_judgment j ON j.pair_id = wanted.id
    JOIN corpus_assessor a ON a.id = j.assessor_id
    LEFT JOIN corpus_item i ON i.id = j.item_id
    WHERE (a.kind IN ('person', 'policy', 'human-import') AND NOT is_measuring(COALESCE(i.reason, ''))
           OR j.step = 'adjudication')
),
counted AS (
    SELECT pair_id, aspect_id, kind, CASE kind WHEN 'person' THEN COALESCE(item_id, 0) ELSE 0 END AS item, grade,
           count(*) AS n
    FROM standing
    WHERE (kind = 'person' AND step = 'final' AND settled)
       OR (kind = 'human-import' AND NOT judged_here)
    GROUP BY 1, 2, 3, 4, 5
),
ranked AS (
    SELECT *, rank() OVER won AS place, count(*) OVER (PARTITION BY pair_id, aspect_id, kind, item, n) AS equals
    FROM counted WINDOW won AS (PARTITION BY pair_id, aspect_id, kind, item ORDER BY n DESC)
),
candidate AS (
    SELECT pair_id, aspect_id, grade, 'adjudicator' AS origin, 1 AS rank, id AS newest
    FROM standing WHERE step = 'adjudication'
    UNION ALL
    SELECT pair_id, aspect_id, grade, 'people', CASE kind WHEN 'person' THEN 2 ELSE 3 END, item
    FROM ranked WHERE place = 1 AND equals = 1
    UNION ALL
    SELECT pair_id, aspect_id, grade, name, 4, id FROM standing WHERE kind = 'policy' AND step <> 'adjudication'
),
resolved AS MATERIALIZED (
    SELECT DISTINCT ON (pair_id, aspect_id) pair_id, aspect_id, grade, origin
    FROM candidate ORDER BY pair_id, aspect_id, rank, newest DESC
),
gone AS (
    DELETE FROM corpus_label l USING wanted
    WHERE l.pair_id = wanted.id AND NOT EXISTS (
        SELECT 1 FROM resolved r WHERE r.pair_id = l.pair_id AND r.aspect_id IS NOT DISTINCT FROM l.aspect_id)
    RETURNING 1
),
written AS (
    INSERT INTO corpus_label AS l (pair_id, aspect_id, grade, origin)
    SELECT pair_id, aspect_id, grade, origin FROM resolved
    ON CONFLICT (pair_id, aspect_id) DO UPDATE
    SET grade = EXCLUDED.grade, origin = EXCLUDED.origin, updated_at = now()
    WHERE (l.grade, l.origin) IS DISTINCT FROM (EXCLUDED.grade, EXCLUDED.origin)
    RETURNING 1
)
SELECT (SELECT count(*) FROM gone) + (SELECT count(*) FROM written);
