-- Sizes of a collection, and what became of its candidate pairs. Reads only.
WITH gold AS MATERIALIZED (SELECT * FROM reference_grades(:collection))
SELECT (SELECT count(*) FROM corpus_document WHERE collection_id = :collection AND is_current),
       q.n, q.answers, q.answered, q.synthetic, q.keywords, p.n, p.queries, p.scored, l.*
FROM (SELECT count(*) AS n, COALESCE(sum(cardinality(answers)), 0) AS answers,
             count(*) FILTER (WHERE answers <> '{}') AS answered,
             count(*) FILTER (
                 WHERE metadata @> '{"synthetic": true}' AND NOT metadata ? 'rewritten_from') AS synthetic,
             count(*) FILTER (WHERE metadata ? 'rewritten_from') AS keywords
      FROM corpus_query WHERE collection_id = :collection AND is_current) q,
     (SELECT COALESCE(sum(n), 0)::bigint AS n, count(*) AS queries, COALESCE(sum(scored), 0)::bigint AS scored
      FROM (SELECT count(*) AS n, count(teacher_score) AS scored FROM corpus_pair
            WHERE collection_id = :collection AND is_candidate GROUP BY query_id) per_query) p,
     (SELECT COALESCE(sum(n), 0)::bigint AS n, count(*) AS queries, COALESCE(sum(relevant), 0)::bigint AS relevant,
             count(*) FILTER (WHERE of_gold > 0) AS queries_before,
             COALESCE(sum(relevant_before), 0)::bigint AS relevant_before
      FROM (SELECT count(l.grade) AS n, count(gold.grade) AS of_gold,
                   count(*) FILTER (WHERE COALESCE(l.grade, gold.grade) >= :relevant_from) AS relevant,
                   count(*) FILTER (WHERE gold.grade >= :relevant_from) AS relevant_before
            FROM (SELECT pair_id, grade FROM corpus_label WHERE aspect_id IS NULL) l
            FULL JOIN gold ON gold.pair_id = l.pair_id
            JOIN corpus_pair p ON p.id = COALESCE(l.pair_id, gold.pair_id)
            WHERE p.collection_id = :collection GROUP BY p.query_id) per_query) l;
