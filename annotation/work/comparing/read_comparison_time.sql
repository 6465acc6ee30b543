-- How many answers of a collection have a time, of the newest thousand, and their median in seconds. Locks nothing.
SELECT count(*), percentile_cont(0.5) WITHIN GROUP (ORDER BY seconds)
FROM (
    SELECT p.seconds FROM annotation_comparisonset s
    JOIN annotation_comparison c ON c.set_id = s.id
    JOIN annotation_preference p ON p.comparison_id = c.id AND p.seconds IS NOT NULL
    WHERE s.collection_id = :collection ORDER BY p.id DESC LIMIT 1000
) newest;
