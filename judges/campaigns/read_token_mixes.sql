-- Token counts of judges' latest answers, by judge. Versions that differ only in their price count together.
-- Reads only.
WITH alike AS (
    SELECT v.id AS judge, o.id AS version FROM judges_judgeversion v
    JOIN judges_judgeversion o USING (provider, base_url, model, parameters) WHERE v.id = ANY(:judges)
),
newest AS (
    SELECT DISTINCT ON (alike.judge) alike.judge, alike.version, l.campaign_id
    FROM alike JOIN judges_ledger l ON l.judge_id = alike.version
    WHERE l.calls > 0 AND l.tokens_in > 0 AND l.role <> ALL(:apart) ORDER BY alike.judge, l.campaign_id DESC
)
SELECT newest.judge, count(*), sum(a.tokens_cached)::float8 / sum(a.tokens_in),
    sum(a.tokens_written)::float8 / sum(a.tokens_in), avg(a.tokens_reasoning)::float8
FROM newest CROSS JOIN LATERAL (
    SELECT tokens_in, tokens_cached, tokens_written, tokens_reasoning FROM judges_attempt
    WHERE campaign_id = newest.campaign_id AND judge_id = newest.version AND NOT cached AND tokens_in > 0
    ORDER BY pair_id DESC, id DESC LIMIT :latest) a
GROUP BY newest.judge;
