import pytest

from keypatch.training import SCHEDULES, Constant, Cosine, Linear, Steps


@pytest.mark.parametrize("schedule", SCHEDULES.values())
def test_every_schedule_starts_at_one_and_warms_up_from_zero(schedule: type) -> None:
    assert schedule().factor(0.0) == pytest.approx(1.0)
    assert schedule(warmup=0.1).factor(0.0) == 0.0
    assert schedule(warmup=0.1).factor(0.05) == pytest.approx(0.5 * schedule().factor(0.05))
    assert schedule(warmup=0.1).factor(0.5) == schedule().factor(0.5)
    assert all(schedule().factor(share / 100) >= 0 for share in range(101))


def test_what_each_schedule_is() -> None:
    assert Linear().factor(0.25) == 0.75
    assert Linear().factor(1.0) == 0.0
    assert Constant().factor(0.9) == 1.0
    assert Cosine(floor=0.1).factor(1.0) == pytest.approx(0.1)
    assert Cosine().factor(0.5) == pytest.approx(0.5)
    assert [Steps(at=(0.3, 0.6), gamma=0.5).factor(share) for share in (0.29, 0.3, 0.7)] == [1.0, 0.5, 0.25]
