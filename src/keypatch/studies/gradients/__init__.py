"""How well the distance of a pair tells the size of its gradient (AdaSample, figure 2): checkpoints of several runs."""
