-- Why gold pairs have their grades: the text of an uploaded file, else what experts commented on their grades (up to
-- three), else the argument of a model for the side of the grade: written for gold, else from the newest debate. The
-- words of the offline agents explain nothing. Reads only.
WITH gold AS (
    SELECT named.pair, CASE WHEN r.grade >= :relevant_from THEN 'for' ELSE 'against' END AS side
    FROM unnest(:pairs::bigint[]) AS named (pair) CROSS JOIN LATERAL reference_of(named.pair) r
), texts AS (
    SELECT gold.pair, 1 AS source, e.id AS place, e.text, e.written_by AS author
    FROM gold JOIN annotation_goldexplanation e ON e.pair_id = gold.pair
    UNION ALL
    SELECT gold.pair, 2, a.id, a.comment, ''
    FROM gold JOIN annotation_goldpair g ON g.pair_id = gold.pair
    JOIN annotation_goldanswer a ON a.gold_pair_id = g.id WHERE a.comment <> ''
    UNION ALL
    SELECT gold.pair, 3, -w.id, turn.value ->> 'reason', w.written_by
    FROM gold JOIN annotation_goldarguments w ON w.pair_id = gold.pair AND w.written_by <> 'offline'
    CROSS JOIN LATERAL jsonb_array_elements(w.turns) turn WHERE turn.value ->> 'side' = gold.side
    UNION ALL
    SELECT gold.pair, 4, -g.id, turn.value ->> 'reason', g.written_by
    FROM gold JOIN annotation_goldpair g ON g.pair_id = gold.pair AND g.written_by NOT IN ('', 'offline')
    CROSS JOIN LATERAL jsonb_array_elements(g.turns) turn WHERE turn.value ->> 'side' = gold.side
    UNION ALL
    SELECT gold.pair, 5, t.id, t.reason, v.name
    FROM gold JOIN counted_attempt t ON t.pair_id = gold.pair AND t.role = gold.side
    JOIN judges_judgeversion v ON v.id = t.judge_id AND v.provider <> 'offline'
    WHERE t.campaign_id = (SELECT campaign_id FROM newest_debate(gold.pair)) AND t.verdict = (gold.side = 'for')::int
)
SELECT pair, text, author FROM (
    SELECT texts.*, min(source) OVER (PARTITION BY pair) AS best,
           row_number() OVER (PARTITION BY pair, source ORDER BY place) AS number
    FROM texts WHERE trim(text) <> '') ranked
WHERE source = best AND number <= CASE source WHEN 2 THEN 3 ELSE 1 END ORDER BY pair, number;
