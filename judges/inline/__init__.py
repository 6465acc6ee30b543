"""Model calls outside campaigns, run in the calling process: gold arguments, studies, query expansion."""
