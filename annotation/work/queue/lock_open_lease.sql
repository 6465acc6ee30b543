-- The first open lease of a member by its place in the group, whose pair the page shows next.
-- Lock order: the assignment alone.
SELECT a.id, a.item_id, i.state AS item_state
FROM annotation_assignment a JOIN corpus_item i ON i.id = a.item_id
WHERE a.membership_id = :membership AND a.state = 'open'
ORDER BY a.place LIMIT 1
FOR UPDATE OF a;
