"""Whole tasks put together from the rooms above: training by name, the quickstart, looking at files, listing names."""
