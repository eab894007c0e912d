"""The small network: HyNet's loss on a network that describes several times as many patches per second."""

from dataclasses import replace

from keypatch.networks import SmallNet
from keypatch.recipes.hynet import HYNET
from keypatch.training import Linear

SMALL = replace(HYNET, name="small", network=SmallNet(), schedule=Linear())

RECIPES = ((SMALL, "HyNet's loss on SmallNet, for fast description; `--teacher D` adds distillation"),)
