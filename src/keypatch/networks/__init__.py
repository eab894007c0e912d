"""Descriptor networks: specs that build them, their input, their weight files."""

from keypatch.networks.central_surround import CENTRAL_SURROUND_INPUT, CentralSurround
from keypatch.networks.devices import choose_device, has_fast_bfloat16
from keypatch.networks.embedding import EMBEDDING_INPUT, IMAGE_INPUT, EmbeddingNet, image_network
from keypatch.networks.hardnet8 import HardNet8
from keypatch.networks.hynet import HYNET_INPUT, SDGMNET_INPUT, HyNet
from keypatch.networks.l2net import HARDNET_INPUT, SOSNET_INPUT, L2Net
from keypatch.networks.patch_network import NetworkSpec, PatchNetwork, unit_length
from keypatch.networks.preprocessing import Preprocessing, prepare
from keypatch.networks.published import load_published
from keypatch.networks.small import SmallNet
from keypatch.networks.spread_out import SPREAD_OUT_INPUT, SpreadOutNet
from keypatch.networks.table import NETWORKS, spec_from_dict, spec_to_dict
from keypatch.networks.tfeat import TFEAT_INPUT, TFeat
from keypatch.networks.weights import hash_weights, load_weights, read_weights_card, save_weights

__all__ = [
    "CENTRAL_SURROUND_INPUT",
    "EMBEDDING_INPUT",
    "HARDNET_INPUT",
    "HYNET_INPUT",
    "IMAGE_INPUT",
    "NETWORKS",
    "SDGMNET_INPUT",
    "SOSNET_INPUT",
    "SPREAD_OUT_INPUT",
    "TFEAT_INPUT",
    "CentralSurround",
    "EmbeddingNet",
    "HardNet8",
    "HyNet",
    "L2Net",
    "NetworkSpec",
    "PatchNetwork",
    "Preprocessing",
    "SmallNet",
    "SpreadOutNet",
    "TFeat",
    "choose_device",
    "has_fast_bfloat16",
    "hash_weights",
    "image_network",
    "load_published",
    "load_weights",
    "prepare",
    "read_weights_card",
    "save_weights",
    "spec_from_dict",
    "spec_to_dict",
    "unit_length",
]
