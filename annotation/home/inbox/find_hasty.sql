-- Active members whose last `last` judgments of the past week took less than `least` milliseconds in the median, and were
-- at least `fewest`. Reads only.
SELECT m.id, u.username, recent.median FROM annotation_membership m
JOIN annotation_user u ON u.id = m.user_id
CROSS JOIN LATERAL (
    SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY milliseconds) AS median, count(milliseconds) AS judgments FROM (
        SELECT j.milliseconds FROM annotation_assignment a JOIN corpus_judgment j ON j.id = a.judgment_id
        WHERE a.membership_id = m.id AND a.ended_at > now() - interval '7 days' AND a.state = 'done'
        ORDER BY a.ended_at DESC LIMIT :last) judged) recent
WHERE m.collection_id = :collection AND m.is_active AND recent.judgments >= :fewest AND recent.median < :least
ORDER BY u.username;
