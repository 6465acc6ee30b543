"""Quality control: its settings, attention checks, gold questions, exclusions."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from quorum_client._sync.resources import Resource
from quorum_client.answers import build_body
from quorum_client.models import (
    BatchOut,
    CheckCountOut,
    CheckPoolOut,
    ComparedOut,
    ExclusionOut,
    GoldOut,
    GoldPairOut,
    GoldQueueOut,
    GoldTaskOut,
    NearPairsOut,
    QualificationTestOut,
    QualityControlIn,
    QualityControlOut,
)


class QualityControl(Resource):
    """Quality control: shares of checks, the qualification test, consent, near-duplicates."""

    def read(self) -> QualityControlOut:
        """Read the settings."""
        return self.transport.read(QualityControlOut, self.at("quality-control"))

    def change(
        self, asked: QualityControlIn | None = None, *, if_match: QualityControlOut | None = None, **fields: Any
    ) -> QualityControlOut:
        """Change `checks`, `repeats`, `batch`, `qualification`, `pass_mark`."""
        body = build_body(QualityControlIn, asked, fields)
        return self.transport.change(QualityControlOut, self.at("quality-control"), body, if_match)

    def make_test(self, size: int = 20, seed: int = 0) -> QualificationTestOut:
        """Make a qualification test."""
        body = {"size": size, "seed": seed}
        return self.transport.post(QualificationTestOut, self.at("qualification-tests"), body)

    def write_consent(self, text: str | None) -> QualityControlOut:
        """Write what annotators agree to; None: nobody is asked any more."""
        return self.transport.post(QualityControlOut, self.at("consent"), {"text": text})

    def list_batches(self) -> Iterator[BatchOut]:
        """List closed batches with what their attention checks said."""
        return self.transport.iterate(BatchOut, self.at("batches"))

    def read_near_duplicates(self) -> NearPairsOut:
        """Read groups of nearly equal pairs whose labels differ."""
        return self.transport.read(NearPairsOut, self.at("near-duplicates"))

    def compare_near_duplicates(self) -> ComparedOut:
        """Compare the labels of a large collection anew."""
        return self.transport.post(ComparedOut, self.at("near-duplicates"))


class AttentionChecks(Resource):
    """Attention checks: gold pairs among the ordinary ones."""

    def read(self) -> CheckPoolOut:
        """Count the checks, the answers to them, and the gold that could become some."""
        return self.transport.read(CheckPoolOut, self.at("attention-checks"))

    def make(self, count: int = 20, *, seed: int = 0, form: str = "own") -> CheckCountOut:
        """Make checks of gold pairs."""
        body = {"count": count, "seed": seed, "form": form}
        return self.transport.post(CheckCountOut, self.at("attention-checks"), body)

    def withdraw(self) -> CheckCountOut:
        """Withdraw all checks; what was answered stays."""
        return self.transport.post(CheckCountOut, self.at("attention-checks", "withdraw"))

    def write_arguments(self) -> CheckCountOut:
        """Have models argue about gold that has only the offline judges' words."""
        return self.transport.post(CheckCountOut, self.at("attention-checks", "arguments"))


class Gold(Resource):
    """Gold questions: samples that experts grade. Grading needs a token with the scope judge."""

    def list(self) -> Iterator[GoldOut]:
        """List the samples, the oldest first."""
        return self.transport.iterate(GoldOut, self.at("gold"))

    def draw(self, size: int = 50, *, seed: int = 0, spot: float = 0.2) -> GoldOut:
        """Draw a sample; `spot`: the share that somebody else reviews."""
        return self.transport.post(GoldOut, self.at("gold"), {"size": size, "seed": seed, "spot": spot})

    def read(self, number: int) -> GoldOut:
        """Read how far a sample is."""
        return self.transport.read(GoldOut, self.at("gold", number))

    def pairs(self, number: int) -> Iterator[GoldPairOut]:
        """Iterate over the pairs of a sample with what was said about each."""
        return self.transport.iterate(GoldPairOut, self.at("gold", number, "pairs"))

    def end(self, number: int) -> GoldOut:
        """End a sample; its grades stay."""
        return self.transport.post(GoldOut, self.at("gold", number, "end"))

    def read_task(self, *, review: bool = False) -> GoldQueueOut:
        """Read the next pair that you grade as an expert, or review."""
        return self.transport.read(GoldQueueOut, self.at("gold", "review" if review else "task"))

    def grade(
        self,
        task: GoldTaskOut,
        grade: int,
        *,
        comment: str = "",
        milliseconds: int | None = None,
        review: bool = False,
    ) -> GoldQueueOut:
        """Grade a pair as an expert, or as its reviewer; the next one comes with the answer."""
        said = {"grade": grade, "comment": comment, "milliseconds": milliseconds}
        body = {"pair": task.pair, "shown": task.shown, **said}
        return self.transport.post(GoldQueueOut, self.at("gold", "review" if review else "task"), body)


class Exclusions(Resource):
    """Judgments that were excluded, and reinstated."""

    def list(self) -> Iterator[ExclusionOut]:
        """List what was excluded and reinstated, the oldest first."""
        return self.transport.iterate(ExclusionOut, self.at("exclusions"))

    def read(self, number: int) -> ExclusionOut:
        """Read an exclusion."""
        return self.transport.read(ExclusionOut, self.at("exclusions", number))

    def exclude(self, member: int, *, note: str = "", since: datetime | None = None) -> ExclusionOut:
        """Exclude a member's judgments, all or those from a moment on."""
        body = {"member": member, "note": note, "since": since and since.isoformat()}
        return self.transport.post(ExclusionOut, self.at("exclusions"), body)

    def reinstate(self, number: int) -> ExclusionOut:
        """Reinstate what an exclusion took out."""
        return self.transport.post(ExclusionOut, self.at("exclusions", number, "reinstate"))
