"""Values that pages show translated: codes of states and policies, names of columns.

They are marked for translation here and translated where they are shown, because files, commands
and the database have them in English.
"""

from django.utils.translation import gettext_noop as _

SHOWN = (
    # Reasons of items.
    _("disagreement"), _("conflict"), _("split"), _("unparsed"), _("refused"), _("error"),
    _("stopped"), _("policy"), _("uncertain"), _("long"), _("hole"), _("requested"), _("audit"),
    _("evidence"), _("study"), _("check"), _("repeat"), _("qualification"),
    # Policies and other origins of labels.
    _("debate"), _("ensemble"), _("debate+ensemble"), _("single"), _("lara"), _("filter"),
    _("llm-adjudicator"), _("human"), _("people"), _("judges"), _("adjudicator"), _("gold"),
    _("audits"), _("none"),
    # States of pairs, and kinds of models.
    _("all"), _("pairs"), _("labelled"), _("escalated"), _("failed"), _("running"),
    _("pending"), _("waits for people"), _("completed by people"),  _("base"), _("adapter"), _("merged"),
    _("random head"), _("tuned"),
    # Progress of a training, which its subprocess reports in English.
    _("starting"), _("loading the base"), _("training"), _("resumed"),
    _("measuring on the dev split"), _("scoring the documents with the reference model"),
    # Columns of the tables behind charts.
    _("from"), _("to"), _("count"), _("value"), _("low"), _("high"), _("note"), _("name"),
    _("group"), _("column"), _("row"), _("step"), _("query"),
    # Kinds of assessors.
    _("person"), _("judge"), _("imported people"), _("imported judge"), _("reference"),
    _("human-import"), _("judge-import"),
)  # fmt: skip

STATE_LABELS = {"open": "waits for people", "settled": "completed by people"}
"""States of pairs whose stored code is not their label."""
