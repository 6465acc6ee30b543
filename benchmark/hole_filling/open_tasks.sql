-- Open an item, reason `hole`, for each pair that does not wait for people yet, for whatever reason: by the
-- collection's order, or (`ordered`) before everything else, in the order given. Numbers of items follow it too. No
-- locks; new items.
INSERT INTO corpus_item (collection_id, pair_id, reason, priority, overlap, seq, state, taken, done)
SELECT c.id, p.id, 'hole',
    CASE WHEN :ordered THEN :first + (h.place - 1) / :count::float8
         ELSE queue_priority(c.order, c.seed, p.id, p.query_id, p.uncertainty) END,
    c.overlap, next_seq(p.id, 'hole'), 'open', 0, 0
FROM unnest(:pairs::bigint[]) WITH ORDINALITY AS h(pair, place)
JOIN corpus_pair p ON p.id = h.pair JOIN corpus_collection c ON c.id = p.collection_id
WHERE NOT EXISTS (
    SELECT FROM corpus_item i WHERE i.pair_id = p.id AND i.state IN ('open', 'conflict')
        AND i.reason <> 'evidence' AND NOT is_measuring(i.reason))
ORDER BY h.place;
