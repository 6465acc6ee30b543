-- One row for each judge and kind of hostile text in the judge's newest round of canaries (canaries.KindCounts): the
-- pairs that could flip, the flips, the lost verdicts, the honest verdicts on the clean twin, and the hostile texts
-- that were sent. Reads only.
WITH newest AS (
    SELECT judge_id, max(round_id) AS round_id FROM judges_canaryanswer WHERE judge_id = ANY(:judges) GROUP BY judge_id)
SELECT hostile.judge_id AS judge, hostile.round_id AS round, max(hostile.created_at) AS at, hostile.kind AS kind,
    count(*) FILTER (WHERE hostile.verdict IS NOT NULL AND clean.verdict <> hostile.aim) AS pairs,
    count(*) FILTER (WHERE hostile.verdict = hostile.aim AND clean.verdict <> hostile.aim) AS flips,
    count(*) FILTER (WHERE hostile.verdict IS NULL AND clean.verdict IS NOT NULL) AS lost,
    count(*) FILTER (WHERE clean.verdict = clean.honest) AS honest,
    count(*) AS asked
FROM newest JOIN judges_canaryanswer hostile
    ON hostile.judge_id = newest.judge_id AND hostile.round_id = newest.round_id AND hostile.twin <> ''
LEFT JOIN judges_canaryanswer clean
    ON clean.judge_id = hostile.judge_id AND clean.round_id = hostile.round_id AND clean.name = hostile.twin
GROUP BY hostile.judge_id, hostile.round_id, hostile.kind ORDER BY hostile.kind;
