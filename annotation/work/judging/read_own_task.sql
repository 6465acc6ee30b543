-- A task that a member was assigned, with their grade if they gave one, as read_tasks.sql shows it. Reads only.
SELECT t.item, t.reason, t.arm, t.query, t.answers, t.instruction, t.title, t.document, t.source, t.html, t.answers_html,
       f.grade AS first, seen.reads,
       CASE WHEN seen.reads THEN coalesce(i.turns::json, (SELECT turns FROM debate_turns(i.pair_id))) END AS debate,
       a.public_id, a.token, 0 AS seconds, j.grade,
       CASE WHEN a.state = 'skipped' THEN 'skipped' WHEN a.state = 'done' AND a.flagged THEN 'flagged' END AS ended
FROM annotation_assignment a
JOIN corpus_item i ON i.id = a.item_id
JOIN task_text t ON t.item = a.item_id
LEFT JOIN corpus_judgment j ON j.id = a.judgment_id
LEFT JOIN corpus_judgment f ON f.id = a.first_id
CROSS JOIN LATERAL (
    SELECT i.reason NOT IN ('audit', 'evidence')
        AND (i.arm IN ('', 'shown') OR i.arm = 'reveal' AND f.grade IS NOT NULL) AS reads) seen
WHERE a.membership_id = :membership AND a.item_id = :item;
