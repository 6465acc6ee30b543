"""The definition of relevance of a collection. Pure.

People, judges, training sets and rerankers all use the text of a Definition; this file is its only
source. Models read it in English, people in their language (annotation.work.settings.guidelines
translates it line by line).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

# The usual gettext_noop needs Django's settings, which trainers do not have.
from django.utils.translation.trans_null import gettext_noop

AUTO = "auto"
# Names of definitions by an instruction: of the collection, or of one query.
COLLECTION, QUERY = "collection", "query"

RULES = gettext_noop("Rules:")


@dataclass(frozen=True, slots=True)
class Definition:
    """A definition of relevance for a pair: a self-contained statement, and rules for applying it."""

    name: str  # The name of a rubric; COLLECTION or QUERY for an instruction.
    statement: str
    rules: tuple[str, ...] = ()

    @property
    def is_own(self) -> bool:
        """Whether the statement is an instruction, and not a rubric of this file."""
        return self.name in (COLLECTION, QUERY)

    @property
    def text(self) -> str:
        """The statement and the rules, if any, each on a separate line."""
        return "\n".join([self.statement, *(("", RULES, *self.rules) if self.rules else ())])


# A document must contain a whole answer (DREAM F.2, tables 27-29).
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

RUBRICS = {definition.name: definition for definition in (SUFFICIENCY, HELPFULNESS)}


class RelevanceQuestion(Protocol):
    """The fields of a query on which its definition of relevance depends."""

    @property
    def answers(self) -> Sequence[str]: ...
    @property
    def instruction(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Rubric:
    """A collection's relevance definition: a rubric, or an instruction instead."""

    name: str = AUTO
    instruction: str = ""

    def definition(self, *, answers: bool, query_instruction: str = "") -> Definition:
        """Return the definition for a query with or without answers; its own instruction takes precedence.

        "auto" is `sufficiency` for a query with answers and `helpfulness` for one without (docs/adr/0043).
        """
        if query_instruction.strip():
            return Definition(QUERY, query_instruction)
        if self.instruction.strip():
            return Definition(COLLECTION, self.instruction)
        if self.name == AUTO:
            return SUFFICIENCY if answers else HELPFULNESS
        return RUBRICS[self.name]

    def of(self, query: RelevanceQuestion) -> Definition:
        return self.definition(answers=bool(query.answers), query_instruction=query.instruction)

    def definitions(self) -> tuple[Definition, ...]:
        """Return the definitions for queries without instructions: with answers and, if different, without."""
        return tuple(dict.fromkeys(self.definition(answers=answers) for answers in (True, False)))


BY_QUERY = Rubric()  # The default: "auto", without an instruction.
