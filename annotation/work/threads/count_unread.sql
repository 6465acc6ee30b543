-- How many of a member's comments and flags have an answer or outcome that came after `seen`. Reads only.
-- The candidates come from the few answers and the index of the member's flags, not from all their assignments.
SELECT count(*) FROM annotation_thread WHERE news_at > :seen AND id = ANY(ARRAY(
    SELECT a.id FROM annotation_threadmessage t JOIN annotation_assignment a ON a.id = t.assignment_id
    WHERE a.membership_id = :membership AND t.created_at > :seen
    UNION ALL
    SELECT id FROM annotation_assignment WHERE membership_id = :membership AND flagged AND state = 'done'));
