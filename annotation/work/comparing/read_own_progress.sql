-- How many comparisons of the sets at work a member has answered, and how many are left for them. Locks nothing.
SELECT count(*) FILTER (WHERE NOT l.is_open),
    count(*) FILTER (WHERE l.is_open OR (l.id IS NULL AND c.taken < s.people))
FROM annotation_comparisonset s
JOIN annotation_comparison c ON c.set_id = s.id
LEFT JOIN annotation_comparisonlease l ON l.comparison_id = c.id AND l.membership_id = :membership
WHERE s.collection_id = :collection AND s.paused_at IS NULL AND s.ended_at IS NULL;
