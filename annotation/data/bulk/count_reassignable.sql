-- How many of the selected pairs can be assigned, and how many are assigned to or reserved for someone. Tasks that are
-- reserved without a member wait for a study and do not count. Reads only.
SELECT count(DISTINCT i.pair_id) FILTER (WHERE i.state = 'open' AND (NOT i.reserved OR r.is_named)),
       count(DISTINCT i.pair_id) FILTER (WHERE i.reserved AND r.is_named OR EXISTS (
           SELECT FROM annotation_assignment a WHERE a.item_id = i.id AND a.state = 'open'))
FROM corpus_item i
CROSS JOIN LATERAL (
    SELECT EXISTS (SELECT FROM annotation_reservedfor f WHERE f.item_id = i.id) AS is_named) r
WHERE i.collection_id = :collection AND i.pair_id = ANY(:pairs)
  AND i.state IN ('open', 'conflict') AND NOT is_measuring(i.reason);
