"""What the tests share: where published data and golden numbers lie, the bundled models, and honest skipping."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

# No deadline: a loaded machine is no fault of the code. In CI the same examples every time: a red run can be repeated.
settings.register_profile("litmus", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("litmus")


def require(condition: object, reason: str) -> None:
    """Skip in words what this machine cannot run; with ``LITMUS_REQUIRE_ALL=1`` (as in CI) every skip is a failure."""
    if condition:
        return
    if os.environ.get("LITMUS_REQUIRE_ALL") == "1":
        pytest.fail(f"LITMUS_REQUIRE_ALL=1, but {reason}", pytrace=False)
    pytest.skip(reason)


def folder_named_by(variable: str) -> Path:
    """The folder that an environment variable names; without it the test is skipped in words."""
    folder = Path(os.environ.get(variable) or "/nonexistent")
    require(folder.is_dir(), f"{variable} names no folder here")
    return folder


@pytest.fixture(scope="session")
def datasets() -> Path:
    """The published data sets (never committed)."""
    return folder_named_by("LITMUS_DATASETS")


@pytest.fixture(scope="session")
def golden() -> Path:
    """Numbers that published implementations gave."""
    return folder_named_by("LITMUS_GOLDEN")


@pytest.fixture(scope="session")
def pilot() -> Path:
    """The adapter that the golden numbers of the masked model were made with."""
    return folder_named_by("LITMUS_PILOT") / "distilbert-mlm-pilot" / "adapter.safetensors"


@pytest.fixture(scope="session")
def causal():
    """The bundled causal model."""
    from lib.models import load

    return load("smollm2-135m-instruct")


@pytest.fixture(scope="session")
def masked():
    """The bundled masked model."""
    from lib.models import load

    return load("distilbert-mlm")
