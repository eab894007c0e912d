"""Commands that are more than one room: train, inspect, list, quickstart."""
