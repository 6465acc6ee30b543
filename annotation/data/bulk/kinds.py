"""Kinds of bulk acts: how each counts its pairs beforehand, is carried out and is undone."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db.models import QuerySet
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from annotation.data.bulk import judgment_acts, label_acts, queue_acts, reassigning
from annotation.models.pair_table import BulkAct
from corpus.models import Collection
from store.sql import fetch_row

Result = tuple[int, dict[str, Any]]
Kind = BulkAct.Kind


@dataclass(frozen=True, slots=True)
class BulkKind:
    """A kind of act: its texts, its name in the audit log, how many pairs it would change, and how it is carried out.

    `run` returns how many pairs changed and what `undo` needs; `undo` None: it cannot be undone.
    `choices` returns the options of a planned act where they depend on it; each then says how many pairs
    it changes.
    """

    recorded: str
    explanation: Promise
    rest: Promise | str  # Why the other selected pairs stay as they are.
    count: Callable[[Collection, list[int]], int]
    run: Callable[[BulkAct], Result]
    undo: Callable[[BulkAct], int] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    option_title: Any = ""
    choices: Callable[[BulkAct], Mapping[str, Any]] | None = None
    lasting: str = ""  # The option with which an act cannot be undone.
    takes_note: bool = False  # The judgments that it writes have a comment.

    def options_of(self, act: BulkAct) -> Mapping[str, Any]:
        """Return the options of an act; empty: there is no choice."""
        return self.choices(act) if self.choices else self.options

    def can_undo(self, act: BulkAct) -> bool:
        """Return whether an act of this kind was carried out and can be undone."""
        # An empty option means the default, which is the lasting one.
        is_lasting = self.undo is None or (bool(self.lasting) and act.option in ("", self.lasting))
        return act.state == BulkAct.State.DONE and not is_lasting


def _count_by(kind: str) -> Callable[[Collection, list[int]], int]:
    def count(collection: Collection, pairs: list[int]) -> int:
        return int(fetch_row(queue_acts.COUNTS[kind], collection=collection.pk, pairs=pairs)[0])

    return count


def _count_pairs(
    judgments: Callable[[Collection, list[int]], QuerySet[Any]],
) -> Callable[[Collection, list[int]], int]:
    def count(collection: Collection, pairs: list[int]) -> int:
        return judgments(collection, pairs).order_by().values("pair").distinct().count()

    return count


KINDS: dict[str, BulkKind] = {
    Kind.SEND: BulkKind(
        "pairs.sent",
        _("Each pair becomes a task for as many people as the settings say. A new grade replaces the current label."),
        _("The others already wait for people."),
        _count_by("send"),
        queue_acts.send_pairs,
        undo=queue_acts.withdraw_sent,
    ),
    Kind.REASSIGN: BulkKind(
        "pairs.returned",
        _(
            "The pairs are taken from the annotators who have them now; drafts are kept. “Anyone” returns them to "
            "the queue for other people, and this cannot be undone. A member gets the pairs first, and no one else "
            "gets them until the member has judged or skipped them, is paused or leaves, or you undo this. Pairs "
            "that this person already judged, skipped or has are not changed."
        ),
        "",
        # The largest choice, since the page says how many at most.
        lambda collection, pairs: max(n for _who, n in reassigning.list_choices(collection, pairs).values()),
        reassigning.reassign_pairs,
        undo=reassigning.release_pairs,
        option_title=_("Reassign to"),
        choices=reassigning.describe_choices,
        lasting=reassigning.ANYONE,
    ),
    Kind.PRIORITY: BulkKind(
        "pairs.prioritised",
        _("The tasks of these pairs move in the queue. A change of the order in the settings keeps them there."),
        _("The others do not wait for people."),
        _count_by("priority"),
        queue_acts.move_pairs,
        undo=queue_acts.move_back,
        options={
            "first": _("first in the queue"),
            "normal": _("normal order"),
            "last": _("last in the queue"),
        },
        option_title=_("Priority"),
    ),
    Kind.EXCLUDE: BulkKind(
        "pairs.excluded",
        _(
            "Judgments by people on these pairs no longer count in labels, statistics, agreement or exports, and the "
            "pairs return to the queue for other people. Nothing is deleted."
        ),
        _("The others have no judgments by people."),
        _count_pairs(judgment_acts.current_judgments),
        judgment_acts.exclude_pairs,
        undo=judgment_acts.reinstate_excluded,
    ),
    Kind.REINSTATE: BulkKind(
        "pairs.reinstated",
        _("Excluded judgments on these pairs count again."),
        _("The others have no excluded judgments."),
        _count_pairs(judgment_acts.excluded_judgments),
        judgment_acts.reinstate_pairs,
        undo=judgment_acts.exclude_reinstated,
    ),
    Kind.LABEL: BulkKind(
        "pairs.labelled",
        _(
            "Your grade becomes the label of each pair, in your name and as an adjudication: it takes precedence over "
            "judges and people, also over what they say later. Earlier judgments stay in the history. Tasks that "
            "wait for a grade leave the queue, unless someone has the pair open."
        ),
        "",
        lambda collection, pairs: max(label_acts.count_grades(collection, pairs).values()),
        label_acts.set_labels,
        undo=label_acts.withdraw_labels,
        option_title=_("Label"),
        choices=label_acts.describe_grades,
        takes_note=True,
    ),
    Kind.EXPORT: BulkKind(
        "pairs.exported",
        _("You get a file with the IDs, query, title, state, label, reference grade and priority of each pair."),
        "",
        lambda _collection, pairs: len(pairs),
        lambda act: (act.size, {}),
        options={"csv": "CSV", "jsonl": "JSON lines"},
        option_title=_("Format"),
    ),
}
