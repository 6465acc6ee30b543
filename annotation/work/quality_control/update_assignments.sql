-- Assignments point to the rows that were appended on their items; those whose final judgment moved change their
-- state. One statement for all assignments: with thousands of judgments a row at a time would hold the locks for
-- seconds. Lock order: items (locked before), assignments.
WITH appended AS (
    SELECT item, max(judgment) FILTER (WHERE step = 'final') AS final,
           max(judgment) FILTER (WHERE step = 'first') AS first
    FROM unnest(:items::bigint[], :judgments::bigint[], :steps::text[]) AS row (item, judgment, step)
    GROUP BY item
)
UPDATE annotation_assignment a SET judgment_id = COALESCE(new.final, a.judgment_id),
    first_id = COALESCE(new.first, a.first_id),
    state = CASE WHEN a.state = :before AND new.final IS NOT NULL THEN :after ELSE a.state END
FROM appended new
WHERE a.item_id = new.item AND a.membership_id = :membership AND a.state IN (:before, 'open')
RETURNING a.item_id, a.state = :after;
