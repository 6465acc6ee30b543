-- A collection with a queue of pairs for people, of which the first have a debate of two rounds.
INSERT INTO corpus_query (collection_id, external_id, version, is_current, text, metadata, content_hash, answers,
                          instruction)
SELECT :collection, 'q' || n, 1, true, 'Which words does text ' || n || ' repeat?', '{}', md5('q' || n),
       ARRAY['The words of the text.', 'A sentence that comes again.'], ''
FROM generate_series(1, 200) n;
INSERT INTO corpus_document (collection_id, external_id, version, is_current, text, metadata, content_hash, title)
SELECT :collection, 'd' || n, 1, true, 'This sentence stands in text ' || n || '. '
       || repeat('A sentence of eight words comes again here. ', 16), '{}', md5('d' || n), 'Text ' || n
FROM generate_series(1, :pairs) n;
INSERT INTO corpus_pair (collection_id, query_id, document_id, uncertainty)
SELECT :collection, q.id, d.id, 0
FROM (SELECT id, row_number() OVER (ORDER BY id) AS n FROM corpus_document WHERE collection_id = :collection) d
JOIN (SELECT id, row_number() OVER (ORDER BY id) AS n FROM corpus_query WHERE collection_id = :collection) q
  ON q.n = d.n % 200 + 1;
INSERT INTO corpus_item (collection_id, pair_id, campaign, reason, seq, state, priority, overlap, taken, done)
SELECT :collection, id, :campaign, 'disagreement', 0, 'open', 0, 1, 0, 0
FROM corpus_pair WHERE collection_id = :collection;
INSERT INTO judges_attempt (campaign_id, pair_id, judge_id, prompt_id, role, round, agent_pair, number, outcome,
                            counts, cached, verdict, reason, quotes, error, finish_reason, tokens_in, tokens_cached,
                            tokens_out, tokens_reasoning, milliseconds, cache_key, started_at)
SELECT :campaign, p.id, :judge, :prompt, side, round, 0, 1, 'labelled', true, false,
       CASE side WHEN 'for' THEN 1 ELSE 0 END,
       'The ' || side || ' side says in round ' || round || ' what a reason of some thirty words would say, with a '
       || 'claim, a ground for it, and an answer to what the other side has said before.',
       '[{"text": "This sentence stands", "start": 0, "end": 20}, {"text": "gone", "start": null, "end": null}]',
       '', 'stop', 400, 0, 80, 0, 900, '', now()
FROM (SELECT pair_id AS id FROM corpus_item WHERE collection_id = :collection
      ORDER BY priority, place LIMIT :debated) p,
     unnest(ARRAY['for', 'against']) side, generate_series(1, 2) round;
ANALYZE corpus_query, corpus_document, corpus_pair, corpus_item, judges_attempt;
