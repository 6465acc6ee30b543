-- The order of items in the queue: a returned item takes a new place at the end.

CREATE SEQUENCE corpus_item_place;
ALTER TABLE corpus_item ALTER COLUMN place SET DEFAULT nextval('corpus_item_place');

-- Judgments that no later one took the place of, and of these the ones that have a grade.

CREATE VIEW judgment_head AS
SELECT * FROM corpus_judgment j
WHERE NOT EXISTS (SELECT FROM corpus_judgment later WHERE later.supersedes_id = j.id);

CREATE VIEW current_judgment AS SELECT * FROM judgment_head WHERE grade IS NOT NULL;
