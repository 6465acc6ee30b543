"""Training jobs and the models that they publish."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

from quorum_client._async.resources import AsyncJobs, AsyncResource, end_of_job
from quorum_client.answers import build_body
from quorum_client.models import CurveIn, CurveOut, JobOut, ModelFileOut, ModelOut, TrainingIn, TrainingSetOut, UseIn


class AsyncTrainings(AsyncJobs[JobOut]):
    """Trainings, and the other jobs with a model."""

    title = "training"

    def list(self) -> AsyncIterator[JobOut]:
        """List the trainings."""
        return self.transport.iterate(JobOut, self.at("trainings"))

    async def list_sets(self) -> Sequence[TrainingSetOut]:
        """List the exports that a training can learn from, the newest first."""
        return await self.transport.read(tuple[TrainingSetOut, ...], self.at("trainings", "sets"))

    async def start(self, asked: TrainingIn | None = None, **fields: Any) -> JobOut:
        """Put a training into the queue (`recipe`, `export`, `base` or `model`, `options` ...)."""
        return await self.transport.post(JobOut, self.at("trainings"), build_body(TrainingIn, asked, fields))

    async def read(self, number: int) -> JobOut:
        """Read how far a training is."""
        return await self.transport.read(JobOut, self.at("trainings", number))

    async def cancel(self, number: int) -> JobOut:
        """Cancel a training; it saves what it has first."""
        return await self.transport.post(JobOut, self.at("trainings", number, "cancel"))

    async def resume(self, number: int) -> JobOut:
        """Let a training go on from its newest checkpoint."""
        return await self.transport.post(JobOut, self.at("trainings", number, "go-on"))

    async def judge_outputs(self, number: int, judge: str, budget: float | None = 5.0) -> JobOut:
        """Have a judge score what base and tuned model wrote."""
        body = {"judge": judge, "budget": budget}
        return await self.transport.post(JobOut, self.at("trainings", number, "judge"), body)

    def find_end(self, found: JobOut) -> str | None:
        """Say how the training ended."""
        return end_of_job(found.state, found.error, ready="finished")

    def count_done(self, found: JobOut) -> tuple[int, int]:
        """Count its steps."""
        return found.done, found.total


class AsyncModels(AsyncResource):
    """Models that were trained here."""

    def list(self) -> AsyncIterator[ModelOut]:
        """List the models."""
        return self.transport.iterate(ModelOut, self.at("models"))

    async def read(self, number: int) -> ModelOut:
        """Read a model."""
        return await self.transport.read(ModelOut, self.at("models", number))

    async def download_card(self, number: int, to: str | Path) -> Path:
        """Download the card of a model."""
        return await self.transport.download(self.at("models", number, "card"), Path(to))

    async def list_files(self, number: int) -> Sequence[ModelFileOut]:
        """List the files of a model."""
        return await self.transport.read(tuple[ModelFileOut, ...], self.at("models", number, "files"))

    async def download(
        self, number: int, folder: str | Path, *, files: Sequence[str] | None = None, progress: bool = False
    ) -> Sequence[Path]:
        """Download the files of a model, or some of them, into a folder, and return where they lie."""
        names = [one.name for one in await self.list_files(number)] if files is None else files
        return await self.download_files(("models", number, "files"), names, Path(folder), progress=progress)

    async def use(self, number: int, act: str, asked: UseIn | None = None, **fields: Any) -> JobOut:
        """Begin a job with a model: `evaluate`, `rerank`, `order` the queue by it, or `generate`."""
        return await self.transport.post(JobOut, self.at("models", number, act), build_body(UseIn, asked, fields))

    async def compare_losses(self, model: int, run: int | None = None) -> JobOut:
        """Rank with four models that differ in their loss alone; `model`: the first of them."""
        return await self.transport.post(JobOut, self.at("models", "losses"), {"model": model, "run": run})


class AsyncCurves(AsyncResource):
    """Learning curves: the same training on growing parts of one set."""

    def list(self) -> AsyncIterator[CurveOut]:
        """List the curves, the oldest first."""
        return self.transport.iterate(CurveOut, self.at("curves"))

    async def start(self, asked: CurveIn | None = None, **fields: Any) -> CurveOut:
        """Put the trainings of a curve into the queue (`recipe`, `export`, `base`, `points` ...)."""
        return await self.transport.post(CurveOut, self.at("curves"), build_body(CurveIn, asked, fields))

    async def read(self, number: int) -> CurveOut:
        """Read a curve as far as its trainings are finished."""
        return await self.transport.read(CurveOut, self.at("curves", number))

    async def cancel(self, number: int) -> CurveOut:
        """Cancel the points that are not over."""
        return await self.transport.post(CurveOut, self.at("curves", number, "cancel"))

    async def resume(self, number: int) -> CurveOut:
        """Let points go on that failed or were cancelled."""
        return await self.transport.post(CurveOut, self.at("curves", number, "go-on"))
