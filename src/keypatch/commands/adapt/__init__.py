"""A descriptor fitted to the photos of a folder: a set built, a fine-tuning, scores before and after, a page."""
