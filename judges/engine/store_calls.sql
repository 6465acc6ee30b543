-- Store calls of runs and conversations, which are about no pair and have no lease (judges.models.retrieval). Vectors
-- are stored as files by their text, so their bodies are left out here. No locks; book_calls.sql follows with the
-- stored rows.
WITH r AS MATERIALIZED (
    SELECT * FROM json_to_recordset(:rows::json) AS r(
        id bigint, campaign bigint, query bigint, topic text, judge bigint, prompt bigint, role text, place int,
        number smallint, outcome text, cached bool, reason text, error text, status smallint, finish text,
        tokens_in int, tokens_cached int, tokens_written int, tokens_out int, tokens_reasoning int, cost float8, ms int,
        key text, started timestamptz, holder text, usd float8, calls int, bound float8, answered_by text)
    JOIN unnest(:ids::bigint[], :messages::bytea[], :raws::bytea[]) AS b(id, messages, raw) USING (id)
)
INSERT INTO judges_retrievalcall (
    id, campaign_id, query, topic, judge_id, prompt_id, role, sample, number, outcome, cached, text, error, status,
    finish_reason, tokens_in, tokens_cached, tokens_written, tokens_out, tokens_reasoning, cost, assumed,
    milliseconds, cache_key, started_at, messages, raw, answered_by)
SELECT id, campaign, query, COALESCE(topic, ''), judge, prompt, role, place, number, outcome, cached,
    CASE WHEN outcome = 'labelled' AND role <> 'embed' THEN reason ELSE '' END, error, status, finish, tokens_in,
    tokens_cached, COALESCE(tokens_written, 0), tokens_out, tokens_reasoning, cost,
    CASE WHEN cost IS NULL THEN bound ELSE 0 END, ms, key, started,
    CASE WHEN role = 'embed' THEN '' ELSE messages END, CASE WHEN role = 'embed' THEN '' ELSE raw END,
    COALESCE(answered_by, '')
FROM r
ON CONFLICT DO NOTHING
RETURNING id;
