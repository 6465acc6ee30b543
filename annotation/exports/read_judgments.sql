-- All judgments and votes on current pairs, by query id and document id. `again`: places where a judge stands
-- once more on its panel: each of its samples is a vote of its own. Reads only.
SELECT p.query, p.document, j.name, j.kind, j.grade, j.step, j.arm, j.guideline, j.ms, j.time,
       j."window", j.judge, j.number
FROM (
    SELECT j.pair_id, a.name, a.kind, j.grade, j.step, j.arm, j.guideline, j.milliseconds AS ms,
           j.created_at AS time, 0 AS "window", NULL::bigint AS judge, 0 AS number, j.id
    FROM current_judgment j JOIN corpus_assessor a ON a.id = j.assessor_id AND a.collection_id = :collection
    WHERE j.aspect_id IS NULL
    UNION ALL
    SELECT v.* FROM (
        SELECT DISTINCT ON (pair_id, judge_id, again.number) pair_id, '' AS name, 'judge' AS kind,
               verdict * :relevant_from AS grade, 'vote' AS step, '' AS arm, 0 AS guideline,
               milliseconds AS ms, created_at AS time, "window", judge_id AS judge,
               COALESCE(again.number, 0) AS number, id
        FROM counted_attempt v
        LEFT JOIN unnest(:again_campaigns::bigint[], :again_places::int[], :again_numbers::int[])
            AS again(campaign, place, number) ON again.campaign = campaign_id AND again.place = v.place
        WHERE campaign_id = ANY(:campaigns) AND role = 'vote' AND outcome = 'labelled'
        ORDER BY pair_id, judge_id, again.number, campaign_id DESC, v.place
    ) v
) j
JOIN current_pair p ON p.id = j.pair_id AND p.collection_id = :collection
ORDER BY p.query COLLATE "C", p.document COLLATE "C", j.kind COLLATE "C",
    j.name COLLATE "C", j.judge, j.number, j.id;
