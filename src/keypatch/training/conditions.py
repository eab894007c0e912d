"""`Conditions`: how a run is computed. Imports no torch, for the help texts of commands are made from it."""

from dataclasses import dataclass

from keypatch.settings import CheckedFields, option


@dataclass(frozen=True)
class Conditions(CheckedFields):
    """How a run is computed; these settings must not change its result beyond rounding.

    >>> kp.Conditions(device="cpu", threads=1).keep
    ()
    """

    device: str = option("auto", "auto, cpu, cuda, cuda:1 or mps; auto picks the best available.")
    precision: str = option("auto", "auto, float32 or bfloat16; auto chooses by task and device.")
    compile: str = option("auto", "auto, on or off: whether to use torch.compile.")
    threads: int | None = option(None, "CPU threads; with 1, a repeated run is bit-identical.", least=1)
    checkpoint_seconds: float = option(60.0, "Seconds between checkpoints.")
    tensorboard: bool = option(False, "Also write TensorBoard events.")
    keep: tuple[float, ...] = option(
        (), "Also keep the weights at this fraction of the run, such as 0.5; may be repeated.", above=0, most=1
    )
    keep_every: int | None = option(None, "Also keep the weights every so many pairs, such as once per epoch.", least=1)
    cache_gradients: int | None = option(
        None,
        "Describe the batch twice, in chunks of this many patches: same gradients, less memory, more time.",
        least=2,
    )
