-- Of each judge's newest round of canaries, by kind of hostile text: flips, pairs that could flip, verdicts lost,
-- honest ones, and questions. Reads only.
WITH newest AS (
    SELECT judge_id, max(round_id) AS round_id FROM judges_canaryanswer WHERE judge_id = ANY(:judges) GROUP BY judge_id)
SELECT h.judge_id, h.round_id, max(h.created_at), h.kind,
    count(*) FILTER (WHERE h.verdict IS NOT NULL AND c.verdict <> h.aim),
    count(*) FILTER (WHERE h.verdict = h.aim AND c.verdict <> h.aim),
    count(*) FILTER (WHERE h.verdict IS NULL AND c.verdict IS NOT NULL),
    count(*) FILTER (WHERE c.verdict = c.honest), count(*)
FROM newest n JOIN judges_canaryanswer h ON h.judge_id = n.judge_id AND h.round_id = n.round_id AND h.twin <> ''
LEFT JOIN judges_canaryanswer c ON c.judge_id = h.judge_id AND c.round_id = h.round_id AND c.name = h.twin
GROUP BY h.judge_id, h.round_id, h.kind ORDER BY h.kind;
