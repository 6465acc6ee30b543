-- The drawn queries of a collection with the documents that a set compares. Locks nothing.
-- :documents is relevant, judged or pool; :names limits the queries by their ids (null: all); :queries their number.
WITH eligible AS (
    SELECT p.query_id, p.query, p.id AS pair, count(*) OVER (PARTITION BY p.query_id) AS documents,
        row_number() OVER (
            PARTITION BY p.query_id
            ORDER BY CASE WHEN :documents = 'pool' THEN p.teacher_score END DESC NULLS LAST,
                sha256(convert_to(concat_ws(':', :seed::text, p.query, p.document), 'UTF8'))) AS place
    FROM current_pair p
    LEFT JOIN corpus_label l ON l.pair_id = p.id AND l.aspect_id IS NULL
    WHERE p.collection_id = :collection
      AND CASE :documents WHEN 'relevant' THEN l.grade >= :relevant_from WHEN 'judged' THEN l.grade IS NOT NULL
          ELSE p.is_candidate END
      AND (:names::text[] IS NULL OR p.query = ANY(:names::text[]))
), drawn AS (
    SELECT query_id, row_number() OVER (ORDER BY sha256(convert_to(concat_ws(':', :seed::text, query), 'UTF8'))) AS turn
    FROM eligible WHERE place = 1 AND documents >= 2
)
SELECT drawn.turn, eligible.query_id, eligible.pair
FROM drawn JOIN eligible USING (query_id)
WHERE eligible.place <= :most AND (:queries::int IS NULL OR drawn.turn <= :queries::int)
ORDER BY drawn.turn, eligible.place;
