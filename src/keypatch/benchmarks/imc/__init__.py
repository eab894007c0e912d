"""The Image Matching Challenge (Jin et al. 2021): stereo and multiview on scenes with known cameras."""
