-- Return leases that ran out to the queue, except the member's own. Lock order: assignments with their items, SKIP
-- LOCKED: rows that others are working on at this moment are left alone.
WITH late AS (
    SELECT a.id, a.item_id FROM annotation_assignment a JOIN corpus_item i ON i.id = a.item_id
    WHERE a.state = 'open' AND a.lease_until <= now() AND a.membership_id <> :membership
    ORDER BY a.lease_until LIMIT 20
    FOR UPDATE OF a, i SKIP LOCKED
), ended AS (
    UPDATE annotation_assignment SET state = 'returned', ended_at = now() WHERE id IN (SELECT id FROM late)
)
UPDATE corpus_item SET taken = taken - n, place = nextval('corpus_item_place')
FROM (SELECT item_id, count(*) AS n FROM late GROUP BY item_id) late WHERE corpus_item.id = late.item_id;
