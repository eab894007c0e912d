"""Stanford Online Products: the lists as released, written here by hand, and every fault in one is named."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from keypatch.benchmarks.evaluation import evaluate
from keypatch.commands.train import open_source
from keypatch.errors import DataError
from keypatch.patches import open_patches
from keypatch.patches.image_folders import read_image_folders
from keypatch.patches.online_products import choose_list, read_online_products

HEADER = "image_id class_id super_class_id path\n"
TRAIN = HEADER + (
    "1 1 1 bicycle_final/111_0.JPG\n"
    "2 1 1 bicycle_final/111_1.JPG\n"
    "3 2 1 bicycle_final/222_0.JPG\n"
    "4 2 1 bicycle_final/222_1.JPG\n"
)
TEST = HEADER + (
    "5 9 1 bicycle_final/999_0.JPG\n"
    "6 9 1 bicycle_final/999_1.JPG\n"
    "7 8 12 toaster_final/888_0.JPG\n"
    "8 8 12 toaster_final/888_1.JPG\n"
    "9 7 12 toaster_final/777_0.JPG\n"
)


@pytest.fixture
def products(tmp_path: Path) -> Path:
    """Nine grey photographs of five products in two of the folders; photograph k is of the grey 20 k."""
    folder = tmp_path / "Stanford_Online_Products"
    for name in ("bicycle_final", "toaster_final"):
        (folder / name).mkdir(parents=True)
    for text in (TRAIN, TEST):
        for line in text.splitlines()[1:]:
            number, _, _, path = line.split()
            Image.new("RGB", (30, 20), (20 * int(number),) * 3).save(folder / path, quality=100)
    (folder / "Ebay_train.txt").write_text(TRAIN)
    (folder / "Ebay_test.txt").write_text(TEST)
    (folder / "Ebay_info.txt").write_text(TRAIN + TEST.removeprefix(HEADER))
    return folder


def greys(patches: np.ndarray) -> list[int]:
    return [round(float(patch.mean()) / 20) for patch in patches]


def test_a_list_is_read_in_its_order_and_a_product_is_a_class(products: Path) -> None:
    for _ in range(2):  # from the images, then from the cache
        found = open_patches(products / "Ebay_test.txt")
        assert (found.name, found.side, greys(found.patches)) == ("Ebay_test", 64, [5, 6, 7, 8, 9])
        assert found.point_id.tolist() == [9, 9, 8, 8, 7]
        assert (found.classes().count, found.classes().skipped) == (2, 1)
    assert isinstance(found.patches, np.memmap)


def test_the_halves_have_caches_of_their_own(products: Path) -> None:
    train, test = (open_patches(products / f"Ebay_{half}.txt") for half in ("train", "test"))
    assert greys(train.patches) == [1, 2, 3, 4]
    assert greys(test.patches) == [5, 6, 7, 8, 9]
    assert len(open_patches(products / "Ebay_info.txt")) == 9
    assert len(list(products.glob("*.npy"))) == 3


def test_an_image_becomes_the_square_that_class_folders_give(products: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (20, 50, 3), np.uint8)
    Image.fromarray(pixels).save(products / "bicycle_final" / "111_0.JPG")
    by_list = read_online_products(products / "Ebay_train.txt", side=32).patches[0]
    by_folder = read_image_folders(products, side=32).patches[0]
    assert by_list.std() > 20
    assert np.array_equal(by_list, by_folder)


def test_the_folder_alone_has_two_halves(products: Path) -> None:
    with pytest.raises(DataError, match=r"both halves.*Give the list of one: .*Ebay_train\.txt or .*Ebay_test\.txt"):
        open_patches(products)
    assert choose_list(products, "test") == products / "Ebay_test.txt"
    assert choose_list(str(products), "train") == products / "Ebay_train.txt"
    for other in ("embedded", products / "Ebay_info.txt", products / "bicycle_final"):
        assert choose_list(other, "test") == other


def test_training_takes_the_training_half(products: Path) -> None:
    assert open_source(products).point_id.tolist() == [1, 1, 2, 2]
    assert open_source(products / "Ebay_test.txt").point_id.tolist() == [9, 9, 8, 8, 7]


def test_the_benchmark_takes_the_test_half(products: Path) -> None:
    by_folder = evaluate("sift", "embedding", products)
    by_list = evaluate("sift", "embedding", products / "Ebay_test.txt")
    told = {key: by_folder.settings[key] for key in ("data", "images", "classes", "alone")}
    assert told == {"data": "Ebay_test", "images": 5, "classes": 3, "alone": 1}
    assert by_folder.scores == by_list.scores
    assert evaluate("sift", "embedding", products / "Ebay_train.txt").settings["images"] == 4


def test_spaces_and_line_ends_of_others_are_taken(products: Path) -> None:
    (products / "bicycle_final" / "111_0.JPG").rename(products / "bicycle_final" / "a b.JPG")
    (products / "Ebay_train.txt").write_bytes(TRAIN.replace("111_0", "a b").replace("\n", "\r\n").encode())
    assert len(open_patches(products / "Ebay_train.txt")) == 4


def _write(text: str) -> Callable[[Path], object]:
    return lambda folder: (folder / "Ebay_test.txt").write_text(text)


def _missing_image(folder: Path) -> None:
    (folder / "toaster_final" / "888_1.JPG").unlink()


def _damaged_image(folder: Path) -> None:
    (folder / "toaster_final" / "888_1.JPG").write_text("no image")


LISTS: dict[str, tuple[Callable[[Path], object], str]] = {
    "empty": (_write(""), r'Ebay_test\.txt, line 1: expected "image_id class_id super_class_id path".*found ""'),
    "without header": (_write(TEST.removeprefix(HEADER)), r'line 1: expected "image_id .*found "5 9 1 bicycle_final'),
    "with another header": (_write(TEST.replace("path", "file")), r"line 1: expected .*Ebay_test\.txt as released"),
    "without images": (_write(HEADER), "lists no images; it has only its first line"),
    "with a short line": (_write(TEST + "10 9 1\n"), r'line 7: expected three integers and a path.*found "10 9 1"'),
    "with words for ids": (_write(TEST.replace("6 9 1", "6 nine 1")), r'line 3: expected .*found "6 nine 1 bicycle'),
    "cut off": (_write(TEST.removesuffix("12 toaster_final/777_0.JPG\n")), r'line 6: expected .*found "9 7"'),
    "with a blank line": (_write(TEST.replace("6 9", "\n6 9")), r'line 3: expected .*found ""'),
    "with an image twice": (
        _write(TEST + "10 7 12 bicycle_final/999_1.JPG\n"),
        r"line 7: bicycle_final/999_1\.JPG is listed twice",
    ),
    "that leads up": (
        _write(TEST.replace("bicycle_final/999_1", "../999_1")),
        r"line 3: the name '\.\./999_1\.JPG' is",
    ),
    "that leads away": (
        _write(TEST.replace("bicycle_final/999_1", "/etc/999_1")),
        r"line 3: the name '/etc/999_1\.JPG'",
    ),
    "of single images": (_write(HEADER + "1 1 1 a.JPG\n2 2 1 b.JPG\n"), r"Ebay_test\.txt: 0 of 2 points have two"),
    "with a missing image": (_missing_image, r"toaster_final/888_1\.JPG is missing"),
    "with a damaged image": (_damaged_image, r"toaster_final/888_1\.JPG is not an image"),
}


@pytest.mark.parametrize("kind", LISTS)
def test_a_wrong_list_is_a_sentence_and_leaves_nothing_behind(products: Path, kind: str) -> None:
    spoil, message = LISTS[kind]
    spoil(products)
    with pytest.raises(DataError, match=message):
        open_patches(products / "Ebay_test.txt")
    assert not list(products.glob("*.npy")) and not list(products.glob(".*"))


def test_a_split_belongs_to_hpatches(products: Path) -> None:
    with pytest.raises(DataError, match=r'has no splits\. Leave out "--split a"'):
        open_patches(products / "Ebay_test.txt", split="a")
