"""The page in a real browser: sorting, filtering, samples, keyboard, hostile text."""

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from support.results_files import write_many, write_run

from lm_eval_ext.leaderboard.site import build

pytestmark = [pytest.mark.slow, pytest.mark.e2e, pytest.mark.xdist_group("browser")]

HOSTILE = "<script>window.hurt = 1</script>"


def names(page: Any) -> list[str]:
    found: list[str] = page.locator("#t-overview tbody tr:visible th").all_inner_texts()
    return [name[:7] for name in found]


def choose(page: Any, **options: str) -> None:
    for name, label in options.items():
        page.select_option(f"#s-{name}", label=label)


def titles(page: Any) -> list[str]:
    found: list[str] = page.locator("#s-list button").all_inner_texts()
    return found


def said(page: Any) -> str:
    text: str = page.locator("#s-said").inner_text()
    return text


def wait_until_said(page: Any, text: str) -> None:
    page.wait_for_function(f"document.querySelector('#s-said').innerText === {json.dumps(text)}")


def test_a_click_on_a_heading_sorts(page: Any) -> None:
    assert names(page) == ["model A", "model B"]
    # A is right on 30 of 40, B on 20: highest first, then lowest first.
    heading = page.locator("#t-overview thead th").nth(2).locator("button")
    heading.click()
    assert names(page) == ["model A", "model B"]
    assert page.locator("#t-overview thead th").nth(2).get_attribute("aria-sort") == "descending"
    heading.click()
    assert names(page) == ["model B", "model A"]
    assert page.locator("#t-overview thead th").nth(2).get_attribute("aria-sort") == "ascending"
    page.locator("#t-overview thead th").nth(0).locator("button").click()
    assert names(page) == ["model A", "model B"]


def test_missing_values_go_last_whichever_way(page: Any) -> None:
    """B has no result on the other task."""
    heading = page.locator("#t-overview thead th").nth(1).locator("button")
    for _ in range(2):
        heading.click()
        assert names(page) == ["model A", "model B"]


def test_filters(page: Any) -> None:
    page.fill("#model-filter", "MODEL b")
    assert names(page) == ["model B"]
    assert page.locator("#filter-said").inner_text() == "1 of 2 models, 2 of 2 tasks"
    page.uncheck("#filters input[type=checkbox]")
    assert page.locator("#filter-said").inner_text() == "1 of 2 models, 0 of 2 tasks"


def test_samples_where_one_is_right_and_the_other_wrong(page: Any) -> None:
    choose(page, task="some_task")
    page.select_option("#s-b", index=2)
    page.wait_for_function("document.querySelectorAll('#s-list button').length === 40")
    choose(page, which="A is right and B is wrong")
    wait_until_said(page, "20 of 40 samples")  # B's samples are read from a file beside the page
    assert said(page) == "20 of 40 samples"
    choose(page, which="B is right and A is wrong")
    assert said(page) == "10 of 40 samples"
    choose(page, which="A and B differ")
    assert said(page) == "30 of 40 samples"
    page.fill("#s-search", "NUMBER 35")
    assert said(page) == "1 of 40 samples"
    page.locator("#s-list button").click()
    page.wait_for_selector("#s-detail pre")
    detail = page.locator("#s-detail").inner_text()
    assert "d35" in detail
    assert "name 35" in detail
    assert "What is the name of number 35?" in detail
    assert "wrong (0)" in detail and "right (1)" in detail


def test_text_of_models_stays_text(page: Any) -> None:
    choose(page, task="some_task")
    page.wait_for_function("document.querySelectorAll('#s-list button').length === 40")
    for place, text in ((0, HOSTILE), (1, "מה שלום הכלב"), (2, "红烧牛肉面"), (3, HOSTILE)):
        page.locator("#s-list button").nth(place).click()
        page.wait_for_function(
            f"document.querySelector('#s-detail h3')?.textContent.includes('d{place}')"
        )
        assert text in page.locator("#s-detail").inner_text()
    assert page.evaluate("window.hurt") is None
    assert page.locator("#s-detail script, #s-detail img, td img, th img").count() == 0
    assert HOSTILE in page.title()


def test_with_the_keyboard_alone(page: Any) -> None:
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.focus("#s-task")
    page.keyboard.press("End")
    page.wait_for_function("document.querySelectorAll('#s-list button').length === 40")
    page.locator("#s-list button").first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    page.wait_for_selector("#s-detail pre")
    assert "d1" in page.locator("#s-detail h3").first.inner_text()
    assert page.evaluate("document.activeElement.id") == "s-detail"
    page.focus("#t-overview thead th:nth-child(3) button")
    page.keyboard.press("Enter")
    assert page.locator("#t-overview thead th").nth(2).get_attribute("aria-sort") == "descending"


def test_themes(page: Any) -> None:
    back = "getComputedStyle(document.body).backgroundColor"
    page.emulate_media(color_scheme="light")
    light = page.evaluate(back)
    page.emulate_media(color_scheme="dark")
    dark = page.evaluate(back)
    assert light != dark
    page.click("#theme")  # light, whatever the system says
    assert page.evaluate(back) == light
    page.click("#theme")
    page.emulate_media(color_scheme="light")
    assert page.evaluate(back) == dark


def test_a_phone_does_not_scroll_the_page_sideways(page: Any) -> None:
    page.set_viewport_size({"width": 360, "height": 740})
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_without_javascript_the_tables_are_there(browser: Any, site: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    opened = context.new_page()
    opened.goto((site / "index.html").as_uri())
    assert opened.locator("#t-overview tbody tr").count() == 2
    assert "0.750" in opened.locator("#t-overview").inner_text()
    context.close()


def test_headings_and_labels_for_screen_readers(page: Any) -> None:
    assert page.evaluate("document.documentElement.lang") == "en"
    unnamed = page.evaluate(
        "[...document.querySelectorAll('input, select')].filter(e => !e.labels.length).length"
    )
    assert unnamed == 0
    assert page.locator("table:not(:has(caption)), th:not([scope])").count() == 0
    levels = page.evaluate("[...document.querySelectorAll('h1,h2,h3')].map(h => +h.tagName[1])")
    assert levels[0] == 1
    assert all(two - one <= 1 for one, two in itertools.pairwise(levels))


def test_missing_sample_files_are_said(browser: Any, site: Path, tmp_path: Path) -> None:
    (tmp_path / "index.html").write_bytes((site / "index.html").read_bytes())
    opened = browser.new_page()
    opened.goto((tmp_path / "index.html").as_uri())
    opened.wait_for_function("document.getElementById('s-said').textContent.includes('not beside')")
    opened.close()


def test_many_models_and_tasks(browser: Any, tmp_path: Path) -> None:
    write_many(tmp_path / "results", models=12, tasks=15, documents=30)
    build([tmp_path / "results"], tmp_path / "site")
    opened = browser.new_page()
    opened.goto((tmp_path / "site" / "index.html").as_uri())
    assert opened.locator("#t-overview tbody tr").count() == 12
    assert opened.locator("#t-overview thead th").count() == 16
    opened.close()


@pytest.mark.parametrize(
    ("metric", "verdicts", "right"),
    [
        ("exact_match", ["wrong", "partly", "right"], 1),
        ("no_query", ["right", "partly", "wrong"], 1),
        ("gain/rouge_l", ["0", "+0.5", "+1"], 2),
    ],
)
def test_verdicts_say_what_a_score_means(
    browser: Any, tmp_path: Path, metric: str, verdicts: list[str], right: int
) -> None:
    """Less can be better, and a difference of 0 is no wrong answer."""
    rows = [
        {"doc": {}, "prompt": f"p{score}", "target": "x", "answer": "y", "score": score}
        for score in (0.0, 0.5, 1.0)
    ]
    file = write_run(tmp_path / "one", "one", "some_task", rows, metric=metric)
    content = json.loads(file.read_text())
    content["higher_is_better"]["some_task"][metric] = metric != "no_query"
    file.write_text(json.dumps(content))
    build([tmp_path / "one"], tmp_path / "site")
    opened = browser.new_page()
    opened.goto((tmp_path / "site" / "index.html").as_uri())
    opened.wait_for_function("document.querySelectorAll('#s-list button').length === 3")
    assert opened.locator("#s-list .verdict").all_inner_texts() == verdicts
    choose(opened, which="A is right")
    assert said(opened) == f"{right} of 3 samples"
    choose(opened, which="A is wrong")
    assert said(opened) == f"{3 - right} of 3 samples"
    opened.close()
