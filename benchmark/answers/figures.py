"""Charts of an evaluation: normalised retrieval and generation by system (DREAM figure 4)."""

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from benchmark.answers.alignment import normalise
from charts import Chart, draw_lines

VERSIONS = ("before", "after")


def draw_versions(result: Mapping[str, Any]) -> list[Chart]:
    """Draw a chart for each version of the qrels, with the systems by ascending Hit@k; none for fewer than two."""
    if len(result["systems"]) < 2 or not result["complete"]:
        return []
    return [_draw_version(result, when) for when in VERSIONS if result[when] is not None]


def _draw_version(result: Mapping[str, Any], when: str) -> Chart:
    systems = sorted(result["systems"], key=lambda system: (system[when], system["name"]))
    positions: dict[float, str] = {float(position): system["name"] for position, system in enumerate(systems)}
    retrieval = normalise([system[when] for system in systems])
    series = {_("retrieval"): list(zip(positions, retrieval, strict=True))}
    rates = {(cell["system"], cell["generator"]): cell["generation"] for cell in result["cells"]}
    for name in result["generators"]:
        generation = normalise([rates[system["name"], name] for system in systems])
        series[_("generation: %(generator)s") % {"generator": name}] = list(zip(positions, generation, strict=True))
    # How Hit@k and the share of correct answers correlate over the systems.
    defined = [correlation for correlation in result["correlation"] if correlation.get(when) is not None]
    values = [(correlation["generator"], f"{correlation[when]:.3f}".replace("-", "−")) for correlation in defined]
    correlations = ", ".join(f"{generator}: {value}" for generator, value in values)
    if values:
        summary = _("Correlation of Hit@k with the share of correct answers over the systems: %(told)s.") % {
            "told": correlations
        }
    else:
        summary = _(
            "Too few systems, or too little difference, for a correlation of Hit@k with the share of correct answers."
        )
    titles = {"before": _("Retrieval and generation by system, original"),
              "after": _("Retrieval and generation by system, filled")}  # fmt: skip
    return draw_lines(
        f"rag-{when}",
        titles[when],
        series,
        x=_("system, by Hit@%(k)s") % {"k": result["k"]},
        y=_("normalized value"),
        names=positions,
        is_ordered=False,
        low=0.0,
        high=1.0,
        empty=_("All systems have the same values."),
        summary=summary,
        source=_("%(collection)s, qrels %(number)s, k = %(k)s, %(queries)s queries")
        % {
            "collection": result["collection"],
            "number": result[when],
            "k": result["k"],
            "queries": f"{result['queries']:,}",
        },
    )
