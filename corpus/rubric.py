"""The one definition of relevance of a collection. Pure.

People, judges, training sets and rerankers are all told what a Definition says; the texts stand in
this file alone. Models read them in English, people in their language (annotation.work.settings.guidelines
translates them line by line).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from django.utils.translation.trans_null import gettext_noop  # the other asks for settings; trainers have none

AUTO = "auto"
# Names of definitions in words of their own: the collection's instruction, or that of one query.
COLLECTION, QUERY = "collection", "query"

RULES = gettext_noop("Rules:")


@dataclass(frozen=True, slots=True)
class Definition:
    """A definition of relevance for a pair: a statement that holds alone, and rules for whoever judges by it."""

    name: str  # The rubric's; COLLECTION or QUERY where an instruction stands in its place.
    statement: str
    rules: tuple[str, ...] = ()

    @property
    def is_own(self) -> bool:
        """True if the words are those of an instruction, and not of a rubric of this file."""
        return self.name in (COLLECTION, QUERY)

    @property
    def text(self) -> str:
        """The statement and the rules, if any, each on a line of its own."""
        return "\n".join([self.statement, *(("", RULES, *self.rules) if self.rules else ())])


# A document must hold a whole answer (DREAM F.2, tables 27-29).
SUFFICIENCY = Definition(
    "sufficiency",
    gettext_noop(
        "A document is relevant when it alone says outright all that is needed to give at least one of the listed "
        "answers or, where none are listed, a complete answer to the query. Otherwise it is not relevant."
    ),
    (
        gettext_noop(
            "1. Breadth must match. A particular case does not establish a general answer, and a general remark does "
            "not establish a particular answer."
        ),
        gettext_noop(
            "2. The core of the answer must be in the document, told consistently, with nothing in the document that "
            "contradicts it."
        ),
        gettext_noop(
            "3. The document must say it outright. Do not close a gap by inference, by reversing a negation, or with "
            "what everybody knows."
        ),
        gettext_noop(
            "4. The document must mean the same thing: same purpose, same reach, same advice on what to do. A shared "
            "subject or shared terms are not enough."
        ),
        gettext_noop("5. Only completeness counts. Further material in the document neither helps nor harms."),
        gettext_noop(
            "6. Equal wording is not evidence by itself. Before you count a passage, check that it means and advises "
            "what the answer does."
        ),
        gettext_noop(
            "7. Take listed answers as they are. Do not ask whether they are true, whether they suit the query, or "
            "whether they agree with one another. Where none are listed, the query alone says what would be an answer."
        ),
        gettext_noop(
            "8. Look at every listed answer separately, and at every sensible reading of the query where none are "
            "listed. One that is supported in full is enough; halves of two are not."
        ),
    ),
)

# A document must help (ERank table 7, Prism, BRIGHT-Pro 3.3).
HELPFULNESS = Definition(
    "helpfulness",
    gettext_noop(
        "A document is relevant when something in it is of use for an answer to the query: it helps to answer, or it "
        "supports one or more aspects of an answer. Treating the same subject is not enough."
    ),
    (
        gettext_noop(
            "1. A part is enough. A single fact, step, cause, example, figure or principle that goes into an answer "
            "counts, however much is still missing."
        ),
        gettext_noop(
            "2. Point to it. Say which statement of the document helps, and with what in the query. Where you can "
            "point to none, the document is not relevant."
        ),
        gettext_noop(
            "3. The way from that statement to an answer may take some thought: the document need not speak of the "
            "query, nor use its words."
        ),
        gettext_noop(
            "4. The document may be narrower or wider than the query. A single study or case bears on a general "
            "question, and a general principle on a particular one."
        ),
        gettext_noop(
            "5. A shared subject, shared terms or a shared name is no help by itself, and neither is a mere pointer "
            "to a place where help might be found."
        ),
        gettext_noop(
            "6. Listed answers, where there are any, show what is sought. A document that supports one of them, or a "
            "part of one, helps."
        ),
        gettext_noop("7. Further material in the document neither helps nor harms."),
        gettext_noop("8. Take the document's statements as they are. Do not ask whether they are true."),
    ),
)

RUBRICS = {one.name: one for one in (SUFFICIENCY, HELPFULNESS)}


class RelevanceQuestion(Protocol):
    """A query, as far as its definition of relevance goes."""

    @property
    def answers(self) -> Sequence[str]: ...
    @property
    def instruction(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Rubric:
    """A collection's relevance definition: a rubric, or an instruction instead."""

    name: str = AUTO
    instruction: str = ""

    def definition(self, *, answers: bool, own: str = "") -> Definition:
        """Return what holds for a query. `answers`: whether it lists some; `own`: its instruction, which goes first.

        "auto" is `sufficiency` for a query with answers and `helpfulness` for one without (docs/adr/0043).
        """
        if own.strip():
            return Definition(QUERY, own)
        if self.instruction.strip():
            return Definition(COLLECTION, self.instruction)
        if self.name == AUTO:
            return SUFFICIENCY if answers else HELPFULNESS
        return RUBRICS[self.name]

    def of(self, query: RelevanceQuestion) -> Definition:
        return self.definition(answers=bool(query.answers), own=query.instruction)

    def definitions(self) -> tuple[Definition, ...]:
        """Return what holds for queries without instructions: with answers, then without where that is another."""
        return tuple(dict.fromkeys(self.definition(answers=answers) for answers in (True, False)))


BY_QUERY = Rubric()  # "auto", without an instruction: what holds where nobody chose.
