-- A member's judgments since `midnight` and in all, of any kind of task, the pairs that they hold, and the comparisons
-- that they answered since `midnight` and in all: quotas are compared with both. Reads only.
SELECT pairs.*, comparisons.*
FROM (
    SELECT count(*) FILTER (WHERE a.state = 'done' AND a.ended_at >= :midnight) AS today,
           count(*) FILTER (WHERE a.state = 'done') AS judged, count(*) FILTER (WHERE a.state = 'open') AS held
    FROM annotation_assignment a
    WHERE a.membership_id = :membership
      AND (a.state = 'open' OR a.state = 'done' AND NOT a.flagged AND a.judgment_id IS NOT NULL)
) pairs, (
    SELECT count(*) FILTER (WHERE l.answered_at >= :midnight) AS compared_today, count(*) AS compared
    FROM annotation_comparisonlease l
    WHERE l.membership_id = :membership AND NOT l.is_open
) comparisons;
