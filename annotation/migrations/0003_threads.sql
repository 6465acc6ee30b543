-- Comments and flags of annotators on whole pairs, with their answers. What an adjudication, an admin's label or a
-- withdrawn task has settled needs no answer, what waits for an adjudicator gets one there, and admins need none.
CREATE VIEW annotation_thread AS
SELECT w.id, w.public_id, i.collection_id, i.pair_id, w.item_id, w.membership_id, w.flagged, w.text,
    w.ended_at AS written_at,
    i.state NOT IN ('conflict', 'withdrawn') AND decision.at IS NULL AND m.role < 3 AND NOT u.is_owner
        AND NOT EXISTS (SELECT FROM annotation_threadmessage t
            WHERE t.assignment_id = w.id AND t.created_at >= w.ended_at) AS waits,
    CASE WHEN decision.at IS NOT NULL THEN CASE WHEN decision.has_task THEN 'adjudicated' ELSE 'labelled' END
        WHEN i.state IN ('conflict', 'withdrawn') THEN i.state ELSE '' END AS fate,
    greatest(
        (SELECT max(t.created_at) FROM annotation_threadmessage t WHERE t.assignment_id = w.id),
        CASE WHEN w.flagged THEN decision.at END) AS news_at,
    (SELECT coalesce(jsonb_agg(jsonb_build_object(
            'author', author.username, 'text', t.text, 'outcome', t.outcome, 'at', t.created_at) ORDER BY t.id), '[]')
        FROM annotation_threadmessage t JOIN annotation_user author ON author.id = t.written_by_id
        WHERE t.assignment_id = w.id) AS messages
FROM (
    -- Each part reads a partial index.
    SELECT a.id, a.public_id, a.item_id, a.membership_id, a.flagged, a.flag_note AS text, a.ended_at
    FROM annotation_assignment a WHERE a.flagged AND a.state = 'done'
    UNION ALL
    SELECT a.id, a.public_id, a.item_id, a.membership_id, a.flagged, j.comment, a.ended_at
    FROM corpus_judgment j JOIN annotation_assignment a ON a.judgment_id = j.id
    WHERE j.comment <> '' AND j.grade IS NOT NULL AND NOT a.flagged AND a.state = 'done'
) w
JOIN corpus_item i ON i.id = w.item_id
JOIN annotation_membership m ON m.id = w.membership_id
JOIN annotation_user u ON u.id = m.user_id
LEFT JOIN LATERAL (
    SELECT r.created_at AS at, r.item_id IS NOT NULL AS has_task FROM current_judgment r
    WHERE r.pair_id = i.pair_id AND r.aspect_id IS NULL AND r.step = 'adjudication' AND r.created_at >= w.ended_at
    ORDER BY r.created_at DESC LIMIT 1
) decision ON true;
