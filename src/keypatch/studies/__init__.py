"""Recipes compared: `methods` under equal conditions, `ubc` on the six splits of PhotoTour."""
