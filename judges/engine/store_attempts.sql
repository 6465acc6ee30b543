-- Store attempts about pairs, with their bodies. `held` locks the work rows whose lease is still ours; a late answer
-- is stored with its cost, but does not count. ON CONFLICT skips rows that were stored before the writer lost its
-- connection. Lock order: work; book_calls.sql follows with the stored rows.
WITH r AS MATERIALIZED (
    SELECT * FROM json_to_recordset(:rows::json) AS r(
        id bigint, work bigint, fence int, campaign bigint, pair bigint, "window" smallint, judge bigint, prompt bigint,
        role text, round smallint, agent_pair smallint, place smallint, generation smallint, number smallint,
        outcome text, counts bool, cached bool, verdict smallint,
        score smallint, probabilities jsonb, reason text, reasoning text, quotes jsonb, error text, status smallint,
        finish text, tokens_in int, tokens_cached int, tokens_written int, tokens_out int, tokens_reasoning int,
        cost float8, ms int, key text, started timestamptz, holder text, usd float8, calls int, bound float8,
        answered_by text)
),
held AS MATERIALIZED (
    SELECT w.id, w.fence FROM judges_work w
    WHERE w.id IN (SELECT work FROM r) AND w.state = 'running' ORDER BY w.id FOR NO KEY UPDATE
),
written AS (
    INSERT INTO judges_attempt (
        id, campaign_id, pair_id, "window", judge_id, prompt_id, role, round, agent_pair, place, generation, number,
        outcome, counts, cached, verdict, score, probabilities, reason, reasoning, quotes, error, status, finish_reason,
        tokens_in, tokens_cached, tokens_written, tokens_out, tokens_reasoning, cost, assumed, milliseconds, cache_key,
        started_at, answered_by)
    SELECT r.id, campaign, pair, COALESCE("window", 0), judge, prompt, role, round, agent_pair, place, generation,
        number, outcome, counts AND held.id IS NOT NULL, cached, verdict, score, probabilities, reason,
        COALESCE(reasoning, ''), quotes,
        CASE WHEN held.id IS NULL AND error = '' THEN 'came after the lease was lost' ELSE error END,
        status, finish, tokens_in, tokens_cached, COALESCE(tokens_written, 0), tokens_out, tokens_reasoning, cost,
        CASE WHEN cost IS NULL THEN bound ELSE 0 END, ms, key, started, COALESCE(answered_by, '')
    FROM r LEFT JOIN held ON held.id = r.work AND held.fence = r.fence
    ON CONFLICT DO NOTHING
    RETURNING id, campaign_id, counts
),
bodies AS (
    INSERT INTO judges_attemptbody (campaign_id, attempt_id, messages, raw)
    SELECT written.campaign_id, b.id, b.messages, b.raw
    FROM unnest(:ids::bigint[], :messages::bytea[], :raws::bytea[]) AS b(id, messages, raw)
    JOIN written ON written.id = b.id
)
SELECT id, counts FROM written;
