"""Shipped weights, their cards, and the way from a name to a describer."""

from keypatch.zoo.cards import Card
from keypatch.zoo.finding import find, names

__all__ = ["Card", "find", "names"]
