"""A page of models with hostile and unusual content, and a browser to show it."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.results_files import rows as answered
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
            "answer": answers.get(number, f"name {number}" if number in right else "name unknown"),
            "score": float(number in right),
        }
        for number in range(40)
    ]


COMPARISONS = ("pos_neg_s>neg_neg_s", "neg_pos_s>neg_neg_s", "pos_pos_p>neg_neg_p")
FACTS = (
    "family: {family}\nsize: {size}\nweights: {weights}\nlicence: '{licence}'\ndate: 2025-03-04\n"
)


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A is right on 0 to 29, B on 20 to 39; B lacks a task and says other things; six more."""
    folder = tmp_path_factory.mktemp("results")
    write_run(folder / "a" / "1", "model A", "some_task", rows(set(range(30))))
    write_run(folder / "b" / "1", f"model B {HOSTILE}", "some_task", rows(set(range(20, 40))))
    write_run(folder / "a" / "2", "model A", "other_task", rows(set(range(10))), metric="acc")
    for name, model, right in (("a", "model A", 30), ("b", f"model B {HOSTILE}", 5)):
        scored = [
            {**row, "facets": {"metric": "direct", "requirement": "existence", "family": "f",
                               "comparison": COMPARISONS[place % 3]}}
            for place, row in enumerate(answered(40, right))
        ]  # fmt: skip
        write_run(folder / name / "3", model, "lieder_mini", scored, metric="direct")
    a = FACTS.format(family="Hill", size="7B", weights="open", licence="MIT")
    b = FACTS.format(family="Lake", size="350M", weights="closed", licence=HOSTILE.replace("'", ""))
    for name, facts in (("a", a), ("b", b)):
        (folder / name / "model.yaml").write_text(facts)
    for number in range(6):  # with eight models, one can look for a name
        write_run(folder / f"c{number}", f"other {number}", "some_task", rows(set(range(number))))
    return folder


@pytest.fixture(scope="session")
def site(results: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page's folder."""
    folder = tmp_path_factory.mktemp("site")
    build([results], folder, title=f"Models {HOSTILE}")
    return folder


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A real Chromium without a window; while it is open, no other test can start an event loop."""
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
    """The page, opened from the disk; the test fails if its console says anything."""
    opened = browser.new_page(viewport={"width": 1280, "height": 900})
    problems: list[str] = []
    opened.on("console", lambda message: problems.append(message.text))
    opened.on("pageerror", lambda error: problems.append(str(error)))
    opened.goto((site / "index.html").as_uri())
    yield opened
    assert problems == []
    opened.close()
