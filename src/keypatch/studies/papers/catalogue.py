"""Every table and figure by its name."""

from keypatch.errors import KeypatchError
from keypatch.settings import choose_from
from keypatch.studies.papers import adasample, gor, hynet, scale_aware, sdgmnet
from keypatch.studies.papers.plan import Plan

PLANS: dict[str, Plan] = {
    plan.name: plan for paper in (adasample, hynet, gor, sdgmnet, scale_aware) for plan in paper.PLANS
}


def find_plan(name: str) -> Plan:
    """A plan by its name."""
    if plan := PLANS.get(name.lower()):
        return plan
    hint = choose_from(name, PLANS, "`keypatch study paper`")
    raise KeypatchError(f'There is no table or figure "{name}".{hint}')
