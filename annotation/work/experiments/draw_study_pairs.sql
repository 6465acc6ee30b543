-- Random escalated pairs with a debate that are neither open nor reserved, and new to all participants of the study.
-- Reads only.
SELECT p.id FROM corpus_pair p
WHERE p.collection_id = :collection
  AND EXISTS (SELECT FROM corpus_item i WHERE i.pair_id = p.id AND i.reason NOT IN ('audit', 'evidence')
              AND NOT is_measuring(i.reason) AND i.state <> 'withdrawn')
  AND NOT EXISTS (SELECT FROM corpus_item i WHERE i.pair_id = p.id AND (i.reason = 'study' AND i.state <> 'withdrawn'
                  OR i.state = 'conflict' OR i.state = 'open' AND (i.taken > 0 OR i.reserved)))
  AND NOT EXISTS (SELECT FROM corpus_item i JOIN annotation_assignment a ON a.item_id = i.id
                  WHERE i.pair_id = p.id AND a.membership_id = ANY (:people))
  AND EXISTS (SELECT FROM counted_attempt t WHERE t.pair_id = p.id AND t.role IN ('for', 'against'))
  AND (NOT :gold OR EXISTS (
       SELECT FROM current_judgment j JOIN corpus_assessor a ON a.id = j.assessor_id
       WHERE j.pair_id = p.id AND a.kind = 'reference' AND j.aspect_id IS NULL))
ORDER BY sha256(convert_to(:seed::text || ':' || p.id, 'UTF8')) LIMIT :pairs;
