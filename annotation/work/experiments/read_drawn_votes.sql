-- Current votes on items whose arm was drawn at random, newest first. Items of audits, which are always blind, and of
-- studies, whose arms are assigned, are left out. Reads only.
SELECT j.item_id, j.assessor_id, split_part(j.arm, ':', 1), j.step, j.grade >= :relevant,
       gold.grade >= :relevant, (j.milliseconds - coalesce(j.idle_milliseconds, 0)) / 1000.0::float8,
       j.arm = 'reveal:seen'
FROM current_judgment j JOIN corpus_assessor a ON a.id = j.assessor_id JOIN corpus_item i ON i.id = j.item_id
LEFT JOIN LATERAL reference_of(j.pair_id) gold ON true
WHERE a.collection_id = :collection AND a.kind = 'person' AND j.step IN ('first', 'final')
  AND i.arm <> '' AND i.reason <> 'audit' AND NOT is_measuring(i.reason)
  AND (:since::date IS NULL OR j.created_at >= :since::date)
ORDER BY j.id DESC LIMIT :most;
