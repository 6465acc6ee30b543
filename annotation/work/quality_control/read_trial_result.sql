-- A member's progress in a qualification test: pairs with a grade, how many of them are right, and pairs that they have
-- behind them, skipped and flagged ones included; practice and test apart. Reads only.
SELECT count(j.id) FILTER (WHERE i.priority = 0) AS answered,
       count(*) FILTER (WHERE i.priority = 0
                        AND (j.grade >= c.relevant_from) = (gold.grade >= c.relevant_from)) AS right,
       count(*) FILTER (WHERE i.priority = 0) AS total,
       count(j.id) FILTER (WHERE i.priority < 0) AS practised,
       count(*) FILTER (WHERE i.priority < 0) AS practice,
       count(a.id) FILTER (WHERE i.priority < 0) AS practice_ended,
       count(a.id) FILTER (WHERE i.priority = 0) AS ended
FROM corpus_item i JOIN corpus_collection c ON c.id = i.collection_id
LEFT JOIN annotation_assignment a
    ON a.item_id = i.id AND a.membership_id = :membership AND a.state IN ('done', 'skipped')
LEFT JOIN corpus_judgment j ON j.id = a.judgment_id AND a.state = 'done'
LEFT JOIN LATERAL reference_of(i.pair_id) gold ON true
WHERE i.collection_id = :collection AND i.reason = 'qualification' AND i.seq = :trial AND i.state = 'standing';
