-- The decision that ended an assignment, without times; read only where another decision on it comes in.
SELECT a.state = 'skipped' AS skipped, a.skip_reason, a.flagged AND a.state = 'done' AS flagged, a.flag_note,
       j.grade, j.comment, j.spans::json AS spans, t.contribution, t.evidence, t.rating
FROM annotation_assignment a
LEFT JOIN corpus_judgment j ON j.id = :judgment
LEFT JOIN LATERAL (
    SELECT contribution, evidence, rating FROM corpus_target
    WHERE item_id = a.item_id AND withdraws_id IS NULL ORDER BY version DESC LIMIT 1) t ON true
WHERE a.id = :assignment;
