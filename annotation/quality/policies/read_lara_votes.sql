-- P(yes) and P(no) of one judge's votes. Votes that were stored while the answer not given could be missing have its
-- bound: the rest. Reads only.
SELECT w.pair_id, coalesce(v.yes, 1 - v.no), coalesce(v.no, 1 - v.yes)
FROM judges_work w LEFT JOIN (
    SELECT a.campaign_id, a.pair_id,
        (a.probabilities ->> 'yes')::float8 AS yes, (a.probabilities ->> 'no')::float8 AS no
    FROM counted_attempt a WHERE a.role = 'vote' AND a.place = :place AND a.outcome = 'labelled'
) v ON v.campaign_id = w.campaign_id AND v.pair_id = w.pair_id
WHERE w.campaign_id = :campaign AND w.state IN ('labelled', 'escalated');
