"""Every learner keeps the common contract: tests/learner_checks.py says what that is, one check at a time."""

import pytest
from learner_checks import ALL_CHECKS, ALL_LEARNERS


@pytest.mark.parametrize("case", ALL_LEARNERS, ids=lambda case: case.name)
@pytest.mark.parametrize("check", ALL_CHECKS.values(), ids=ALL_CHECKS.keys())
def test_contract(check, case):
    check(case)
