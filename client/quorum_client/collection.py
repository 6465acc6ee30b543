"""A collection with its parts. The fields of requests are those of docs/developers.md and `/api/v1/`."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from quorum_client.parts import Jobs, Part
from quorum_client.records import (
    CampaignOut,
    CollectionOut,
    ContractDocument,
    ControlledOut,
    DocumentOut,
    EstimateOut,
    ExportOut,
    ImportedRunOut,
    ImportOut,
    JobOut,
    JudgmentOut,
    LabelledText,
    LeaderboardOut,
    ModelFileOut,
    ModelOut,
    PairOut,
    QualityOut,
    QueryOut,
    ReportOut,
    RunEstimateOut,
    RunOut,
    SettingsOut,
    StartedOut,
    StatusOut,
)
from quorum_client.transport import Transport


class Settings(Part):
    """Settings of a collection."""

    def read(self) -> SettingsOut:
        """Read the settings."""
        return self.transport.read(SettingsOut, self.at("settings"))

    def change(self, *, if_match: SettingsOut | None = None, **fields: Any) -> SettingsOut:
        """Change the given settings, all or none; with `if_match`, only if nobody has changed them meanwhile."""
        return self.transport.change(SettingsOut, self.at("settings"), fields, if_match)


class Imports(Jobs[ImportOut, ImportOut]):
    """Imports of files. `wait` waits for the check, or for the import once it was started."""

    title, path = "import", "imports"
    row = record = ImportOut

    def run(
        self,
        files: Iterable[str | Path],
        *,
        progress: bool = False,
        every: float = 1.0,
        timeout: float | None = None,
        **options: Any,
    ) -> ImportOut:
        """Upload, check and import files, and wait for the end. Options: `bm25`, `empty`, `update`, `kinds` ...

        `timeout`: seconds for the check, and for the import. Raises QuorumError with the problem of the
        files; then nothing was changed.
        """
        wait_options: dict[str, Any] = {"progress": progress, "every": every, "timeout": timeout}
        number = self.create([Path(file) for file in files], progress=progress).number
        # Before the first wait, so that the check has these options.
        if options:
            self.correct(number, **options)
        self.wait(number, **wait_options)
        self.start(number)
        return self.wait(number, **wait_options)

    def create(self, files: Sequence[Path], *, progress: bool = False) -> ImportOut:
        """Upload files in parts, which a lost connection does not repeat; a worker checks them."""
        send = self.transport.upload_parts
        numbers = [send(self.at("uploads"), file, progress=progress) for file in files]
        return self.transport.post(ImportOut, self.at("uploads", "import"), {"uploads": numbers})

    def correct(self, number: int, **options: Any) -> ImportOut:
        """Correct what the files contain and how they are imported; a worker checks them again."""
        return self.transport.post(ImportOut, self.at("imports", number, "options"), options)

    def start(self, number: int) -> ImportOut:
        """Start an import whose check is ready."""
        return self.act(number, "start")

    def cancel(self, number: int) -> ImportOut:
        """Cancel an import."""
        return self.act(number, "cancel")

    def resume(self, number: int) -> ImportOut:
        """Resume a check or an import that was cancelled or failed."""
        return self.act(number, "go-on")


class Campaigns(Jobs[CampaignOut, StatusOut]):
    """Campaigns: a policy with a panel over the pairs of the collection."""

    title, path = "campaign", "campaigns"
    row, record = CampaignOut, StatusOut

    def estimate(self, **fields: Any) -> EstimateOut:
        """Estimate calls, money and people's hours of a campaign."""
        return self.transport.post(EstimateOut, self.at("campaigns", "estimate"), fields)

    def start(self, **fields: Any) -> StartedOut:
        """Start a campaign (`policy`, `panel`, `limit`, `budget` ...), or continue the one with this configuration."""
        return self.transport.post(StartedOut, self.at("campaigns"), fields)

    def pause(self, number: int) -> ControlledOut:
        """Pause a campaign."""
        return self._control(number, "pause")

    def resume(self, number: int) -> ControlledOut:
        """Resume a campaign."""
        return self._control(number, "resume")

    def cancel(self, number: int) -> ControlledOut:
        """Cancel a campaign."""
        return self._control(number, "cancel")

    def retry_failed(self, number: int) -> ControlledOut:
        """Judge the failed pairs of a campaign again."""
        return self._control(number, "retry-failed")

    def _control(self, number: int, act: str) -> ControlledOut:
        return self.transport.post(ControlledOut, self.at("campaigns", number, act))


class Agreement(Part):
    """Agreement of assessors, by default of all judges, people and imports."""

    def read(self, assessors: Sequence[str] = (), **options: Any) -> dict[str, Any]:
        """Measure kappa, alpha, Dawid-Skene: people, judges, binarize, population, bootstrap."""
        params = {"assessors": [*assessors], **options}
        return self.transport.read(ContractDocument, self.at("agreement"), params).document

    def read_table(self, assessors: Sequence[str] = (), **options: Any) -> str:
        """Read the measures of all pairs of assessors as CSV."""
        params = {"assessors": [*assessors], **options}
        return self.transport.send("GET", self.at("agreement"), params={**params, "format": "csv"}).text


class Runs(Jobs[RunOut, RunOut]):
    """Runs: rankings of documents for each query."""

    title, path = "run", "runs"
    row = record = RunOut

    def make(self, **fields: Any) -> RunOut:
        """Have a worker make a run (`system`, `name`, `depth`, the system's options)."""
        return self.transport.post(RunOut, self.at("runs"), fields)

    def estimate(self, **fields: Any) -> RunEstimateOut:
        """Estimate calls to models and the cost of making a run."""
        return self.transport.post(RunEstimateOut, self.at("runs", "estimate"), fields)

    def import_files(
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
        return self.transport.upload(tuple[ImportedRunOut, ...], self.at("runs", "import"), paths, data)

    def delete(self, number: int) -> None:
        """Delete a run."""
        self.transport.send("DELETE", self.at("runs", number))

    def cancel(self, number: int) -> RunOut:
        """Cancel the making of a run."""
        return self.act(number, "cancel")

    def resume(self, number: int) -> RunOut:
        """Resume making a run that was cancelled or failed."""
        return self.act(number, "go-on")

    def download(self, number: int, to: str | Path, *, progress: bool = False) -> Path:
        """Download a run in TREC's format."""
        return self.transport.download(self.at("runs", number, "file"), Path(to), progress=progress)


class Leaderboard(Part):
    """All ready runs by the newest qrels."""

    def read(self, measure: str = "ndcg") -> LeaderboardOut:
        """Read the stored leaderboard."""
        return self.transport.read(LeaderboardOut, self.at("leaderboard"), {"measure": measure})

    def compute(self) -> LeaderboardOut:
        """Compute it with the current runs and qrels: a small one at once, a large one by a worker."""
        return self.transport.post(LeaderboardOut, self.at("leaderboard"))


class Reports(Jobs[ReportOut, ReportOut]):
    """Reports on the runs by two versions of the qrels."""

    title, path = "report", "reports"
    row = record = ReportOut

    def make(self, **fields: Any) -> ReportOut:
        """Have a worker make a report (`runs`, `before`, `after`, `k`)."""
        return self.transport.post(ReportOut, self.at("reports"), fields)


class Exports(Jobs[ExportOut, ExportOut]):
    """Exports of labels, judgments and training sets, each a snapshot."""

    title, path = "export", "exports"
    row = record = ExportOut

    def create(self, **fields: Any) -> ExportOut:
        """Make an export (`format`, `origins`, `split` ...). A worker makes a large one: wait for it."""
        return self.transport.post(ExportOut, self.at("exports"), fields)

    def download(
        self, number: int, folder: str | Path, *, files: Sequence[str] | None = None, progress: bool = False
    ) -> Sequence[Path]:
        """Download all or some files of an export into a folder; return their paths."""
        # Read now, since the files of a large export are known only when it is ready.
        names = self.read(number).files if files is None else files
        return self.download_files(("exports", number, "files"), names, Path(folder), progress=progress)

    def run(
        self,
        *,
        folder: str | Path,
        progress: bool = False,
        every: float = 1.0,
        timeout: float | None = None,
        **fields: Any,
    ) -> Sequence[Path]:
        """Make an export, wait for it and download its files."""
        number = self.create(**fields).number
        self.wait(number, progress=progress, every=every, timeout=timeout)
        return self.download(number, folder, progress=progress)


class Trainings(Jobs[JobOut, JobOut]):
    """Trainings, and the other jobs with a model."""

    title, path = "training", "trainings"
    row = record = JobOut

    def start(self, **fields: Any) -> JobOut:
        """Queue a training (`recipe`, `data`: an export, `base`, the recipe's options)."""
        return self.transport.post(JobOut, self.at("trainings"), fields)

    def cancel(self, number: int) -> JobOut:
        """Cancel a training, which saves a checkpoint first."""
        return self.act(number, "cancel")

    def resume(self, number: int) -> JobOut:
        """Resume a training from its newest checkpoint."""
        return self.act(number, "go-on")


class Models(Part):
    """Models that were trained here."""

    def list(self) -> Iterator[ModelOut]:
        """List the models."""
        return self.transport.iterate(ModelOut, self.at("models"))

    def read(self, number: int) -> ModelOut:
        """Read a model."""
        return self.transport.read(ModelOut, self.at("models", number))

    def list_files(self, number: int) -> Sequence[ModelFileOut]:
        """List the files of a model."""
        return self.transport.read(tuple[ModelFileOut, ...], self.at("models", number, "files"))

    def download(
        self, number: int, folder: str | Path, *, files: Sequence[str] | None = None, progress: bool = False
    ) -> Sequence[Path]:
        """Download all or some files of a model into a folder; return their paths."""
        names = [file.name for file in self.list_files(number)] if files is None else files
        return self.download_files(("models", number, "files"), names, Path(folder), progress=progress)

    def rerank(self, number: int, **options: Any) -> JobOut:
        """Rerank with a model; `trainings.wait` waits for the job."""
        return self.use(number, "rerank", **options)

    def use(self, number: int, act: str, **options: Any) -> JobOut:
        """Start a job with a model: `evaluate`, `rerank`, `order` the queue, or `generate`."""
        return self.transport.post(JobOut, self.at("models", number, act), options)


class Collection(Part):
    """A collection. Its lists are read page by page while you iterate."""

    def __init__(self, transport: Transport, collection: str) -> None:
        super().__init__(transport, collection)
        # Parts have only the connection and the name, so they can be reused.
        here = transport, collection
        self.settings = Settings(*here)
        self.imports = Imports(*here)
        self.campaigns = Campaigns(*here)
        self.agreement = Agreement(*here)
        self.runs = Runs(*here)
        self.leaderboard = Leaderboard(*here)
        self.reports = Reports(*here)
        self.exports = Exports(*here)
        self.trainings = Trainings(*here)
        self.models = Models(*here)

    def read(self) -> CollectionOut:
        """Read the collection."""
        return self.transport.read(CollectionOut, self.at())

    def queries(self) -> Iterator[QueryOut]:
        """Iterate over the queries in their current versions."""
        return self.transport.iterate(QueryOut, self.at("queries"))

    def documents(self) -> Iterator[DocumentOut]:
        """Iterate over the documents in their current versions."""
        return self.transport.iterate(DocumentOut, self.at("documents"))

    def pairs(self) -> Iterator[PairOut]:
        """Iterate over the pairs with their labels."""
        return self.transport.iterate(PairOut, self.at("pairs"))

    def pair(self, number: int) -> PairOut:
        """Read one pair with its label."""
        return self.transport.read(PairOut, self.at("pairs", number))

    def labels(self) -> Iterator[PairOut]:
        """Iterate over the pairs that have a label."""
        return (pair for pair in self.pairs() if pair.grade is not None)

    def labelled_texts(self) -> Iterator[LabelledText]:
        """Iterate over the labels with the texts of their pairs. All texts are read into memory first.

        Pairs with an earlier version of a text are left out, since only current texts can be read.
        """
        queries = {query.id: query.text for query in self.queries()}
        documents = {row.id: f"{row.title}\n{row.text}".strip() for row in self.documents()}
        for pair in self.pairs():
            if pair.grade is None or pair.query not in queries or pair.document not in documents:
                continue
            yield LabelledText(
                query_id=pair.query,
                document_id=pair.document,
                query=queries[pair.query],
                document=documents[pair.document],
                grade=pair.grade,
                origin=pair.origin or "",
            )

    def judgments(self) -> Iterator[JudgmentOut]:
        """Iterate over the current judgments."""
        return self.transport.iterate(JudgmentOut, self.at("judgments"))

    def quality(self) -> QualityOut:
        """Read whether the labels are ready for export, and why not."""
        return self.transport.read(QualityOut, self.at("quality"))

    def request(self, method: str, path: str, body: Any = None, **options: Any) -> Any:
        """Send any other request about the collection. `path` follows its name; otherwise as `Quorum.request`."""
        return self.transport.request(method, self.at(path), body, **options)

    def rows(self, path: str, **params: Any) -> Iterator[dict[str, Any]]:
        """Iterate over any other list about the collection, page by page."""
        return self.transport.iterate(dict[str, Any], self.at(path), params)

    def download(self, path: str, to: str | Path, *, progress: bool = False) -> Path:
        """Download any other file about the collection."""
        return self.transport.download(self.at(path), Path(to), progress=progress)
