"""Options that change the settings of a collection."""

from typing import Annotated, Any, Self

from django.db.models import TextChoices
from django.utils.translation import gettext_lazy as _
from pydantic import BeforeValidator, StringConstraints, field_validator, model_validator

from actions.options import Options, option
from corpus.collections.arm_allocation import HIGHEST
from corpus.errors import BadOption
from corpus.models import Collection
from corpus.models.texts import shown_only

AMOUNTS = ("hourly_rate", "budget", "daily_budget")
TEXTS = ("instruction", "guidelines")


class SettingsPreset(TextChoices):
    """Settings of a paper's study."""

    DREAM = "dream", "DREAM"


# DREAM 3.2.4, 4.1, F: three people judge each pair as relevant or not, and read the final round.
PRESETS: dict[SettingsPreset, dict[str, Any]] = {
    SettingsPreset.DREAM: {
        "grades": 1,
        "relevant_from": 1,
        "overlap": 3,
        "rounds": "final",
        "checks": 0.1,
        "pass_mark": 90,
        "arms": shown_only(),
    },
}


class ArmWeights(Options):
    """Weights of the experiment arms, by which they are drawn; 0 for an arm that is left out."""

    shown: int = option(_("Debate shown"), _("The debate is shown from the start."), default=0, ge=0, le=HIGHEST)
    hidden: int = option(_("Debate hidden"), _("Only query and document are shown."), default=0, ge=0, le=HIGHEST)
    reveal: int = option(
        _("First judgment, then the debate"),
        _("A first judgment from query and document, then the debate, then the final judgment."),
        default=0, ge=0, le=HIGHEST,
    )  # fmt: skip

    @model_validator(mode="after")
    def some_arm_is_drawn(self) -> Self:
        if not self.shown + self.hidden + self.reveal:
            raise BadOption("arms", _("Give at least one arm a weight above 0."))
        return self


def _split_lines(value: object) -> object:
    """Split a field's text into its lines, without empty ones; return other values unchanged."""
    return [line.strip() for line in value.splitlines() if line.strip()] if isinstance(value, str) else value


Lines = Annotated[list[Annotated[str, StringConstraints(min_length=1, max_length=250)]], BeforeValidator(_split_lines)]
# A settings file removes an amount with `"none"`.
Amount = Annotated[float | None, BeforeValidator(lambda value: None if value == "none" else value)]


class SettingsOptions(Options):
    """Settings of a collection; those that are left out do not change."""

    title: str | None = option(_("Title"), _("Shown at the top of each page."), default=None, at_most=200, clears=True)
    preset: SettingsPreset | None = option(
        _("Preset"), _("Settings of a paper's study. Others that are given go first."), default=None
    )
    rubric: Collection.Rubrics | None = option(
        _("Rubric"),
        _(
            "Relevance definition used when there is no instruction. Changing it creates new versions of the "
            "guidelines and prompts; the next campaign calls the models again."
        ),
        default=None,
    )
    instruction: str | None = option(
        _("Instruction"), _("What makes a document relevant, in place of the rubric."), default=None, at_most=50_000
    )
    guidelines: str | None = option(
        _("Guidelines"), _("Instructions that annotators read."), default=None, at_least=1, at_most=50_000
    )
    grades: int | None = option(_("Highest grade"), _("The lowest is 0."), default=None, ge=1, le=100)
    overlap: int | None = option(
        _("People per pair"),
        _("Usually 1 or 3. With more than one, the majority decides and ties go to an adjudicator."),
        default=None, ge=1, le=25,
    )  # fmt: skip
    order: Collection.Order | None = option(_("Order"), _("Which pairs annotators get first."), default=None)
    rounds: Collection.Rounds | None = option(
        _("Debate rounds shown"),
        _("Recorded with each judgment. Adjudicators always see all rounds."),
        default=None,
    )
    lease_minutes: int | None = option(
        _("Time limit per pair (minutes)"),
        _("After this time, an unjudged pair returns to the queue."),
        default=None, ge=1, le=1_440,
    )  # fmt: skip
    min_judgment_ms: int | None = option(
        _("Minimum judgment time (milliseconds)"),
        _("Grades given sooner after a pair appears are rejected as accidental double presses. 0 = never."),
        default=None, ge=0, le=10_000,
    )  # fmt: skip
    relevant_from: int | None = option(
        _("Lowest grade that counts as relevant"),
        _("This grade and higher grades count as relevant."),
        default=None, ge=1, le=100,
    )  # fmt: skip
    grade_names: Lines | None = option(
        _("Names of the grades"),
        _(
            "One line for each grade, from 0 on: a name or, with a help for the people who judge, “name: help”. "
            "Leave blank for the built-in names."
        ),
        default=None, long=True, clears=True,
    )  # fmt: skip
    daily_target: int | None = option(
        _("Daily target (pairs)"),
        _("Pairs each annotator is asked to judge per day. 0 = no target."),
        default=None, ge=0, le=10_000,
    )  # fmt: skip
    document_format: Collection.Formats | None = option(
        _("Document format"),
        _(
            "Of documents and answers. Markdown and HTML are formatted where people read them; judges read the text of "
            "HTML, without tags. HTML is read at the import: documents that are here already stay as they are."
        ),
        default=None,
    )
    long_documents: Collection.LongDocuments | None = option(
        _("Documents above 24,000 characters"),
        _("Reading whole documents costs more, and a model whose context is too short rejects them."),
        default=None,
    )
    seed: int | None = option(_("Seed"), _("Of random orders and arms."), default=None, ge=-(2**31), le=2**31 - 1)
    audit: float | None = option(
        _("Share of audits"), _("Share of automatic labels that people check."), default=None, ge=0, le=1
    )
    checks: float | None = option(
        _("Share of attention checks"),
        _(
            "0 to 0.5. For example, 0.1 is one pair in ten of each batch, with at least one per batch. Takes effect "
            "once checks exist."
        ),
        default=None, ge=0, le=0.5,
    )  # fmt: skip
    repeats: float | None = option(
        _("Share of repeats"),
        _("0 to 0.5. The same pair appears again after at least 20 others. Repeats do not change labels."),
        default=None, ge=0, le=0.5,
    )  # fmt: skip
    batch: int | None = option(
        _("Pairs per batch"),
        _(
            "5 to 1,000. A batch is accepted if all its checks are passed. If one is missed, its pairs return to the "
            "queue."
        ),
        default=None, ge=5, le=1_000,
    )  # fmt: skip
    qualification: bool | None = option(
        _("Require a qualification test"),
        _("Annotators below the pass mark receive no pairs. Adjudicators and admins take no test."),
        default=None,
    )
    pass_mark: int | None = option(
        _("Pass mark (percent)"), _("Practice items are not scored."), default=None, ge=0, le=100
    )
    arms: ArmWeights | None = option(_("Experiment arms"), _("Weights by which they are drawn."), default=None)
    hourly_rate: Amount = option(
        _("Annotator hourly rate (USD)"), _("Leave blank if unknown."), default=None, ge=0, le=10_000, clears=True
    )
    budget: Amount = option(
        _("Collection budget (USD)"),
        _("Maximum cost of all campaigns together. Leave blank for no limit."),
        default=None, ge=0, le=1e9, clears=True,
    )  # fmt: skip
    daily_budget: Amount = option(
        _("Daily budget (USD)"),
        _("Maximum cost per day (days start at midnight UTC). Leave blank for no limit."),
        default=None, ge=0, le=1e9, clears=True,
    )  # fmt: skip

    lab: bool | None = option(
        _("Lab"),
        _(
            "A menu entry with the pages for research: comparisons of policies and panels, canaries, studies, learning "
            "curves, answers, agents, synthetic queries, suites, aspects."
        ),
        default=None,
        choices={"False": _("Off"), "True": _("On")},
    )

    leaves_out = {
        "page": {
            "instruction": "it has an editor with a preview and its versions",
            "guidelines": "it has an editor with a preview and its versions",
            "grades": "the scale is chosen with the collection and changed by a settings file alone",
            "seed": "nobody needs to change it on a page",
            "audit": "the page of label audits shows it",
            "arms": "they have fields of their own (ArmWeights)",
        },
    }

    @field_validator("instruction", "guidelines", "title")
    @classmethod
    def clean_text(cls, text: str | None) -> str | None:
        return text if text is None else text.replace("\0", "").replace("\r\n", "\n").strip()

    @model_validator(mode="after")
    def guidelines_say_something(self) -> Self:
        if self.guidelines == "":
            raise BadOption("guidelines", _("Write the instructions that annotators read."))
        return self

    def values(self) -> dict[str, Any]:
        """Return the given settings, which override those of the preset; None removes an amount."""
        given_fields = self.model_dump(mode="json", include=self.model_fields_set - {"preset", *TEXTS})
        settings = {name: value for name, value in given_fields.items() if value is not None or name in AMOUNTS}
        return {**(PRESETS[self.preset] if self.preset else {}), **settings}
