-- Judgments and comparisons of each member by month in the time zone `zone`, newest month first. `timed`: judgments
-- that have a time, `milliseconds`, of both votes where there are two; likewise `compared_timed` and `seconds` of
-- comparisons, whose newest answer of a member counts, unless it withdraws the earlier one. Reads only.
WITH judged AS (
    SELECT m.id AS membership, to_char(a.ended_at AT TIME ZONE :zone, 'YYYY-MM') AS month, count(*) AS judgments,
           count(j.milliseconds) AS timed,
           coalesce(sum(j.milliseconds - coalesce(j.idle_milliseconds, 0)
                        + coalesce(f.milliseconds - coalesce(f.idle_milliseconds, 0), 0)), 0) AS milliseconds
    FROM annotation_membership m
    JOIN annotation_assignment a ON a.membership_id = m.id AND a.state = 'done' AND NOT a.flagged
    JOIN corpus_judgment j ON j.id = a.judgment_id
    LEFT JOIN corpus_judgment f ON f.id = a.first_id
    WHERE m.collection_id = :collection
    GROUP BY m.id, month
), answers AS (
    SELECT DISTINCT ON (p.comparison_id, m.id) m.id AS membership, p.outcome, p.seconds, p.created_at
    FROM annotation_membership m JOIN annotation_preference p ON p.assessor_id = m.assessor_id
    WHERE m.collection_id = :collection
    ORDER BY p.comparison_id, m.id, p.id DESC
), compared AS (
    SELECT membership, to_char(created_at AT TIME ZONE :zone, 'YYYY-MM') AS month, count(*) AS comparisons,
           count(seconds) AS compared_timed, coalesce(sum(seconds), 0) AS seconds
    FROM answers WHERE outcome <> '' GROUP BY membership, month
)
SELECT m.id, u.username, month, coalesce(judgments, 0), coalesce(timed, 0), coalesce(milliseconds, 0)::bigint,
       coalesce(comparisons, 0), coalesce(compared_timed, 0), coalesce(seconds, 0)::float
FROM judged FULL JOIN compared USING (membership, month)
JOIN annotation_membership m ON m.id = membership JOIN annotation_user u ON u.id = m.user_id
ORDER BY month DESC, u.username;
