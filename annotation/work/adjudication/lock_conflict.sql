-- A conflict for an adjudicator; `before` is their newest judgment on it, a withdrawal, if any. `waits`: whether they
-- may decide it now.
-- Lock order: the item, its pair.
SELECT i.pair_id, i.campaign, i.reason, i.state, j.id AS before,
       i.state = 'conflict' AND NOT EXISTS (
           SELECT FROM annotation_assignment a
           WHERE a.item_id = i.id AND a.membership_id = :membership AND a.state NOT IN ('returned', 'skipped')
       ) AS waits
FROM corpus_item i JOIN corpus_pair p ON p.id = i.pair_id
LEFT JOIN judgment_head j ON j.item_id = i.id AND j.assessor_id = :assessor AND j.step = 'adjudication'
WHERE i.id = :item AND i.collection_id = :collection
FOR UPDATE OF i FOR NO KEY UPDATE OF p;
