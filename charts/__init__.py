"""Charts drawn on the server, from lines to flows (docs/adr/0019-charts.md). Pure.

Each is a `Chart`: a picture with direct labels, a summary in words, and the table of its figures. `x` and
`y` name the axes, with their units. Values that are None or not finite are left out of the picture
and empty in the table.
"""

from charts.bars import Bar, draw_bars
from charts.bump import BumpPlace, draw_bump
from charts.differences import draw_differences
from charts.flows import Link, Node, draw_flow
from charts.grids import draw_heatmap
from charts.intervals import IntervalSpan, draw_intervals
from charts.lines import draw_lines
from charts.points import Dot, draw_scatter
from charts.record import Chart

__all__ = [
    "Bar", "BumpPlace", "Chart", "Dot", "IntervalSpan", "Link", "Node", "draw_bars", "draw_bump", "draw_differences",
    "draw_flow", "draw_heatmap", "draw_intervals", "draw_lines", "draw_scatter",
]  # fmt: skip
