-- Checks assigned to a member from a number on, because lease groups skip the scheduled positions of checks.
-- Reads only.
SELECT count(*) AS n FROM annotation_assignment a JOIN corpus_item i ON i.id = a.item_id
WHERE a.membership_id = :membership AND a.number >= :begin AND i.reason = 'check';
