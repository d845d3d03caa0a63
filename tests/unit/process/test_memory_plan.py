"""The limit is of what will be resident: interpreter and libraries, and what the stages plan."""

import pytest

from stillwatch.base import ConfigError
from stillwatch.process import LIBRARIES_BYTES, check_memory
from stillwatch.settings import Config
from stillwatch.settings.config import LimitsConfig

PLAN = [("gate", 1_000_000), ("places", 19_000_000)]


def test_a_plan_that_fits_beside_the_libraries_is_accepted():
    check_memory(Config(limits=LimitsConfig(memory_bytes=LIBRARIES_BYTES + 20_000_000)), PLAN, "config")


def test_a_plan_that_does_not_is_refused_with_what_it_is_made_of():
    with pytest.raises(ConfigError, match=f"{LIBRARIES_BYTES} of interpreter.* 20000000 planned.*places with 19000000"):
        check_memory(Config(limits=LimitsConfig(memory_bytes=LIBRARIES_BYTES + 19_999_999)), PLAN, "config")
