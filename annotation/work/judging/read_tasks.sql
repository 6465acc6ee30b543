-- A member's open tasks with their debates, and the figures of the member's day and last decision: the next task of
-- the page, all tasks of a group in an order that reveals nothing (`grouped`), or the task on an item. One row without
-- a task where there is none. A debate that must not be shown is not read. An item that was assigned before there were
-- arms shows its debate. A check may have its own turns. Reads only.
SELECT day.decided, day.today, day.spent_ms, l.public_id AS last_item, l.what AS last_what, l.seconds AS last_seconds,
       t.item, t.reason, t.arm, t.query, t.answers, t.instruction, t.title, t.document, t.source, t.html, t.answers_html,
       f.grade AS first, seen.reads,
       CASE WHEN seen.reads THEN coalesce(i.turns::json, (SELECT turns FROM debate_turns(i.pair_id))) END AS debate,
       a.public_id, a.token, extract(epoch FROM a.lease_until - now())::int AS seconds,
       coalesce(before.comment, f.comment) AS comment, coalesce(before.spans, f.spans)::json AS spans,
       a.draft::json AS draft,
       CASE WHEN f.grade IS NOT NULL THEN extract(epoch FROM clock_timestamp() - f.created_at)::int END AS first_seconds
FROM annotation_membership m
LEFT JOIN LATERAL (
    SELECT o.public_id,
           CASE WHEN o.state = 'skipped' THEN 'skipped' WHEN o.flagged THEN 'flagged' ELSE 'saved' END AS what,
           extract(epoch FROM clock_timestamp() - o.ended_at)::int AS seconds
    FROM annotation_assignment o
    WHERE o.membership_id = m.id AND o.state IN ('done', 'skipped') AND o.ended_at > now() - interval '24 hours'
    ORDER BY o.ended_at DESC LIMIT 1) l ON true
CROSS JOIN LATERAL (
    SELECT count(*) AS decided, count(*) FILTER (WHERE NOT o.flagged AND o.judgment_id IS NOT NULL) AS today,
           coalesce(sum(j.milliseconds - coalesce(j.idle_milliseconds, 0)), 0)::bigint AS spent_ms
    FROM annotation_assignment o LEFT JOIN corpus_judgment j ON j.id = o.judgment_id
    WHERE o.membership_id = m.id AND o.ended_at >= :midnight AND o.state = 'done') day
LEFT JOIN annotation_assignment a
    ON a.membership_id = m.id AND a.state = 'open' AND (:item::bigint IS NULL OR a.item_id = :item)
LEFT JOIN corpus_item i ON i.id = a.item_id
LEFT JOIN task_text t ON t.item = a.item_id
LEFT JOIN corpus_judgment j ON j.id = a.judgment_id
LEFT JOIN corpus_judgment before ON before.id = j.supersedes_id
LEFT JOIN corpus_judgment f ON f.id = a.first_id
CROSS JOIN LATERAL (
    SELECT i.reason NOT IN ('audit', 'evidence')
        AND (i.arm IN ('', 'shown') OR i.arm = 'reveal' AND f.grade IS NOT NULL) AS reads) seen
WHERE m.id = :membership
ORDER BY CASE WHEN :grouped THEN hashint8extended(a.item_id, a.membership_id) ELSE a.place END
LIMIT :most;
