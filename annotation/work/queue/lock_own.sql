-- A member's assignment with its item. `number` is the id of an item, or the public id of an assignment: no
-- number is both (LOWEST_PUBLIC_ID). Lock order: FOR UPDATE of both rows, so that the next decision on the item
-- waits for this one and sees its counts.
SELECT a.id, a.item_id, a.token, a.state, a.judgment_id,
       i.reason, i.state AS item_state, i.pair_id, i.campaign, i.overlap, i.taken, i.done, i.arm,
       i.priority, a.first_id, f.grade AS first_grade, a.place,
       extract(epoch FROM clock_timestamp() - a.lent_at)::float8 AS held,
       1000 * extract(epoch FROM statement_timestamp() - a.served_at)::float8 AS served_ms
FROM annotation_assignment a JOIN corpus_item i ON i.id = a.item_id
LEFT JOIN corpus_judgment f ON f.id = a.first_id
WHERE a.id = (SELECT o.id FROM annotation_assignment o WHERE o.membership_id = :membership AND o.item_id = :number
    UNION ALL SELECT o.id FROM annotation_assignment o WHERE o.membership_id = :membership AND o.public_id = :number)
FOR UPDATE OF a, i;
