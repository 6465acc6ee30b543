"""What the answers of a search endpoint lacked, and what they brought, as sentences."""

from django.utils.translation import ngettext

from benchmark.models import Run

# The keys of Run.counts. `varying`: hits with another text than the run has of their document. Beside them, by
# ELSEWHERE and the name of another endpoint: changed documents whose text had come from that one.
COUNTED = ("empty", "partial", "duplicates", "without_id", "without_text", "varying", "new", "changed")
ELSEWHERE = "elsewhere:"


def describe_answers(run: Run) -> list[str]:
    """Return a line for each count of a run by a search endpoint that is not 0; none for other runs."""
    counts = {name: int(run.counts.get(name, 0)) for name in COUNTED}
    lines = {
        "empty": ngettext(
            "%(count)s answer without documents: its query counts as 0",
            "%(count)s answers without documents: their queries count as 0", counts["empty"]),
        "partial": ngettext(
            "%(count)s partial answer: the engine did not search all documents in its time",
            "%(count)s partial answers: the engine did not search all documents in its time", counts["partial"]),
        "duplicates": ngettext(
            "%(count)s hit repeated a document of its answer and was left out",
            "%(count)s hits repeated a document of their answer and were left out", counts["duplicates"]),
        "without_id": ngettext(
            "%(count)s hit without a usable id was left out",
            "%(count)s hits without a usable id were left out", counts["without_id"]),
        "without_text": ngettext(
            "%(count)s hit without text kept its rank",
            "%(count)s hits without text kept their rank", counts["without_text"]),
        "varying": ngettext(
            "%(count)s hit had another text than the same document in an earlier answer, which was kept",
            "%(count)s hits had another text than the same document in an earlier answer, which was kept",
            counts["varying"]),
        "new": ngettext("%(count)s new document", "%(count)s new documents", counts["new"]),
        "changed": ngettext(
            "%(count)s document had another text than in the collection: a new version, whose pairs have no labels yet",
            "%(count)s documents had another text than in the collection: new versions, whose pairs have no labels yet",
            counts["changed"]),
    }  # fmt: skip
    sentences = [lines[name] % {"count": f"{count:,}"} for name, count in counts.items() if count]
    for name, count in sorted(run.counts.items()):
        if name.startswith(ELSEWHERE):
            sentence = ngettext(
                "%(count)s of them had its text from the endpoint %(endpoint)s: if both map other fields, each run "
                "replaces the texts of the other",
                "%(count)s of them had their text from the endpoint %(endpoint)s: if both map other fields, each run "
                "replaces the texts of the other",
                count,
            )
            sentences.append(sentence % {"count": f"{count:,}", "endpoint": name.removeprefix(ELSEWHERE)})
    return sentences
