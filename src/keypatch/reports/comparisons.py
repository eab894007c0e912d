"""Each row of a table against one other: the best of the column, or a baseline that was chosen."""

from keypatch.benchmarks.comparing import Difference, compare
from keypatch.errors import KeypatchError
from keypatch.reports.protocols import Entry, Protocol, has_order


def reference(protocol: Protocol, name: str, baseline: str | None) -> Entry | None:
    """Whom a column is compared with; nobody where the baseline is not in the table or nothing is the best."""
    if baseline is not None:
        return next((each for each in protocol.entries if baseline in (each.label, each.result.descriptor)), None)
    best = protocol.best(name)
    return best[0] if best else None


def difference(entry: Entry, other: Entry, name: str) -> Difference | None:
    """The paired difference of a score; None where one of the two has no replicates of it."""
    try:
        return compare(entry.result, other.result, name)
    except KeypatchError:
        return None


def compared_names(protocol: Protocol) -> list[str]:
    """The scores that can be compared: headline ones with replicates in more than one row."""
    return [
        name
        for name in protocol.headline()
        if has_order(name) and sum(name in entry.result.replicates for entry in protocol.entries) > 1
    ]
