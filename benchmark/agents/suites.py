"""Agents over a suite: each member's values, and the unweighted mean; blank without any."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from benchmark.agents.board import AgentBoard
from benchmark.agents.grades import mean_of, mean_over_agents, order_by_mean
from benchmark.models import Suite
from charts.downloads import Cell, DownloadTable, Figure
from corpus.errors import BadInput
from corpus.models import Collection


def find_target(name: str) -> Suite | Collection:
    """Return the suite of this name, else the collection. Raises BadInput for neither."""
    found: Suite | Collection | None = Suite.objects.filter(name=name).first()
    found = found or Collection.objects.filter(name=name).first()
    if found is None:
        raise BadInput(_("There is no suite and no collection %(name)s") % {"name": repr(name)})
    return found


@dataclass(frozen=True)
class SuiteAgentBoard:
    """Means over members by retriever and agent, and over agents; one protocol."""

    suite: Suite
    boards: list[AgentBoard]
    columns: list[tuple[str, str]]
    lines: dict[str, dict[str, dict[str, float | None]]]
    means: dict[str, dict[str, float | None]]

    @property
    def table(self) -> DownloadTable:
        """Return the table for download: the means of each retriever above its agents."""
        header = (_("retriever"), _("agent"), *(label for _key, label in self.columns))
        rows: list[tuple[Cell, ...]] = []
        for retriever, agents in self.lines.items():
            for agent, values in ((_("mean"), self.means[retriever]), *agents.items()):
                rows.append((retriever, agent, *(Figure(values[key]) for key, _label in self.columns)))
        title = _("Agents on %(name)s, unweighted means of the collections")
        return DownloadTable("suite-agents", title % {"name": self.suite.name}, header, tuple(rows), numbers=2)

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The table as shown: a mean (without an agent) above each retriever's agents."""
        found = []
        for retriever, agents in self.lines.items():
            for agent, values in (("", self.means[retriever]), *agents.items()):
                found.append({"retriever": retriever, "agent": agent, "values": values})
        return found

    @property
    def document(self) -> dict[str, Any]:
        """The table as JSON."""
        return {name: {"mean": self.means[name], "agents": agents} for name, agents in self.lines.items()}


def suite_board(suite: Suite, boards: Sequence[AgentBoard]) -> SuiteAgentBoard:
    """The members' tables together. Raises BadInput if they searched by different protocols."""
    # Columns go by rounds, so members with other numbers of rounds share no table.
    told = {(one.job.options["protocol"], one.job.options["rounds"]) for one in boards}
    if len(told) != 1:
        raise BadInput(_("The collections of %(name)s were searched with different protocols") % {"name": suite.name})
    columns = boards[0].columns
    values: dict[tuple[str, str], list[dict[str, float | None]]] = {}
    for board in boards:
        for line in board.lines:
            for cell in line["cells"]:
                values.setdefault((line["retriever"], cell.agent), []).append(cell.values)
    lines: dict[str, dict[str, dict[str, float | None]]] = {}
    for (retriever, agent), found in values.items():
        whole = len(found) == len(boards)  # a mean over fewer members compares with no other
        lines.setdefault(retriever, {})[agent] = {
            key: mean_of([one[key] for one in found]) if whole else None for key, _label in columns
        }
    means = {
        retriever: {key: mean_over_agents([one[key] for one in agents.values()]) for key, _label in columns}
        for retriever, agents in lines.items()
    }
    # With fixed rounds the last column is the quality after the last round, as `build_board` has it.
    key = "aer" if columns[0][0] == "aer" else columns[-1][0]
    # With one agent its value orders them, as on a collection's page.
    order = order_by_mean({name: mean_of([one[key] for one in agents.values()]) for name, agents in lines.items()})
    return SuiteAgentBoard(suite, list(boards), columns, {name: lines[name] for name in order}, means)
