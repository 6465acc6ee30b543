"""Charts drawn on the server: line, bars, scatter, heat, flow, bump, intervals (docs/adr/0019-charts.md). Pure.

Each is a `Chart`: a picture with direct labels, the same in words, and the table behind it. `x` and `y` name the axes,
with their units. Values that are None or not finite are left out of the picture and empty in the table.
"""

from charts.bars import Bar, bars
from charts.bump import BumpPlace, bump
from charts.flows import Link, Node, flow
from charts.grids import heat
from charts.intervals import IntervalSpan, intervals
from charts.lines import line
from charts.points import Dot, scatter
from charts.record import Chart

__all__ = [
    "Bar",
    "BumpPlace",
    "Chart",
    "Dot",
    "IntervalSpan",
    "Link",
    "Node",
    "bars",
    "bump",
    "flow",
    "heat",
    "intervals",
    "line",
    "scatter",
]
