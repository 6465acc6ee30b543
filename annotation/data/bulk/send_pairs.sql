-- Open a task for each selected pair that waits for no grade (tasks for evidence ask for none). New items, no locks.
INSERT INTO corpus_item (collection_id, pair_id, reason, priority, overlap, seq, state, taken, done)
SELECT p.collection_id, p.id, 'requested', queue_priority(c.order, c.seed, p.id, p.query_id, p.uncertainty), c.overlap,
       next_seq(p.id, 'requested'), 'open', 0, 0
FROM corpus_pair p JOIN corpus_collection c ON c.id = p.collection_id
WHERE p.collection_id = :collection AND p.id = ANY(:pairs) AND NOT EXISTS (
    SELECT FROM corpus_item i
    WHERE i.pair_id = p.id AND i.state IN ('open', 'conflict') AND i.reason <> 'evidence'
      AND NOT is_measuring(i.reason))
ORDER BY p.id
RETURNING id;
