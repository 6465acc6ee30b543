-- Judgments of each member by month in the time zone `zone`, newest month first, with their time, of both votes where
-- there are two. `timed`: judgments that have a time. Reads only.
SELECT m.id, u.username, to_char(a.ended_at AT TIME ZONE :zone, 'YYYY-MM') AS month, count(*) AS judgments,
       count(j.milliseconds) AS timed,
       coalesce(sum(j.milliseconds - coalesce(j.idle_milliseconds, 0)
                    + coalesce(f.milliseconds - coalesce(f.idle_milliseconds, 0), 0)), 0)::bigint AS milliseconds
FROM annotation_membership m JOIN annotation_user u ON u.id = m.user_id
JOIN annotation_assignment a ON a.membership_id = m.id AND a.state = 'done' AND NOT a.flagged
JOIN corpus_judgment j ON j.id = a.judgment_id
LEFT JOIN corpus_judgment f ON f.id = a.first_id
WHERE m.collection_id = :collection
GROUP BY m.id, u.username, month ORDER BY month DESC, u.username;
