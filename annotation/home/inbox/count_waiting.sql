-- What waits in a collection, each counted up to `many`, and whether anything goes on by which it may change. Reads only.
-- `threads`: comments and flags without an answer, where their number is in a cache; null: they are counted.
-- A pair has failed if its newest campaign failed at it and nobody has given it a label or a task since.
WITH campaigns AS (
    SELECT id, state FROM judges_campaign
    WHERE collection_id = :collection AND kind = 'judging' AND state <> 'cancelled'
), newest AS (SELECT id, state FROM campaigns ORDER BY id DESC LIMIT 1
), failures AS (
    SELECT w.pair_id, w.campaign_id FROM campaigns c JOIN judges_work w ON w.campaign_id = c.id AND w.state = 'failed'
    LIMIT :many
), tasks AS (
    SELECT i.reason, EXISTS (SELECT FROM corpus_label l WHERE l.pair_id = i.pair_id AND l.aspect_id IS NULL) AS labelled
    FROM (SELECT pair_id, reason FROM corpus_item
        WHERE collection_id = :collection AND state = 'open' AND reason <> 'audit' LIMIT :many) i
), people AS (
    SELECT count(*) AS active FROM annotation_membership m JOIN annotation_user u ON u.id = m.user_id
    WHERE m.collection_id = :collection AND m.role > 0 AND m.is_active AND u.is_active AND m.paused_at IS NULL)
SELECT (SELECT id FROM newest),
    (SELECT active FROM people),
    (SELECT count(*) FROM (SELECT FROM newest n JOIN judges_work w ON w.campaign_id = n.id AND w.state = 'pending'
        WHERE n.state IN ('paused', 'budget') LIMIT :many) pending),
    (SELECT count(DISTINCT f.pair_id) FROM failures f
        WHERE NOT EXISTS (SELECT FROM corpus_label l WHERE l.pair_id = f.pair_id AND l.aspect_id IS NULL)
        AND NOT EXISTS (SELECT FROM judges_work w JOIN campaigns c ON c.id = w.campaign_id
            WHERE w.pair_id = f.pair_id AND w.campaign_id > f.campaign_id AND w.state <> 'failed')
        AND NOT EXISTS (SELECT FROM corpus_item i WHERE i.pair_id = f.pair_id AND i.state IN ('open', 'conflict')
            AND i.reason NOT IN ('audit', 'evidence') AND NOT is_measuring(i.reason))),
    (SELECT count(*) FROM (SELECT FROM corpus_item
        WHERE collection_id = :collection AND state = 'conflict' LIMIT :many) conflicts),
    (SELECT count(*) FROM tasks WHERE NOT labelled AND reason <> 'evidence' AND NOT is_measuring(reason)),
    (SELECT count(*) FROM (SELECT FROM corpus_item
        WHERE collection_id = :collection AND state = 'open' AND reason = 'audit' LIMIT :many) audits),
    (SELECT coalesce(json_object_agg(reason, n), '{}') FROM (
        SELECT reason, count(*) AS n FROM tasks WHERE labelled GROUP BY reason) others),
    EXISTS (SELECT FROM judges_campaign WHERE collection_id = :collection AND state = 'running')
    OR EXISTS (SELECT FROM annotation_fileimport WHERE collection_id = :collection AND state IN ('waiting', 'running'))
    OR EXISTS (SELECT FROM annotation_snapshot WHERE collection_id = :collection AND state = 'making')
    OR EXISTS (SELECT FROM annotation_hubpush WHERE collection_id = :collection AND state IN ('waiting', 'running'))
    OR EXISTS (SELECT FROM training_job WHERE collection_id = :collection AND state IN ('queued', 'running'))
    OR EXISTS (SELECT FROM benchmark_report WHERE collection_id = :collection AND state IN ('waiting', 'running'))
    OR ((SELECT active FROM people) > 0 AND EXISTS (SELECT FROM corpus_item
        WHERE collection_id = :collection AND state IN ('open', 'conflict'))),
    coalesce(:threads::bigint, (SELECT count(*) FROM (SELECT FROM annotation_thread
        WHERE collection_id = :collection AND waits LIMIT :many) threads));
