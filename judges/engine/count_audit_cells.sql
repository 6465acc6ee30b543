-- Count the pairs of each stratum, and those up to the highest drawn number, which form the sample. All of them are
-- drawn, unless the collection's share of audits was lowered while the campaign ran. Reads only.
SELECT cell, count(*), count(*) FILTER (WHERE number <= highest) FROM (
    SELECT f.cell, f.number, max(f.number) FILTER (WHERE a.id IS NOT NULL) OVER (PARTITION BY f.cell) AS highest
    FROM audit_frame(:campaign) f LEFT JOIN judges_audit a ON a.campaign_id = :campaign AND a.pair_id = f.pair_id) numbered
GROUP BY cell;
