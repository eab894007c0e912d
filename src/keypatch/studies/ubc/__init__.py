"""The six train/test splits of PhotoTour in one table."""
