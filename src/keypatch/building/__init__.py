"""Photos to a patch set to train on: classes of patches, their card and their page."""
