-- All final votes on the pairs of a study; the arm of the item tells the group.
-- Reads only.
SELECT j.pair_id, i.arm, j.grade >= :relevant, (j.milliseconds - coalesce(j.idle_milliseconds, 0)) / 1000.0::float8,
       gold.grade >= :relevant
FROM annotation_studyitem s JOIN corpus_item i ON i.id = s.item_id JOIN current_judgment j ON j.item_id = i.id
JOIN corpus_assessor a ON a.id = j.assessor_id LEFT JOIN LATERAL reference_of(j.pair_id) gold ON true
WHERE s.study_id = :study AND a.kind = 'person' AND j.step = 'final'
ORDER BY j.pair_id, i.arm, j.id;
