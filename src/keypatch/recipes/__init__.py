"""The named recipes: values, one file per paper."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from keypatch.errors import RecipeError
from keypatch.parts import find_part, table
from keypatch.recipes import (
    adapt,
    adasample,
    combinations,
    doap,
    dynamic_margin,
    embedding,
    gor,
    hardnet,
    hynet,
    l2net,
    scale_aware,
    sdgmnet,
    small,
    sosnet,
    tfeat,
)
from keypatch.recipes.hardnet import HARDNET
from keypatch.recipes.hynet import HYNET
from keypatch.recipes.sdgmnet import SDGMNET
from keypatch.recipes.sosnet import SOSNET
from keypatch.settings import apply_settings, choose_from, differing
from keypatch.training import Recipe
from keypatch.training.recipe import TYPES
from keypatch.training.recipe_files import read_recipe

_FILES = {
    "AdaSample (Zhang et al., 2019)": adasample,
    "DOAP (He et al., CVPR 2018)": doap,
    "Dynamic soft margin (Zhang and Rusinkiewicz, ICCV 2019)": dynamic_margin,
    "HardNet (Mishchuk et al., NeurIPS 2017)": hardnet,
    "HyNet (Tian et al., NeurIPS 2020)": hynet,
    "Image embedding, lifted structure (Song et al., CVPR 2016) with GOR": embedding,
    "L2-Net (Tian et al., CVPR 2017)": l2net,
    "Scale-aware triplet networks (Keller et al., CVPR 2018)": scale_aware,
    "SDGMNet (Ma and Deng, 2021)": sdgmnet,
    "Spread-out descriptors, GOR (Zhang et al., ICCV 2017), and its base losses": gor,
    "Small network": small,
    "SOSNet (Tian et al., CVPR 2019)": sosnet,
    "Parts of several papers": combinations,
    "TFeat (Balntas et al., BMVC 2016)": tfeat,
    "Fine-tuning": adapt,
}
# By paper, each recipe with a line that says what it is.
PAPERS: dict[str, tuple[tuple[Recipe, str], ...]] = {paper: file.RECIPES for paper, file in _FILES.items()}
RECIPES: dict[str, Recipe] = table(
    "recipe", {recipe.name: recipe for recipes in PAPERS.values() for recipe, _ in recipes}
)
# By recipe, the settings that turn it into what its paper prints; of others nothing was published.
PUBLISHED: Mapping[str, tuple[str, ...]] = {
    name: settings for file in _FILES.values() for name, settings in getattr(file, "PUBLISHED", {}).items()
}

_NOT_OF_THE_FORM = ("name", "pairs", "seed")
_TOLD = 3


def find_recipe(name: str | Path) -> Recipe:
    """A recipe by name, or from a recipe.toml or the run folder that contains one.

    >>> kp.find_recipe("hynet").loss
    (HybridTriplet(alpha=2.0, margin=1.2, z='none', weight=1.0), NormDifference(weight=0.1))
    """
    path = Path(name)
    if path.suffix == ".toml" or (str(name) not in RECIPES and path.is_dir()):
        return read_recipe(path / "recipe.toml" if path.is_dir() else path)
    if recipe := find_part(RECIPES, str(name)):
        return recipe
    hint = choose_from(str(name), RECIPES, "`keypatch list recipes`")
    raise RecipeError(f'There is no recipe or recipe.toml file "{name}".{hint}')


def as_published(recipe: Recipe) -> Recipe:
    """The recipe as printed in its paper, not as in the authors' code or by our choices, and without detector noise.

    It is looked up by its name; fields that the paper does not specify stay as they are (docs/methods/as-published.md).

    >>> kp.as_published(kp.find_recipe("hynet")).loss[0].z
    'inside'

    Raises:
        RecipeError: nothing of this recipe was published.
    """
    if recipe.name not in PUBLISHED:
        raise RecipeError(
            f'"{recipe.name}" is not a recipe from a paper, so it has no published form. To train it without '
            "detector noise, use --set augment.detector_noise=0 instead of --as-published."
        )
    settings = ["augment.detector_noise=0", *PUBLISHED[recipe.name]]
    return replace(apply_settings(recipe, settings, TYPES), published=True)


def form_of(recipe: Recipe) -> str:
    """Whether a recipe's scores compare with the paper's: `Recipe.form`, and where it is no longer as published.

    Budget, seed and name aside. Of many fields that differ three are named.

    >>> form_of(replace(as_published(HYNET), average=0.9))
    'as published, but with average=0.9'
    """
    if not recipe.published:
        return recipe.form
    if recipe.name not in PUBLISHED:
        return "as published, but renamed"
    names = {"augment.detector_noise": "detector noise "}
    settings = [each.partition("=") for each in differing(recipe, as_published(RECIPES[recipe.name]), TYPES)]
    changed = [names.get(path, f"{path}=") + value for path, _, value in settings if path not in _NOT_OF_THE_FORM]
    told = [*changed[:_TOLD], *([f"and {len(changed) - _TOLD} more"] if len(changed) > _TOLD else [])]
    return f"as published, but with {', '.join(told)}" if told else "as published"


__all__ = [
    "HARDNET",
    "HYNET",
    "PAPERS",
    "PUBLISHED",
    "RECIPES",
    "SDGMNET",
    "SOSNET",
    "as_published",
    "find_recipe",
    "form_of",
]
