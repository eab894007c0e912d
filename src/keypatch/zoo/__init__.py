"""Shipped weights, their cards, and the way from a name to a describer."""

from keypatch.zoo.cards import Card
from keypatch.zoo.loading import load, names

__all__ = ["Card", "load", "names"]
