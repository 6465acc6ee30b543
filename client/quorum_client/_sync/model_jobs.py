"""Jobs that ask models: hole fillings, answers, agents, synthetic queries, web searches."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from pydantic import BaseModel

from quorum_client._sync.resources import Jobs, end_of_job
from quorum_client.answers import build_body
from quorum_client.models import (
    AddedOut,
    AgentBoardOut,
    AgentJobIn,
    AgentJobOut,
    AnswerEvaluationOut,
    AnswerFiguresOut,
    AnswersIn,
    FillingEstimateOut,
    FillingIn,
    FillingOut,
    FoundPageOut,
    GeneratedAnswerOut,
    JobEstimateOut,
    LimitsIn,
    SendIn,
    SynthesisIn,
    SynthesisOut,
    SyntheticQueryOut,
    TraceOut,
    WebSearchIn,
    WebSearchOut,
)


class ModelJob(Protocol):
    """A job as its answer describes it."""

    state: str
    error: str
    done: int
    total: int


J = TypeVar("J", bound=ModelJob)
A = TypeVar("A", bound=BaseModel)


class ModelJobs(Jobs[J], Generic[J, A]):
    """Jobs of a kind: estimated, started, waited for, cancelled, resumed with other limits."""

    path = ""
    answer: type[J]
    asked: type[A]

    def list(self) -> Iterator[J]:
        """List the jobs, the oldest first."""
        return self.transport.iterate(self.answer, self.at(self.path))

    def estimate(self, asked: A | None = None, **fields: Any) -> JobEstimateOut:
        """Estimate calls and cost; nothing starts."""
        body = build_body(self.asked, asked, fields)
        return self.transport.post(JobEstimateOut, self.at(self.path, "estimate"), body)

    def start(self, asked: A | None = None, **fields: Any) -> J:
        """Start a job, or go on with the same one; a worker does the work."""
        return self.transport.post(self.answer, self.at(self.path), build_body(self.asked, asked, fields))

    def read(self, number: int) -> J:
        """Read how far a job is."""
        return self.transport.read(self.answer, self.at(self.path, number))

    def cancel(self, number: int) -> J:
        """Cancel a job; what there is stays."""
        return self.transport.post(self.answer, self.at(self.path, number, "cancel"))

    def resume(self, number: int, limits: LimitsIn | None = None, **fields: Any) -> J:
        """Do the rest of a job, with another `budget` or `max_calls` where they are given."""
        body = build_body(LimitsIn, limits, fields)
        return self.transport.post(self.answer, self.at(self.path, number, "go-on"), body)

    def find_end(self, found: J) -> str | None:
        """Say how the job ended."""
        return end_of_job(found.state, found.error)

    def count_done(self, found: J) -> tuple[int, int]:
        """Count what is done."""
        return found.done, found.total


class Answers(ModelJobs[AnswerEvaluationOut, AnswersIn]):
    """Evaluations of answers that models give from what runs return."""

    title, path, answer, asked = "answers", "answers", AnswerEvaluationOut, AnswersIn

    def read_figures(self, number: int, before: int | None = None, after: int | None = None) -> dict[str, Any]:
        """Read what the answers come to by two versions of the qrels."""
        # httpx2 sends None as an empty text, which is no number.
        params = {name: value for name, value in (("before", before), ("after", after)) if value is not None}
        found = self.transport.read(AnswerFiguresOut, self.at("answers", number, "figures"), params)
        return found.document

    def answers(self, number: int) -> Iterator[GeneratedAnswerOut]:
        """Iterate over the answers with their verdicts."""
        return self.transport.iterate(GeneratedAnswerOut, self.at("answers", number, "queries"))


class Agents(ModelJobs[AgentJobOut, AgentJobIn]):
    """Agents: searches, their grading, reference answers (`kind`)."""

    title, path, answer, asked = "agents", "agents", AgentJobOut, AgentJobIn

    def read_board(self, number: int) -> dict[str, Any]:
        """Read the table of a search."""
        return (self.transport.read(AgentBoardOut, self.at("agents", number, "board"))).document

    def traces(self, number: int) -> Iterator[TraceOut]:
        """Iterate over the traces of a search."""
        return self.transport.iterate(TraceOut, self.at("agents", number, "traces"))

    def download(self, number: int, file: str, to: str | Path) -> Path:
        """Download `traces`, `judgments` or `references` as JSON lines."""
        return self.transport.download(self.at("agents", number, "files", file), Path(to))


class Syntheses(ModelJobs[SynthesisOut, SynthesisIn]):
    """Synthetic queries."""

    title, path, answer, asked = "synthesis", "syntheses", SynthesisOut, SynthesisIn

    def queries(self, number: int, *, dropped: bool = False) -> Iterator[SyntheticQueryOut]:
        """Iterate over the written queries, or over the seeds from which none was written."""
        params = {"dropped": str(dropped).lower()}
        return self.transport.iterate(SyntheticQueryOut, self.at("syntheses", number, "queries"), params)

    def import_bundles(self, number: int) -> AddedOut:
        """Import the bundles that there are: queries, documents and pairs to judge."""
        return self.transport.post(AddedOut, self.at("syntheses", number, "import"))

    def download(self, number: int, to: str | Path) -> Path:
        """Download what was written as JSON lines."""
        return self.transport.download(self.at("syntheses", number, "file"), Path(to))


class WebSearches(ModelJobs[WebSearchOut, WebSearchIn]):
    """Web searches for the queries, whose pages become documents."""

    title, path, answer, asked = "web search", "web-searches", WebSearchOut, WebSearchIn

    def results(self, number: int) -> Iterator[FoundPageOut]:
        """Iterate over the pages that were found."""
        return self.transport.iterate(FoundPageOut, self.at("web-searches", number, "results"))


class HoleFillings(Jobs[FillingOut]):
    """Hole fillings: pairs that runs return and nobody judged. Their campaigns are paused as every other one."""

    title = "hole filling"

    def list(self) -> Iterator[FillingOut]:
        """List the hole fillings, the oldest first."""
        return self.transport.iterate(FillingOut, self.at("hole-fillings"))

    def estimate(self, asked: FillingIn | None = None, **fields: Any) -> FillingEstimateOut:
        """Count the pairs and estimate calls and cost; nothing starts."""
        body = build_body(FillingIn, asked, fields)
        return self.transport.post(FillingEstimateOut, self.at("hole-fillings", "estimate"), body)

    def start(self, asked: FillingIn | None = None, **fields: Any) -> FillingOut:
        """Start a hole filling (`runs`, `depth`, `qrels`, `policy` ...), or go on with the same one."""
        return self.transport.post(FillingOut, self.at("hole-fillings"), build_body(FillingIn, asked, fields))

    def send(self, asked: SendIn | None = None, **fields: Any) -> FillingOut:
        """Send the `first` pairs that could settle the order to people, or to a policy's judges."""
        body = build_body(SendIn, asked, fields)
        return self.transport.post(FillingOut, self.at("hole-fillings", "send"), body)

    def read(self, number: int) -> FillingOut:
        """Read how far a hole filling is."""
        return self.transport.read(FillingOut, self.at("hole-fillings", number))

    def finish(self, number: int) -> FillingOut:
        """Make the filled version of what is resolved by now."""
        return self.transport.post(FillingOut, self.at("hole-fillings", number, "finish"))

    def cancel(self, number: int) -> FillingOut:
        """Cancel a hole filling; what was judged stays."""
        return self.transport.post(FillingOut, self.at("hole-fillings", number, "cancel"))

    def find_end(self, found: FillingOut) -> str | None:
        """Say how the hole filling ended; people's answers are waited for."""
        if found.state in ("filled", "cancelled"):
            return "" if found.state == "filled" else found.error or found.state
        # Without an error it goes on, be it for weeks until people have judged.
        return found.error or None

    def count_done(self, found: FillingOut) -> tuple[int, int]:
        """Count the pairs that are resolved."""
        return int(found.funnel["settled"]), int(found.funnel["candidates"])
