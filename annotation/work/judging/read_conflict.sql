-- A conflict under its own id, as adjudicators see it. Reads only.
SELECT t.*, i.reason NOT IN ('audit', 'evidence') AS reads,
       CASE WHEN i.reason NOT IN ('audit', 'evidence')
            THEN coalesce(i.turns::json, (SELECT turns FROM debate_turns(i.pair_id))) END AS debate,
       i.id AS public_id, '' AS token, 0 AS seconds
FROM corpus_item i JOIN task_text t ON t.item = i.id WHERE i.id = :item;
