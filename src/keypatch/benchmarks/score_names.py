"""Names of scores as people write them."""

_LEVELS = ("easy", "hard", "tough")  # e, h and t in the names of scores
_TITLES = {  # what score names are or begin with; what follows after a dot is a pair list, a sequence or the like
    "fpr95": "FPR95",
    "ap": "AP",
    "auc": "AUC",
    "verification.ap": "verification AP",
    "verification.auc": "verification AUC",
    "matching.map": "matching mAP",
    **{f"matching.map.{level[0]}": f"matching mAP {level}" for level in _LEVELS},
    "matching.sr": "matched right",
    "retrieval.map": "retrieval mAP",
    **{f"mma{k}": f"MMA {k} px" for k in range(1, 11)},
    **{f"accuracy{k}": f"accuracy {k} px" for k in (1, 3, 5)},
    **{f"auc{k}": f"AUC {k} px" for k in (1, 3, 5)},
    **{f"maa{k}": f"mAA {k}°" for k in (5, 10)},
    "rank1": "rank-1",
    **{f"rank1.{level[0]}": f"rank-1 {level}" for level in _LEVELS},
    "revisited_map": "mAP in reference images",
    **{f"recall@{k}": f"Recall@{k}" for k in (1, 10, 100, 1000)},
    "nmi": "NMI",
    "f1": "F1",
    "share": "matched correctly",
    "count.within3": "within 3 px",
    **{f"error.{what}": f"{what} error" for what in ("reprojection", "rotation", "position")},
    "spread.m1": "M1",
    "spread.dm2": "d*M2",
}
_FAMILIES = ("count", "error", "spread", "verification", "matching", "retrieval")  # words that say nothing alone


def split_score(name: str) -> tuple[str, str]:
    """ "fpr95.m50_100" -> ("fpr95", "m50_100"); "rank1.e" -> ("rank1.e", ""); "count.matches.boat" by its family."""
    words = name.split(".")
    first = ".".join(words[: 2 if words[0] in _FAMILIES else 1])
    kind = max((known for known in [first, *_TITLES] if f"{name}.".startswith(f"{known}.")), key=len)
    return kind, name.removeprefix(kind).removeprefix(".")


def score_title(name: str) -> tuple[str, str]:
    """ "fpr95.m50_100" -> ("FPR95", "m50_100"); a score without a title is called by its own words."""
    kind, of = split_score(name)
    return _TITLES.get(kind) or kind.removeprefix("count.").replace("_", " ").replace(".", " "), of
