"""Agents over a suite: unweighted means of its collections' tables."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from benchmark.agents.board import AgentBoard
from benchmark.agents.grades import mean_of, mean_over_agents, order_by_mean
from benchmark.models import Suite
from charts.downloads import Cell, DownloadTable, Figure
from corpus.errors import BadInput


@dataclass(frozen=True)
class SuiteAgentBoard:
    """Means over the members of a suite by retriever and agent (`lines`), and over agents (`means`)."""

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
        """The rows of the page's table: the mean of each retriever, without an agent, above its agents."""
        rows = []
        for retriever, agents in self.lines.items():
            for agent, values in (("", self.means[retriever]), *agents.items()):
                rows.append({"retriever": retriever, "agent": agent, "values": values})
        return rows

    @property
    def queries(self) -> int:
        """The queries of all members whose answers could be graded in every cell."""
        return sum(board.common for board in self.boards)

    @property
    def document(self) -> dict[str, Any]:
        """The table as JSON."""
        return {name: {"mean": self.means[name], "agents": agents} for name, agents in self.lines.items()}


def suite_board(suite: Suite, boards: Sequence[AgentBoard]) -> SuiteAgentBoard:
    """Combine the members' tables. Raises BadInput if they were searched with different protocols."""
    # The columns depend on the rounds, so members with different numbers of rounds share no table.
    protocols = {(board.job.options["protocol"], board.job.options["rounds"]) for board in boards}
    if len(protocols) != 1:
        raise BadInput(_("The collections of %(name)s were searched with different protocols") % {"name": suite.name})
    columns = boards[0].columns
    values: dict[tuple[str, str], list[dict[str, float | None]]] = {}
    for board in boards:
        for line in board.lines:
            for cell in line["cells"]:
                values.setdefault((line["retriever"], cell.agent), []).append(cell.values)
    lines: dict[str, dict[str, dict[str, float | None]]] = {}
    for (retriever, agent), cell_values in values.items():
        # A mean over fewer members could not be compared with the others.
        is_whole = len(cell_values) == len(boards)
        lines.setdefault(retriever, {})[agent] = {
            key: mean_of([values[key] for values in cell_values]) if is_whole else None for key, _label in columns
        }
    means = {
        retriever: {
            key: mean_over_agents([agent_values[key] for agent_values in agents.values()]) for key, _label in columns
        }
        for retriever, agents in lines.items()
    }
    # With fixed rounds the last column is the quality after the last round, as in `build_board`.
    key = "aer" if columns[0][0] == "aer" else columns[-1][0]
    # With one agent, its value decides the order, as on a collection's page.
    order = order_by_mean(
        {name: mean_of([agent_values[key] for agent_values in agents.values()]) for name, agents in lines.items()}
    )
    return SuiteAgentBoard(suite, list(boards), columns, {name: lines[name] for name in order}, means)
