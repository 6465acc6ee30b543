-- Take the selected pairs from their annotators or, where a member is named, from all others, except pairs that the
-- member has seen: assigned, judged or skipped here, or judged before the import. The lease ends now, so that former
-- annotators get the pair again only when nothing else is left for them. Tokens change (assignment.TAKEN_AWAY), also of
-- leases that had expired: what their pages still send is no label. Lock order: assignments, then items, each in the
-- order of their ids.
WITH leases AS MATERIALIZED (
    SELECT a.id, a.item_id, a.state, i.pair_id
    FROM annotation_assignment a JOIN corpus_item i ON i.id = a.item_id
    WHERE a.state IN ('open', 'returned') AND a.membership_id IS DISTINCT FROM :member::bigint
      AND i.collection_id = :collection AND i.pair_id = ANY(:pairs)
      AND i.state IN ('open', 'conflict') AND NOT is_measuring(i.reason)
      AND (:member::bigint IS NULL OR NOT (EXISTS (
            SELECT FROM corpus_item o JOIN annotation_assignment mine ON mine.item_id = o.id
            WHERE o.pair_id = i.pair_id AND mine.membership_id = :member AND mine.state <> 'returned')
        OR EXISTS (
            SELECT FROM corpus_judgment j JOIN annotation_membership m ON m.assessor_id = j.assessor_id
            WHERE j.pair_id = i.pair_id AND j.aspect_id IS NULL AND m.id = :member)))
    ORDER BY a.id FOR UPDATE OF a
),
open_leases AS (SELECT id, item_id, pair_id FROM leases WHERE state = 'open'),
locked AS MATERIALIZED (
    SELECT id FROM corpus_item WHERE id IN (SELECT item_id FROM open_leases) ORDER BY id FOR UPDATE
),
ended AS (
    UPDATE annotation_assignment
    SET state = 'returned', ended_at = now(), lease_until = now(), token = 'taken-' || md5(random()::text || id)
    WHERE id IN (SELECT id FROM open_leases)
),
voided AS (
    UPDATE annotation_assignment SET token = 'taken-' || md5(random()::text || id)
    WHERE id IN (SELECT id FROM leases WHERE state = 'returned')
),
freed AS (
    UPDATE corpus_item SET taken = taken - n, place = nextval('corpus_item_place')
    FROM (SELECT item_id, count(*) AS n FROM open_leases GROUP BY item_id) counted
    WHERE corpus_item.id = counted.item_id AND corpus_item.id IN (SELECT id FROM locked)
)
SELECT DISTINCT pair_id FROM open_leases;
