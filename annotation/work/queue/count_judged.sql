-- A member's judgments since `midnight` and in all, of any kind of task, which quotas are compared with, and the pairs
-- that they hold. Reads only.
SELECT count(*) FILTER (WHERE a.state = 'done' AND a.ended_at >= :midnight) AS today,
       count(*) FILTER (WHERE a.state = 'done') AS judged, count(*) FILTER (WHERE a.state = 'open') AS held
FROM annotation_assignment a
WHERE a.membership_id = :membership
  AND (a.state = 'open' OR a.state = 'done' AND NOT a.flagged AND a.judgment_id IS NOT NULL);
