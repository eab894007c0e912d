"""The ETH local feature evaluation (Schönberger et al. 2017): what COLMAP makes of matches."""
