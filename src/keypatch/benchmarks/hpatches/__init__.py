"""The HPatches benchmark (Balntas et al. 2017): verification of pairs, matching of images, retrieval of patches."""
