-- The first documents of a collection with all terms of a search, or with the id that was typed. A common word is soon
-- found in the collection's first documents, and the index would list all that have it; only for others it is asked.
-- The inner limits keep the planner, which does not know how rare the beginning of a word is, from reading the table
-- until it has enough. Documents whose title has what was typed come first. Reads only.
WITH named AS (
    SELECT id AS document FROM corpus_document WHERE collection_id = :collection AND external_id = :typed AND is_current
),
few AS MATERIALIZED (
    SELECT id AS document, position(lower(:typed) IN lower(title)) > 0 AS is_titled
    FROM corpus_document WHERE collection_id = :collection AND is_current
    ORDER BY external_id LIMIT :sample
),
common AS MATERIALIZED (
    SELECT few.document FROM few JOIN corpus_documentterms t ON t.document_id = few.document
    WHERE t.terms @@ :search::tsquery ORDER BY few.is_titled DESC LIMIT :most
),
rare AS MATERIALIZED (
    SELECT document_id AS document FROM corpus_documentterms
    WHERE collection_id = :collection AND terms @@ :search::tsquery AND (SELECT count(*) FROM common) < :most
    LIMIT :indexed
),
found AS MATERIALIZED (
    SELECT document FROM named UNION SELECT document FROM common UNION (SELECT document FROM rare LIMIT :most)
)
SELECT d.external_id, left(coalesce(nullif(d.title, ''), d.text), :letters)
FROM found JOIN corpus_document d ON d.id = found.document
WHERE d.is_current ORDER BY d.external_id = :typed DESC, position(lower(:typed) IN lower(d.title)) > 0 DESC LIMIT :most;
