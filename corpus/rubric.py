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
        "A document is relevant if it states, on its own, everything needed for at least one listed answer or, "
        "if none are listed, for a complete answer to the query. Otherwise it is not relevant."
    ),
    (
        gettext_noop(
            "1. Scope must match. A specific case does not establish a general answer, and a general statement does "
            "not establish a specific answer."
        ),
        gettext_noop("2. The core of the answer must be stated without contradiction in the document."),
        gettext_noop(
            "3. The document must state it explicitly. Do not fill gaps by inference, by reversing a negation, or "
            "with common knowledge."
        ),
        gettext_noop(
            "4. The document must mean the same thing: same purpose, same scope, same advice on what to do. A shared "
            "topic or shared terms are not enough."
        ),
        gettext_noop("5. Only completeness counts. Additional content in the document neither helps nor hurts."),
        gettext_noop(
            "6. Matching words are not evidence. Before you count a passage, check that it means and advises the "
            "same as the answer."
        ),
        gettext_noop(
            "7. Take the listed answers as given. Do not judge whether they are true, fit the query, or agree with "
            "one another. If none are listed, the query alone determines what counts as an answer."
        ),
        gettext_noop(
            "8. Consider each listed answer separately or, if none are listed, each reasonable reading of the query. "
            "One fully supported answer is enough; parts of two are not."
        ),
    ),
)

# A document must help (ERank table 7, Prism, BRIGHT-Pro 3.3).
HELPFULNESS = Definition(
    "helpfulness",
    gettext_noop(
        "A document is relevant if something in it is useful for answering the query: it helps to answer, or it "
        "supports one or more aspects of an answer. Covering the same topic is not enough."
    ),
    (
        gettext_noop(
            "1. A part is enough. A single fact, step, cause, example, figure or principle that belongs in an answer "
            "counts, no matter how much is missing."
        ),
        gettext_noop(
            "2. Point to it. Say which statement in the document helps, and with which part of the query. If you "
            "cannot point to one, the document is not relevant."
        ),
        gettext_noop(
            "3. Getting from that statement to an answer may take some reasoning: the document need not mention the "
            "query or use its words."
        ),
        gettext_noop(
            "4. The document may be narrower or broader than the query. A single study or case can bear on a general "
            "question, and a general principle on a specific one."
        ),
        gettext_noop(
            "5. A shared topic, shared terms or a shared name does not help by itself, and neither does a mere "
            "pointer to where help might be found."
        ),
        gettext_noop(
            "6. Listed answers, if any, show what is wanted. A document that supports one of them, or part of one, "
            "helps."
        ),
        gettext_noop("7. Additional content in the document neither helps nor hurts."),
        gettext_noop("8. Take the document's statements as given. Do not judge whether they are true."),
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
