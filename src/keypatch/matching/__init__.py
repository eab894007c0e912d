"""Matches: exact nearest neighbours, their verification, files of them and a picture."""

from keypatch.matching.drawing import draw_matches
from keypatch.matching.judging import transfer_errors
from keypatch.matching.many_pairs import match_pairs
from keypatch.matching.match_files import MatchReader, read_matches
from keypatch.matching.matched import MatchedPhotos
from keypatch.matching.matches import Matches
from keypatch.matching.matching import Matching, match_features
from keypatch.matching.neighbours import match_descriptors
from keypatch.matching.photos import match
from keypatch.matching.verifying import verify

__all__ = [
    "MatchReader",
    "MatchedPhotos",
    "Matches",
    "Matching",
    "draw_matches",
    "match",
    "match_descriptors",
    "match_features",
    "match_pairs",
    "read_matches",
    "transfer_errors",
    "verify",
]
