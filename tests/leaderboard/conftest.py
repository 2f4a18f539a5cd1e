"""A page of two models with hostile and unusual content, and a browser to show it."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.results_files import write_run

from lm_eval_ext.leaderboard.site import build

HOSTILE = "<script>window.hurt = 1</script><img src=x onerror='window.hurt = 2'></script>"
RIGHT_TO_LEFT = "מה שלום הכלב"
CHINESE = "红烧牛肉面"


def rows(right: set[int]) -> list[dict[str, Any]]:
    answers = {0: HOSTILE, 1: RIGHT_TO_LEFT, 2: CHINESE}
    return [
        {
            "doc": {"id": f"d{number}"},
            "prompt": f"What is the name of number {number}? {HOSTILE if number == 3 else ''}",
            "target": f"name {number}",
            "answer": answers.get(number, f"name {number}" if number in right else "no idea"),
            "score": float(number in right),
        }
        for number in range(40)
    ]


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page's folder; model A is right on 0 to 29, model B on 20 to 39."""
    results = tmp_path_factory.mktemp("results")
    write_run(results / "a", "model A", "some_task", rows(set(range(30))))
    write_run(results / "b", f"model B {HOSTILE}", "some_task", rows(set(range(20, 40))))
    write_run(results / "a2", "model A", "other_task", rows(set(range(10))), metric="acc")
    folder = tmp_path_factory.mktemp("site")
    build([results], folder, title=f"Models {HOSTILE}")
    return folder


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """A real Chromium without a window."""
    chromium = next(
        (found for name in ("chromium", "chromium-browser", "google-chrome")
         if (found := shutil.which(name))), None,
    )  # fmt: skip
    if chromium is None:
        pytest.skip("no Chromium on this machine (Debian: apt-get install chromium)")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def page(browser: Any, site: Path) -> Iterator[Any]:
    """The page, opened from the disk; the test fails if its console shows an error."""
    opened = browser.new_page(viewport={"width": 1280, "height": 900})
    problems: list[str] = []
    opened.on("console", lambda message: problems.append(message.text)
              if message.type in ("error", "warning") else None)  # fmt: skip
    opened.on("pageerror", lambda error: problems.append(str(error)))
    opened.goto((site / "index.html").as_uri())
    yield opened
    assert problems == []
    opened.close()
