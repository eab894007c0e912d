"""Matches: nearest neighbours, their verification, match files and pictures."""
