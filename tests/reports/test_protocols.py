"""A table never mixes protocols."""

import math
from collections.abc import Callable
from dataclasses import replace

import pytest

from keypatch.benchmarks.comparison import own_settings
from keypatch.reports.protocols import Source, group


def sources(*results: object) -> list[Source]:
    return [Source(result, f"r{number}.json") for number, result in enumerate(results)]


def test_results_of_one_benchmark_data_and_settings_share_a_table_with_the_best_first(make: Callable) -> None:
    (protocol,) = group(sources(make("sift", 0.3), make("hynet", 0.1), make("rootsift", math.nan)))
    assert [entry.label for entry in protocol.entries] == ["hynet", "sift", "rootsift"]
    assert protocol.title == "ubc on some-set" and protocol.differs == ""
    assert protocol.headline() == ["fpr95.easy", "rank1"]


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"rule": "hynet"}, "Not to be compared with the table of ubc on some-set: rule hynet instead of rank."),
        ({"data_hash": "bb"}, "other data (SHA-256 bb instead of aa)"),
        ({"seed": 5}, "seed 5 instead of none"),
    ],
)
def test_another_setting_or_data_has_a_table_of_its_own_that_says_why(make: Callable, other: dict, said: str) -> None:
    first, second = group(sources(make("sift", 0.3), make("sift", 0.2, **other)))
    assert first.differs == "" and said in second.differs


def test_cards_tell_how_data_were_made_and_part_nothing(make: Callable) -> None:
    cards = ({}, {"card": {"date": "2026-01-02"}}, {"card": {"date": "2026-01-03"}})
    (protocol,) = group(sources(*(make(f"d{number}", 0.3, **card) for number, card in enumerate(cards))))
    assert len(protocol.entries) == 3
    others = group(sources(make("sift", 0.3, **cards[1]), make("sift", 0.3, rule="hynet", **cards[2])))
    assert "2026" not in others[1].differs


def test_another_benchmark_has_its_own_table_and_nothing_to_explain(make: Callable) -> None:
    both = group(sources(make("sift", 0.3), make("sift", 0.3, benchmark="hpatches", scores={"rank1.e": 0.5})))
    assert [protocol.benchmark for protocol in both] == ["ubc", "hpatches"] and not both[1].differs


def test_tables_of_one_benchmark_stand_together(make: Callable) -> None:
    other = make("sift", 0.3, benchmark="hpatches", scores={"rank1.e": 0.5})
    found = group(sources(make("sift", 0.3), other, make("sift", 0.3, rule="hynet")))
    assert [protocol.benchmark for protocol in found] == ["ubc", "ubc", "hpatches"]


def test_how_patches_are_cut_belongs_to_the_descriptor(make: Callable) -> None:
    cut = ({"patch_sigmas": 12.0}, {"patch_sigmas": 24.0})
    (protocol,) = group(sources(*(make(f"d{number}", 0.3, features=each) for number, each in enumerate(cut))))
    assert not [name for name in protocol.settings if "patch_sigmas" in name]
    assert [own_settings(entry.result) for entry in protocol.entries] == [
        {"features.patch_sigmas": 12.0},
        {"features.patch_sigmas": 24.0},
    ]


@pytest.mark.parametrize(
    ("files", "settings", "labels"),
    [
        (("seed0.json", "seed1.json"), ({}, {}), {"net (seed0)", "net (seed1)"}),
        (("a/scores/net.json", "b/scores/net.json"), ({}, {}), {"net (a)", "net (b)"}),
        (("a/one.json", "a/two.json"), ({}, {}), {"net (one)", "net (two)"}),
        (("a.json", "b.json"), ({"patch_size": 32}, {"patch_size": 64}), {f"net (patch size {n})" for n in (32, 64)}),
        (("", ""), ({}, {}), {"net (2026-01-02 03:04)", "net (2026-01-02 09:04)"}),
        (("", "a.json"), ({}, {}), {"net (2026-01-02 03:04)", "net (2026-01-02 09:04)"}),
    ],
)  # fmt: skip
def test_rows_of_one_descriptor_are_named_by_what_differs(
    make: Callable, files: tuple, settings: tuple, labels: set
) -> None:
    dates = ("2026-01-02T03:04:05", "2026-01-02T09:04:05")
    results = [make("net", 0.3, date=date, **each) for date, each in zip(dates, settings, strict=True)]
    twice = [Source(result, file) for result, file in zip(results, files, strict=True)]
    (protocol,) = group([*twice, Source(make("sift", 0.1), "sift.json")])
    assert {entry.label for entry in protocol.entries} == labels | {"sift"}


def test_of_the_notes_only_those_are_named_that_differ(make: Callable) -> None:
    notes = ({"trained_on": "liberty", "step": 10}, {"trained_on": "liberty", "step": 20})
    (protocol,) = group(sources(*(replace(make("net", 0.3), notes=each) for each in notes)))
    assert {entry.label for entry in protocol.entries} == {"net (step 10)", "net (step 20)"}


def test_two_results_of_one_name_date_and_file_are_numbered(make: Callable) -> None:
    (protocol,) = group([Source(make("sift", 0.3), "same.json")] * 2)
    assert {entry.label for entry in protocol.entries} == {"sift (1)", "sift (2)"}


def test_the_best_is_the_lowest_error_or_the_highest_share_and_ties_are_shared(make: Callable) -> None:
    (protocol,) = group(sources(make("a", 0.1), make("b", 0.1), make("c", 0.2), make("d", math.nan)))
    assert [entry.label for entry in protocol.best("fpr95.easy")] == ["a", "b"]
    assert [entry.label for entry in protocol.best("rank1")] == ["a", "b"]
    assert protocol.best("spread.m1") == [] and protocol.best("not there") == []


def test_one_result_is_not_the_best_of_anything(make: Callable) -> None:
    (protocol,) = group(sources(make("a", 0.1)))
    assert protocol.best("fpr95.easy") == []
