"""Runs, versions of the qrels, the leaderboard and reports."""

from collections.abc import AsyncIterator, Iterable, Sequence
from pathlib import Path
from typing import Any

from quorum_client._async.resources import AsyncJobs, AsyncResource, end_of_job
from quorum_client.answers import build_body
from quorum_client.models import (
    ImportedRunOut,
    LeaderboardOut,
    QrelsOut,
    ReportIn,
    ReportOut,
    RunEstimateOut,
    RunIn,
    RunOut,
)


class AsyncRuns(AsyncJobs[RunOut]):
    """Runs: rankings of documents for each query."""

    title = "run"

    def list(self) -> AsyncIterator[RunOut]:
        """List the runs."""
        return self.transport.iterate(RunOut, self.at("runs"))

    async def make(self, asked: RunIn | None = None, **fields: Any) -> RunOut:
        """Make a run (`name`, `kind`, `depth`, `options`); a worker does the work."""
        return await self.transport.post(RunOut, self.at("runs"), build_body(RunIn, asked, fields))

    async def estimate(self, asked: RunIn | None = None, **fields: Any) -> RunEstimateOut:
        """Estimate what making a run would ask of models and cost."""
        body = build_body(RunIn, asked, fields)
        return await self.transport.post(RunEstimateOut, self.at("runs", "estimate"), body)

    async def import_files(
        self,
        files: Iterable[str | Path],
        *,
        name: str = "",
        instruction: str = "",
        skip_unknown: bool = False,
        keep_self: bool = False,
    ) -> Sequence[ImportedRunOut]:
        """Import TREC files, all or none: each is a run. `name` is for a single file."""
        options = {"skip_unknown": skip_unknown, "keep_self": keep_self}
        data = {"run": name, "instruction": instruction, **{key: str(value).lower() for key, value in options.items()}}
        paths = [Path(file) for file in files]
        return await self.transport.upload(tuple[ImportedRunOut, ...], self.at("runs", "import"), paths, data)

    async def read(self, number: int) -> RunOut:
        """Read a run, and how far it is."""
        return await self.transport.read(RunOut, self.at("runs", number))

    async def delete(self, number: int, *, if_match: RunOut | None = None) -> None:
        """Delete a run."""
        await self.transport.delete(self.at("runs", number), if_match)

    async def cancel(self, number: int) -> RunOut:
        """Cancel a run that is made."""
        return await self.transport.post(RunOut, self.at("runs", number, "cancel"))

    async def resume(self, number: int) -> RunOut:
        """Make the rest of a run that was cancelled or failed."""
        return await self.transport.post(RunOut, self.at("runs", number, "go-on"))

    async def download(self, number: int, to: str | Path, *, progress: bool = False) -> Path:
        """Download a run in TREC's format."""
        return await self.transport.download(self.at("runs", number, "file"), Path(to), progress=progress)

    def find_end(self, found: RunOut) -> str | None:
        """Say how the run ended."""
        return end_of_job(found.state, found.error)

    def count_done(self, found: RunOut) -> tuple[int, int]:
        """Count the queries that have their ranking."""
        return found.done, found.total


class AsyncReports(AsyncJobs[ReportOut]):
    """Reports: what two versions of the qrels say of the runs."""

    title = "report"

    def list(self) -> AsyncIterator[ReportOut]:
        """List the reports."""
        return self.transport.iterate(ReportOut, self.at("reports"))

    async def make(self, asked: ReportIn | None = None, **fields: Any) -> ReportOut:
        """Make a report (`runs`, `before`, `after`, `k`); a worker does the work."""
        return await self.transport.post(ReportOut, self.at("reports"), build_body(ReportIn, asked, fields))

    async def read(self, number: int) -> ReportOut:
        """Read a report with its measures."""
        return await self.transport.read(ReportOut, self.at("reports", number))

    def find_end(self, found: ReportOut) -> str | None:
        """Say how the report ended."""
        return end_of_job(found.state, found.error)

    def count_done(self, found: ReportOut) -> tuple[int, int]:
        """Count its steps."""
        return found.done, found.total


class AsyncQrels(AsyncResource):
    """Versions of the qrels."""

    async def list(self) -> Sequence[QrelsOut]:
        """List the versions, the oldest first."""
        return await self.transport.read(tuple[QrelsOut, ...], self.at("qrels"))

    async def make(self, kind: str) -> QrelsOut:
        """Make a version of the imported reference grades (`original`) or of all labels of now (`labels`)."""
        return await self.transport.post(QrelsOut, self.at("qrels"), {"kind": kind})

    async def download(self, number: int, to: str | Path) -> Path:
        """Download a version in TREC's format."""
        return await self.transport.download(self.at("qrels", number, "file"), Path(to))


class AsyncLeaderboard(AsyncResource):
    """All ready runs by the newest qrels."""

    async def read(self, measure: str = "ndcg") -> LeaderboardOut:
        """Read the leaderboard; nothing is computed."""
        return await self.transport.read(LeaderboardOut, self.at("leaderboard"), {"measure": measure})

    async def compute(self) -> LeaderboardOut:
        """Compute it on the runs and qrels of now: a small one at once, a large one by a worker."""
        return await self.transport.post(LeaderboardOut, self.at("leaderboard"))
