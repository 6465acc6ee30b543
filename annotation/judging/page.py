"""Context of the judging page, as frozen records: one statement for a pair with its debate."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from annotation.judging.debates import Debate, DebateText, debate_of, final_round, text_of
from annotation.judging.document import document_html
from annotation.models import Membership
from annotation.queue.assignment import EVIDENCE, read_rows
from corpus.collections.arm_allocation import ALL_ROUNDS, FINAL_ROUND, REVEAL
from corpus.evidence.measures import DIMENSIONS
from corpus.evidence.targets import last_of_judge, last_text
from corpus.holding import deleted_meanwhile
from corpus.labels import grade_label, name_grade
from corpus.models import Collection, Item
from corpus.search.text import find_terms

QUEUE_SHOWN = 1000  # The queue is counted up to here: "1,000+" says enough.

# Fields of the page that are kept before they are sent.
TYPED = ("comment", "note", "contribution", "evidence", "spans")
SAID_FOR_SECONDS = 8
COUNTED_FOR_SECONDS = 30.0

SAID = {"saved": gettext_lazy("Saved."), "flagged": gettext_lazy("Flagged."), "skipped": gettext_lazy("Skipped.")}
WHY = {
    "disagreement": gettext_lazy("The two sides did not agree."),
    "conflict": gettext_lazy("The debate and the vote disagree."),
    "split": gettext_lazy("The panel is split: no answer has enough votes."),
    "unparsed": gettext_lazy("A model's answer could not be parsed."),
    "refused": gettext_lazy("A model declined to answer."),
    "error": gettext_lazy("A model could not be reached."),
    "long": gettext_lazy("Its document is longer than the models read."),
    "hole": gettext_lazy("A system retrieved it for this query, and it has no judgment yet."),
    "audit": gettext_lazy("Judge from the text alone; no debate is shown."),
    "qualification": gettext_lazy("Part of the practice and qualification test."),
    "evidence": gettext_lazy("It is relevant, but the model's evidence failed its checks."),
}
WHY_ELSE = gettext_lazy("Sent to people for review.")
RATINGS = {
    1: gettext_lazy("useless"),
    2: gettext_lazy("poor"),
    3: gettext_lazy("usable"),
    4: gettext_lazy("good"),
    5: gettext_lazy("no changes needed"),
}


@dataclass(frozen=True)
class TaskView:
    """A pair as an annotator sees it. `seconds` are left of the lease (negative: it ran out)."""

    item: int  # Its public id (Assignment.item_of); its own id for adjudicators.
    token: str
    seconds: int
    why: str
    query: DebateText
    answers: tuple[DebateText, ...]
    need: DebateText
    title: DebateText
    document: DebateText
    source: str
    debate: Debate
    comment: str = ""
    grade: int | None = None
    # Without the debate: an audit, an item that asks for texts, an arm that hides it.
    blind: bool = False
    step: str = ""  # In the reveal arm: first (the debate follows) or final (it is shown now).
    # Contribution and evidence to be edited, where the item asks for them.
    draft: dict[str, Any] | None = None
    # What was typed or marked and not sent, by field of the page.
    typed: Mapping[str, str] = field(default_factory=dict)
    only_alone: bool = False  # It belongs on a page of its own: texts to edit, practice and test.
    ended: str = ""  # Flagged or skipped by this person, in words.
    spans: str = ""  # What its author marked before it was taken back, as the form has it: "12-40,55-60".

    markdown: bool = False

    @property
    def html(self) -> SafeString:
        """The document's text with its quoted sentences marked."""
        return document_html(self.document.text, self.debate.spans, markdown=self.markdown)

    @property
    def terms(self) -> str:
        """Return where the document has the query's terms, as spans of characters for the page: "12-40,55-60"."""
        found = find_terms(self.query.text, self.document.text, language=self.query.lang)
        return ",".join(f"{start}-{end}" for start, end in found)


@dataclass(frozen=True, slots=True)
class Desktop:
    """Figures around the pair: today's work, how many pairs wait for this person, and which decision can be undone."""

    today: int
    spent_ms: int  # On today's judgments, without idle time.
    waiting: int  # Up to QUEUE_SHOWN + 1.
    last_item: int | None
    last_what: str | None  # saved, flagged or skipped.
    last_seconds: int | None

    @property
    def just_now(self) -> bool:
        """Return whether the last decision was made so recently that the page still confirms it."""
        return self.last_seconds is not None and self.last_seconds < SAID_FOR_SECONDS

    @property
    def last_decision_text(self) -> str:
        """The last decision as a sentence."""
        return str(SAID.get(self.last_what or "", ""))

    @property
    def queue_length_text(self) -> str:
        """The length of the queue, as far as it was counted."""
        return f"{QUEUE_SHOWN:,}+" if self.waiting > QUEUE_SHOWN else f"{self.waiting:,}"

    @property
    def minutes(self) -> int:
        """Minutes of judging today, without idle time."""
        return round(self.spent_ms / 60_000)

    @property
    def pace(self) -> int:
        """Seconds for a pair, on today's average; 0 where nothing was measured."""
        return round(self.spent_ms / 1000 / self.today) if self.today else 0


# Where the debate must not be seen, it does not even leave the database. An item without an arm is shown it.
_READS = """
i.reason NOT IN ('audit', 'evidence')
AND (i.arm IN ('', 'shown') OR i.arm = 'reveal' AND f.grade IS NOT NULL)
"""
_ADJUDICATES = "i.reason NOT IN ('audit', 'evidence')"
# A check may bring its own turns; else the newest debate about the pair, one that was broken off after all others.
_DEBATE = """
CASE WHEN i.turns IS NOT NULL THEN i.turns::json ELSE (
 SELECT json_agg(json_build_object('side', t.role, 'round', t.round, 'couple', t.agent_pair, 'verdict', t.verdict,
                                   'reason', t.reason, 'quotes', t.quotes, 'window', t."window")
                 ORDER BY t.round, t.agent_pair, t.role DESC)
 FROM counted_attempt t
 WHERE t.pair_id = i.pair_id AND t.role IN ('for', 'against')
   AND t.campaign_id = (
    SELECT c.campaign_id FROM counted_attempt c
    LEFT JOIN judges_work w ON w.campaign_id = c.campaign_id AND w.pair_id = c.pair_id
    WHERE c.pair_id = i.pair_id AND c.role IN ('for', 'against')
    ORDER BY coalesce(w.state IN ('labelled', 'escalated'), false) DESC, c.campaign_id DESC LIMIT 1)) END
"""

_TEXTS = """
i.id AS item, coalesce(nullif(i.shown_as, ''), i.reason) AS reason, i.arm, q.text AS query, q.answers, q.instruction,
d.title, d.text AS document, d.external_id AS source
"""
_PAIR = f"{_TEXTS}, f.grade AS first, {_READS} AS reads, CASE WHEN {_READS} THEN {_DEBATE} END AS debate"

_FROM = """
JOIN corpus_pair p ON p.id = i.pair_id
JOIN corpus_query q ON q.id = p.query_id
JOIN corpus_document d ON d.id = p.document_id
"""

_AROUND = """
day.decided, day.today, day.spent_ms, l.public_id AS last_item, l.what AS last_what, l.seconds AS last_seconds
"""
_LAST = """
LEFT JOIN LATERAL (
    SELECT t.public_id,
           CASE WHEN t.state = 'skipped' THEN 'skipped' WHEN t.flagged THEN 'flagged' ELSE 'saved' END AS what,
           extract(epoch FROM clock_timestamp() - t.ended_at)::int AS seconds
    FROM annotation_assignment t
    WHERE t.membership_id = m.id AND t.state IN ('done', 'skipped') AND t.ended_at > now() - interval '24 hours'
    ORDER BY t.ended_at DESC LIMIT 1) l ON true
CROSS JOIN LATERAL (
    SELECT count(*) AS decided, count(*) FILTER (WHERE NOT t.flagged AND t.judgment_id IS NOT NULL) AS today,
           coalesce(sum(j.milliseconds - coalesce(j.idle_milliseconds, 0)), 0)::bigint AS spent_ms
    FROM annotation_assignment t LEFT JOIN corpus_judgment j ON j.id = t.judgment_id
    WHERE t.membership_id = m.id AND t.ended_at >= date_trunc('day', now()) AND t.state = 'done') day
"""
_OPEN = f"""
SELECT {_AROUND}, {_PAIR}, a.public_id, a.token, extract(epoch FROM a.lease_until - now())::int AS seconds,
       coalesce(before.comment, f.comment) AS comment, coalesce(before.spans, f.spans)::json AS spans,
       a.draft::json AS draft,
       CASE WHEN f.grade IS NOT NULL THEN extract(epoch FROM clock_timestamp() - f.created_at)::int END AS first_seconds
FROM annotation_membership m {_LAST}
JOIN annotation_assignment a ON a.membership_id = m.id AND a.state = 'open'
JOIN corpus_item i ON i.id = a.item_id {_FROM}
LEFT JOIN corpus_judgment j ON j.id = a.judgment_id
LEFT JOIN corpus_judgment before ON before.id = j.supersedes_id
LEFT JOIN corpus_judgment f ON f.id = a.first_id
WHERE m.id = %(membership)s
"""
# A whole group, in an order that tells nothing.
_HELD = f"{_OPEN} ORDER BY hashint8extended(a.item_id, a.membership_id)"
_ONE = f"{_OPEN} AND a.item_id = %(item)s"
_OPEN = f"{_OPEN} ORDER BY a.place LIMIT 1"
_RESTING = f"SELECT {_AROUND} FROM annotation_membership m {_LAST} WHERE m.id = %(membership)s"
_WAITING_FOR = f"""
SELECT count(*) AS waiting FROM (
    SELECT FROM corpus_item i
    WHERE i.collection_id = %(collection)s AND i.state = 'open' AND i.taken < i.overlap
      AND NOT EXISTS (SELECT FROM annotation_assignment a WHERE a.item_id = i.id
                      AND a.membership_id = %(membership)s AND a.state <> 'returned')
      AND CASE WHEN i.reserved THEN EXISTS (SELECT FROM annotation_reservedfor r
               WHERE r.item_id = i.id AND r.membership_id = %(membership)s) ELSE true END
    ORDER BY i.priority, i.place LIMIT {QUEUE_SHOWN + 1}) counted
"""
_MINE = f"""
SELECT {_PAIR}, a.public_id, a.token, 0 AS seconds, j.grade,
       CASE WHEN a.state = 'skipped' THEN 'skipped' WHEN a.state = 'done' AND a.flagged THEN 'flagged' END AS ended
FROM annotation_assignment a JOIN corpus_item i ON i.id = a.item_id {_FROM}
LEFT JOIN corpus_judgment j ON j.id = a.judgment_id
LEFT JOIN corpus_judgment f ON f.id = a.first_id
WHERE a.membership_id = %(membership)s AND a.item_id = %(item)s
"""
_ITEM = f"""
SELECT {_TEXTS}, {_ADJUDICATES} AS reads, CASE WHEN {_ADJUDICATES} THEN {_DEBATE} END AS debate,
       i.id AS public_id, '' AS token, 0 AS seconds
FROM corpus_item i {_FROM} WHERE i.id = %(item)s
"""


def read_open_task(membership: Membership) -> tuple[TaskView | None, Desktop]:
    """Return the member's open task, if any, and the queue's figures around it; reading never claims a task."""
    found = read_rows(_OPEN, membership=membership.pk)
    if found:
        return _build_task_view(found[0], membership.collection), _build_desktop(found[0], membership)
    row = _read_one(_RESTING, membership=membership.pk)
    _counted.pop(membership.pk, None)  # whoever is told that nothing is left is told the truth
    return None, _build_desktop(row, membership)


def read_open_tasks(membership: Membership, *, item: int | None = None) -> list[TaskView]:
    """Return the member's open tasks of one query, in an order of their own, or the one task on this item."""
    statement = _HELD if item is None else _ONE
    found = read_rows(statement, membership=membership.pk, item=item)
    return [_build_task_view(row, membership.collection) for row in found]


def read_desktop(membership: Membership) -> Desktop:
    """Read what stands around a lease group."""
    return _build_desktop(_read_one(_RESTING, membership=membership.pk), membership)


def _build_desktop(row: dict[str, Any], membership: Membership) -> Desktop:
    around = row["today"], row["spent_ms"], _count_left(membership, row["decided"], holds="token" in row)
    if row.get("first_seconds") is not None:
        # The last decision is the first vote on the open pair itself.
        return Desktop(*around, row["public_id"], "saved", row["first_seconds"])
    return Desktop(*around, row["last_item"], row["last_what"], row["last_seconds"])


# By membership: until when the count holds, how many were left, and how many they had judged that day.
_counted: dict[int, tuple[float, int, int]] = {}
MOST_COUNTED = 10_000


def _count_left(membership: Membership, today: int, *, holds: bool) -> int:
    """Count the pairs left for this member, with the one they hold: every half minute, less what was judged since."""
    until, left, judged = _counted.get(membership.pk, (0.0, 0, 0))
    if time.monotonic() > until or today < judged:
        rows = read_rows(_WAITING_FOR, membership=membership.pk, collection=membership.collection_id)
        left, judged = rows[0]["waiting"] + holds, today
        # Emptied now and then: a process serves thousands of people in its life, and a new count is one statement.
        if len(_counted) >= MOST_COUNTED:
            _counted.clear()
        _counted[membership.pk] = (time.monotonic() + COUNTED_FOR_SECONDS, left, judged)
    return left if left > QUEUE_SHOWN else max(int(holds), left - (today - judged))


def own_work(membership: Membership, item: int) -> TaskView | None:
    """Return a task that this member was assigned, with their grade if they gave one."""
    found = read_rows(_MINE, membership=membership.pk, item=item)
    return _build_task_view(found[0], membership.collection) if found else None


def conflict_work(collection: Collection, item: int) -> TaskView:
    """Return a conflict for an adjudicator, under its own id, with all rounds of its debate."""
    return _build_task_view(_read_one(_ITEM, item=item), collection, ALL_ROUNDS)


def _read_one(statement: str, **values: int) -> dict[str, Any]:
    """Return a statement's only row. Raises Deleted where a member or an item went meanwhile."""
    for row in read_rows(statement, **values):
        return row
    raise deleted_meanwhile()


def draft_of(item: int) -> dict[str, Any]:
    """Return the texts to edit on an item with the reason `evidence`, with their measures. Two statements.

    `writer`: the judge whose texts failed, "" when none wrote; `scores`: by judged dimension, as the page names it;
    `meaning`: what they measure, quality or fidelity to teacher.
    """
    pair = Item.objects.values_list("pair", flat=True).get(pk=item)
    newest, judge = last_text(pair), last_of_judge(pair)
    measures: dict[str, Any] = judge.measures if judge else {}
    judged = measures.get("judged") or {}
    scores = judged.get("scores") or {}
    return {
        "contribution": newest.contribution if newest else "",
        "evidence": newest.evidence if newest else "",
        "writer": judge.writer if judge else "",
        "problems": tuple(measures.get("problems", ())),
        "scores": {name.replace("_", " "): scores[name] for name in DIMENSIONS if name in scores},
        "scored_by": judged.get("judge", ""),
        "meaning": judged.get("as", ""),
    }


def grade_choices(collection: Collection) -> list[dict[str, Any]]:
    """List the buttons of a collection's scale. Binary scales show relevant first, as the keys 1 and 0 do."""
    highest = collection.grades
    found = [
        {
            "value": value,
            "words": grade_label(value, highest),
            "key": str(value) if value < 10 else "",
            "relevant": value >= collection.relevant_from,
        }
        for value in range(highest + 1)
    ]
    return found[::-1] if highest == 1 else found


def _build_task_view(row: dict[str, Any], collection: Collection, rounds: str = "") -> TaskView:
    turns = row["debate"] or []
    shown = final_round(turns) if (rounds or collection.rounds) == FINAL_ROUND else turns
    debate = debate_of(shown, len(row["document"]))
    step, held = _judgment_step(row), {(turn["round"], turn.get("couple", 0)) for turn in turns}
    return TaskView(
        item=row["public_id"],
        token=row["token"],
        seconds=row["seconds"],
        why=_explain_reason(row, step, len(held), collection.grades),
        query=text_of(row["query"]),
        answers=tuple(text_of(answer) for answer in row["answers"]),
        need=text_of(row["instruction"] or collection.instruction),
        title=text_of(row["title"]),
        document=text_of(row["document"]),
        source=row["source"],
        debate=debate,
        comment=row.get("comment") or "",
        grade=row.get("grade"),
        blind=not row["reads"],
        step=step,
        draft=draft_of(row["item"]) if row["reason"] == EVIDENCE else None,
        typed={**dict.fromkeys(TYPED, ""), **(row.get("draft") or {})},
        ended=str(SAID.get(row.get("ended") or "", "")),
        only_alone=row["reason"] in (EVIDENCE, "qualification"),
        spans=",".join(f"{start}-{end}" for start, end in row.get("spans") or []),
        markdown=collection.markdown,
    )


def _judgment_step(row: dict[str, Any]) -> str:
    if row["arm"] != REVEAL or row["reason"] == "audit" or "first" not in row:
        return ""
    return "first" if row["first"] is None else "final"


def _explain_reason(row: dict[str, Any], step: str, rounds: int, highest: int) -> str:
    """Explain why a pair came, in words that tell nothing of a debate that is not shown."""
    if step == "first":
        return _("Judge from the text first. You then read the debate and judge again.")
    if step == "final":
        given = name_grade(row["first"], highest)
        return _("Your first judgment: %(given)s. Now read the debate, then confirm or change it.") % {"given": given}
    if not row["reads"] and row["reason"] != EVIDENCE:
        return str(WHY["audit"])
    if rounds and row["reason"] == "disagreement":
        words = ngettext(
            "No agreement after %(rounds)d round.",
            "No agreement after %(rounds)d rounds.",
            rounds,
        )
        return words % {"rounds": rounds}
    return str(WHY.get(row["reason"], WHY_ELSE))
