from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("onnx")


@pytest.fixture(scope="module")
def exported(run_folder: Path, small_set: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from keypatch.commands.export import Exporting, export

    made = export(run_folder, tmp_path_factory.mktemp("onnx") / "thin.onnx", Exporting(data=str(small_set)))
    assert made.parity.difference < 1e-5
    assert made.parity.before == made.parity.after
    return made.path


def test_it_prints_the_comparison_and_writes_the_file(
    keypatch: Callable[..., object], run_folder: Path, small_set: Path, tmp_path: Path
) -> None:
    out = tmp_path / "thin.pt2"
    answer = keypatch("export", run_folder, "--format", "pt2", "--data", small_set, "--out", out)
    assert answer.code == 0, answer.err
    assert "320 patches of small" in answer.out and "fpr95.m50_160_160_0" in answer.out
    assert f"Written: {out}, float32" in answer.out
    assert out.exists()


def test_the_file_is_a_descriptor_and_remembers_where_it_comes_from(
    keypatch: Callable[..., object], exported: Path, run_folder: Path, small_set: Path
) -> None:
    import keypatch as kp

    scored = keypatch("evaluate", exported, "--data", small_set, "--verbose")
    assert scored.code == 0, scored.err
    assert "thin on ubc, small" in scored.out
    assert "keypatch: thin is computed by" in scored.err
    of_file, of_run = (kp.evaluate(str(each), "ubc", small_set).scores for each in (exported, run_folder))
    assert of_file == pytest.approx(of_run, abs=1e-4)
    describer = kp.load(exported)
    assert describer.facts["recipe"] == (run_folder / "recipe.toml").read_text()
    assert [each.name for each in describer.training] == ["small"]
    assert "16 numbers, unit length" in keypatch("inspect", exported).out


def test_int8_beyond_the_bound_is_refused_unless_forced(
    keypatch: Callable[..., object], run_folder: Path, small_set: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from keypatch.commands import export

    out = tmp_path / "int8.onnx"
    monkeypatch.setitem(export.BOUNDS, "int8", export.Bound(1e-6, 1.0))
    words = ("export", run_folder, "--int8", "--data", small_set, "--out", out)
    refused = keypatch(*words)
    assert refused.code == 2 and not out.exists()
    assert "int8.onnx was not written: on small, entries differ by up to" in refused.err
    forced = keypatch(*words, "--force")
    assert forced.code == 0 and out.exists()
    assert "Kept anyway (--force): entries differ" in forced.out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("sift", "--out", "x.onnx"), '"sift" is hand-crafted and has no network.'),
        (("hynet-notredame", "--out", "x.bin"), "must end in .onnx."),
        (("hynet-notredame", "--out", "x.onnx", "--format", "pt2"), "must end in .pt2."),
        (("hynet-notredame", "--out", "x.pt2", "--format", "pt2", "--int8"), "int8 is only for ONNX files."),
        (("hynet-notredame", "--out", "x.onnx", "--format", "tflite"), "tflite"),
        (("hynet-notredame", "--out", "x.onnx", "--int8", "--data", "nowhere"), "int8 needs real patches"),
        (("hynt", "--out", "x.onnx"), 'There is no descriptor, run folder or weight file "hynt".'),
    ],
)
def test_wrong_words_are_one_sentence(
    keypatch: Callable[..., object],
    words: tuple[str, ...],
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    answer = keypatch("export", *words)
    assert answer.code == 2 and sentence in answer.err
    assert answer.err.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_too_few_patches_to_calibrate_on_is_one_sentence(
    keypatch: Callable[..., object], run_folder: Path, tmp_path: Path
) -> None:
    import numpy as np

    from keypatch.patches.phototour import write_phototour

    write_phototour(tmp_path / "few", np.zeros((4, 64, 64), np.uint8), np.array([0, 0, 1, 1]))
    answer = keypatch("export", run_folder, "--int8", "--data", tmp_path / "few", "--out", tmp_path / "x.onnx")
    assert answer.code == 2 and "int8 is calibrated on at least 64 patches, but few has 4." in answer.err


def test_a_graph_is_no_network_to_train_or_export(
    keypatch: Callable[..., object], exported: Path, small_set: Path, tmp_path: Path
) -> None:
    again = keypatch("export", exported, "--out", tmp_path / "again.onnx")
    trained = keypatch("train", "hardnet", "--data", small_set, "--from", exported, "--out", tmp_path / "run")
    for answer in (again, trained):
        assert answer.code == 2 and "cannot be trained, changed or exported again" in answer.err


def test_a_pt2_file_is_no_descriptor_since_its_loader_can_run_code(
    keypatch: Callable[..., object], small_set: Path, tmp_path: Path
) -> None:
    (tmp_path / "x.pt2").touch()
    answer = keypatch("evaluate", tmp_path / "x.pt2", "--data", small_set)
    assert answer.code == 2 and "is for torch.export.load, which can run code from a file" in answer.err
