"""Names of scores as people write them."""

_TITLES = {  # what score names are or begin with; what follows after a dot is a pair list, a sequence or the like
    "fpr95": "FPR95",
    "ap": "AP",
    "auc": "AUC",
    "verification.ap": "verification AP",
    "verification.auc": "verification AUC",
    "matching.map": "matching mAP",
    "matching.sr": "matched right",
    "retrieval.map": "retrieval mAP",
    **{f"mma{k}": f"MMA {k} px" for k in range(1, 11)},
    **{f"accuracy{k}": f"accuracy {k} px" for k in (1, 3, 5)},
    **{f"auc{k}": f"AUC {k} px" for k in (1, 3, 5)},
    **{f"maa{k}": f"mAA {k}°" for k in (5, 10)},
    "rank1": "rank-1",
    "revisited_map": "mAP in reference images",
    **{f"recall@{k}": f"Recall@{k}" for k in (1, 10, 100, 1000)},
    "nmi": "NMI",
    "f1": "F1",
    "share": "matched correctly",
    "registered": "registered",
    "count.points": "points",
    "count.observations": "observations",
    "track_length": "track length",
    "error.reprojection": "reprojection error",
    "spread.m1": "M1",
    "spread.dm2": "d·M2",
}


def score_title(name: str) -> tuple[str, str]:
    """ "fpr95.m50_100" -> ("FPR95", "m50_100"); a score without a title is called by its own name."""
    heads = [head for head in _TITLES if f"{name}.".startswith(f"{head}.")]
    if not heads:
        return name, ""
    head = max(heads, key=len)
    return _TITLES[head], name.removeprefix(head).removeprefix(".")
