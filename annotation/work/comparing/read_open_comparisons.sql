-- The open comparisons of a member in sets at work, an answer that was undone first. Locks nothing.
SELECT s.number, c.seq, l.swapped, q.text, q.answers, q.answers_html, q.instruction,
    a.title, a.text, a.html, b.title, b.text, b.html
FROM annotation_comparisonlease l
JOIN annotation_comparison c ON c.id = l.comparison_id
JOIN annotation_comparisonset s ON s.id = c.set_id AND s.ended_at IS NULL AND s.paused_at IS NULL
JOIN corpus_pair first ON first.id = c.first_id
JOIN corpus_pair second ON second.id = c.second_id
JOIN corpus_query q ON q.id = first.query_id
JOIN corpus_document a ON a.id = first.document_id
JOIN corpus_document b ON b.id = second.document_id
WHERE l.membership_id = :membership AND l.is_open
ORDER BY l.answered_at DESC NULLS LAST, s.number, c.seq;
