-- Count the open items that a member can still get, up to a number. Reads only.
SELECT count(*) AS waiting FROM (
    SELECT FROM corpus_item i
    WHERE i.collection_id = :collection AND i.state = 'open' AND i.taken < i.overlap
      AND NOT EXISTS (SELECT FROM annotation_assignment a WHERE a.item_id = i.id
                      AND a.membership_id = :membership AND a.state <> 'returned')
      AND CASE WHEN i.reserved THEN EXISTS (SELECT FROM annotation_reservedfor r
               WHERE r.item_id = i.id AND r.membership_id = :membership) ELSE true END
    ORDER BY i.priority, i.place LIMIT :most) counted;
