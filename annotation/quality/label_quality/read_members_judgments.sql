-- Standing judgments of members, the first of each on an item, with the pair's reference grade (`missing` where it has
-- none). `month`: months since year 0, in the time zone `zone`; `kind`: 1 a check, 2 a repeat. Reads only.
SELECT array_agg(t.assessor_id) AS who, array_agg(t.item_id) AS item, array_agg(t.pair_id) AS pair,
       array_agg(t.ms) AS ms, array_agg(t.month) AS month, array_agg(t.kind) AS kind, array_agg(t.grade) AS grade,
       array_agg(t.reference) AS reference
FROM (
    SELECT DISTINCT ON (j.assessor_id, j.item_id) j.assessor_id, j.item_id, j.pair_id,
           coalesce(j.milliseconds, -1)::bigint AS ms,
           (extract(year FROM j.created_at AT TIME ZONE :zone) * 12
            + extract(month FROM j.created_at AT TIME ZONE :zone) - 1)::bigint AS month,
           CASE i.reason WHEN 'check' THEN 1 WHEN 'repeat' THEN 2 ELSE 0 END::bigint AS kind, j.grade::bigint,
           coalesce(gold.grade, :missing)::bigint AS reference
    FROM current_judgment j JOIN corpus_assessor a ON a.id = j.assessor_id JOIN corpus_item i ON i.id = j.item_id
    LEFT JOIN LATERAL reference_of(j.pair_id) gold ON true
    WHERE a.collection_id = :collection AND a.kind = 'person' AND i.reason <> 'qualification'
      AND j.step <> 'adjudication'
    ORDER BY j.assessor_id, j.item_id, j.step <> 'first', j.id
) t;
