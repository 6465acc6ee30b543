-- Current judgments of people, imports and policies, selected by `votes`: first, blind (before the debate), shown (with
-- the debate from the start) or final. The judgment that counts for a pair comes last. Reads only.
SELECT array_agg(t.assessor_id) AS who, array_agg(t.pair_id) AS pair, array_agg(t.grade) AS grade
FROM (
    SELECT j.assessor_id, j.pair_id, j.grade::bigint
    FROM current_judgment j JOIN corpus_pair p ON p.id = j.pair_id
    LEFT JOIN corpus_item i ON i.id = j.item_id
    WHERE (i.reason IS NULL OR i.reason <> ALL(:apart)) AND j.assessor_id = ANY(:assessors)
      AND p.collection_id = :collection AND j.aspect_id IS NULL AND j.step <> 'adjudication'
      AND CASE :votes::text
        WHEN 'first' THEN j.arm <> 'reveal:seen'
        WHEN 'blind' THEN j.item_id IS NULL OR j.arm = 'hidden' OR j.step = 'first' AND j.arm <> 'reveal:seen'
        WHEN 'shown' THEN j.step = 'final' AND j.arm LIKE 'shown%'
        ELSE true END
    ORDER BY j.step = CASE :votes::text WHEN 'final' THEN 'final' ELSE 'first' END,
        CASE :votes::text WHEN 'final' THEN j.id ELSE -j.id END
) t;
