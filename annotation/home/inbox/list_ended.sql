-- Long work of a collection that ended after a moment and after the reader's last dismissal, the newest first; points of learning curves and
-- reports that compare a version of the qrels with itself are parts of a page. Of gates the newest one, if it failed. Reads only.
SELECT kind, number, failed, ended_at FROM (
    SELECT 'import' AS kind, number, state = 'failed' AS failed, ended_at FROM annotation_fileimport
    WHERE collection_id = :collection AND (state = 'failed' OR state = 'ready' AND NOT dry_run)
    UNION ALL
    SELECT 'export', s.number, j.state = 'failed', j.ended_at
    FROM annotation_snapshot s JOIN jobs_backgroundjob j ON j.subject = s.id AND j.kind = :export_task
    WHERE s.collection_id = :collection AND j.state IN ('ready', 'failed')
    UNION ALL
    SELECT 'training', number, state <> 'finished', ended_at FROM training_job t
    WHERE collection_id = :collection AND state IN ('finished', 'failed', 'refused')
      AND NOT EXISTS (SELECT FROM training_curvepoint p WHERE p.job_id = t.id)
    UNION ALL
    SELECT 'report', number, state = 'failed', ended_at FROM benchmark_report
    WHERE collection_id = :collection AND state IN ('ready', 'failed') AND before_id <> after_id
    UNION ALL
    SELECT 'push-' || kind, number, state = 'failed', ended_at FROM annotation_hubpush
    WHERE collection_id = :collection AND state IN ('ready', 'failed')
    UNION ALL
    -- The last backup of the site, if it failed, for owners: cleared in one collection, it is cleared in all.
    SELECT 'backup', 0, true, ended_at FROM (
        SELECT state, ended_at FROM jobs_backgroundjob WHERE kind = :backup_task ORDER BY id DESC LIMIT 1) backup
    WHERE state = 'failed' AND ended_at > coalesce((
            SELECT max(seen_at) FROM annotation_inboxreader WHERE user_id = :reader), '-infinity')
        AND EXISTS (SELECT FROM annotation_user WHERE id = :reader AND is_owner)
    UNION ALL
    SELECT 'comparing', number, state = 'failed', ended_at FROM annotation_comparisonjudging
    WHERE collection_id = :collection AND state IN ('ready', 'failed')
    UNION ALL
    SELECT 'gate', number, true, created_at FROM benchmark_gate gate
    WHERE collection_id = :collection AND verdict = 'fail' AND NOT EXISTS (
        SELECT FROM benchmark_gate later WHERE later.collection_id = gate.collection_id AND later.number > gate.number)
    UNION ALL
    SELECT 'campaign', number, false, finished_at FROM judges_campaign
    WHERE collection_id = :collection AND state = 'finished' AND kind = 'judging' AND policy <> 'human'
) ended
WHERE ended_at > greatest(:after, (
    SELECT seen_at FROM annotation_inboxreader WHERE user_id = :reader AND collection_id = :collection))
ORDER BY ended_at DESC LIMIT :most;
