-- Median milliseconds of each member's newest 100 judgments, of both votes where there are two: all would be too many.
-- Reads only.
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY j.milliseconds - coalesce(j.idle_milliseconds, 0)
                                                   + coalesce(f.milliseconds - coalesce(f.idle_milliseconds, 0), 0))
FROM annotation_membership m CROSS JOIN LATERAL (
    SELECT judgment_id, first_id FROM annotation_assignment
    WHERE membership_id = m.id AND state = 'done' ORDER BY ended_at DESC LIMIT 100) newest
JOIN corpus_judgment j ON j.id = newest.judgment_id
LEFT JOIN corpus_judgment f ON f.id = newest.first_id
WHERE m.collection_id = :collection;
