-- The first open lease of a member, by its place in its group: that pair is the one that the page goes on with.
-- Lock order: the assignment alone.
SELECT a.id, a.item_id, i.state AS item_state
FROM annotation_assignment a JOIN corpus_item i ON i.id = a.item_id
WHERE a.membership_id = :membership AND a.state = 'open'
ORDER BY a.place LIMIT 1
FOR UPDATE OF a;
