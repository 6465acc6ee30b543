-- A member's answers in a qualification test, and how many of them are right. Reads only.
SELECT count(j.id) FILTER (WHERE i.priority = 0) AS answered,
       count(*) FILTER (WHERE i.priority = 0
                        AND (j.grade >= c.relevant_from) = (gold.grade >= c.relevant_from)) AS right,
       count(*) FILTER (WHERE i.priority = 0) AS total,
       count(j.id) FILTER (WHERE i.priority < 0) AS practised
FROM corpus_item i JOIN corpus_collection c ON c.id = i.collection_id
LEFT JOIN annotation_assignment a ON a.item_id = i.id AND a.membership_id = :membership AND a.state = 'done'
LEFT JOIN corpus_judgment j ON j.id = a.judgment_id
LEFT JOIN LATERAL reference_of(i.pair_id) gold ON true
WHERE i.collection_id = :collection AND i.reason = 'qualification' AND i.seq = :trial AND i.state = 'standing';
