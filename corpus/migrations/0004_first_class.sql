-- The texts of a task, as 0003_functions.sql has them, with the sources of those that were imported as HTML.
CREATE OR REPLACE VIEW task_text AS
SELECT i.id AS item, i.pair_id, coalesce(nullif(i.shown_as, ''), i.reason) AS reason, i.arm, q.text AS query, q.answers,
       q.instruction, d.title, d.text AS document, d.external_id AS source, d.html, q.answers_html
FROM corpus_item i
JOIN corpus_pair p ON p.id = i.pair_id
JOIN corpus_query q ON q.id = p.query_id
JOIN corpus_document d ON d.id = p.document_id;
