"""SQL of which statements of exports are made: current pairs, the order of their ids, labels made anew. Pure."""

ORDER = 'q.external_id COLLATE "C", d.external_id COLLATE "C"'
# A pair of an older version of a text keeps its evidence but has the ids of the newer one: it would be in twice.
PAIRS = """
    JOIN corpus_pair p ON p.id = {of}.pair_id AND p.collection_id = %(collection)s
    JOIN corpus_query q ON q.id = p.query_id AND q.is_current
    JOIN corpus_document d ON d.id = p.document_id AND d.is_current
"""
# Of labels `l`: pairs that the export leaves out.
KEPT = "NOT EXISTS (SELECT FROM unnest(%(left_out)s::bigint[]) AS gone(pair) WHERE gone.pair = l.pair_id)"

# Labels that were made anew (annotation.label_sources.aggregated_labels), in the form of corpus_label.
AGGREGATED = """(
    SELECT made.pair_id, made.grade, made.origin, NULL::bigint AS aspect_id, made.posterior
    FROM unnest(%(label_pairs)s::bigint[], %(label_grades)s::smallint[], %(label_origins)s::text[],
                %(label_posteriors)s::float8[]) AS made(pair_id, grade, origin, posterior)
)"""
