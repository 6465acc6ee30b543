-- Medians of the latency of a campaign's pairs, from a sample found by steps over keys: a page must not read ten
-- million attempts. Reads only.
WITH ends AS (SELECT min(pair_id) AS low, max(pair_id) AS high FROM judges_attempt WHERE campaign_id = :campaign),
spread AS (
    SELECT DISTINCT next_pair.pair_id FROM ends,
        generate_series(low, high, GREATEST(1, (high - low) / :most)) AS key,
        LATERAL (SELECT pair_id FROM judges_attempt WHERE campaign_id = :campaign AND pair_id >= key
                 ORDER BY pair_id LIMIT 1) AS next_pair
),
pair_latency AS (
    SELECT sum(milliseconds)::float8 AS summed, 1000 * extract(
        epoch FROM max(started_at + milliseconds * interval '1 millisecond') - min(started_at))::float8 AS wall
    FROM judges_attempt
    WHERE campaign_id = :campaign AND NOT cached AND pair_id IN (SELECT pair_id FROM spread) GROUP BY pair_id
)
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY summed), percentile_cont(0.5) WITHIN GROUP (ORDER BY wall)
FROM pair_latency HAVING count(*) > 0;
