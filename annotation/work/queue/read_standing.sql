-- Current judgments of an item by all members but one: those of assignments that are done. Reads only.
SELECT coalesce(array_agg(j.grade) FILTER (WHERE j.grade IS NOT NULL), '{}') AS grades,
       coalesce(bool_or(a.flagged), false) AS flagged
FROM annotation_assignment a LEFT JOIN corpus_judgment j ON j.id = a.judgment_id
WHERE a.item_id = :item AND a.state = 'done' AND a.membership_id <> :membership;
