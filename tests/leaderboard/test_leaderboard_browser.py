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


def names(page: Any, table: str = "overview") -> list[str]:
    found: list[str] = page.locator(f"#t-{table} tbody tr:visible th").all_inner_texts()
    return [name[:7] for name in found]


def heading(page: Any, text: str, table: str = "overview") -> Any:
    return page.locator(f"#t-{table} thead th", has_text=text)


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


def test_the_best_stand_first_and_a_click_on_a_heading_sorts(page: Any) -> None:
    assert names(page) == names(page, "matrix") == ["model A", "model B"]
    # A is right on 30 of 40, B on 20: highest first, then lowest first.
    some = heading(page, "some_task")
    some.locator("button").click()
    assert names(page) == ["model A", "model B"]
    assert some.get_attribute("aria-sort") == "descending"
    some.locator("button").click()
    assert names(page) == ["model B", "model A"]
    assert some.get_attribute("aria-sort") == "ascending"
    page.locator("#t-overview thead th").nth(0).locator("button").click()
    assert names(page) == ["model A", "model B"]


def test_missing_values_go_last_whichever_way(page: Any) -> None:
    """B has no result on the other task."""
    for _ in range(2):
        heading(page, "other_task").locator("button").click()
        assert names(page) == ["model A", "model B"]


def test_filters(page: Any) -> None:
    page.fill("#f-name", "MODEL b")
    assert names(page) == names(page, "matrix") == names(page, "models") == ["model B"]
    assert page.locator("#filter-said").inner_text() == "1 of 2 models, 3 of 3 tasks"
    page.uncheck("#filters input[value='other tasks']")
    assert page.locator("#filter-said").inner_text() == "1 of 2 models, 1 of 3 tasks"
    page.fill("#f-name", "")
    for select, option, left in (
        ("#f-family", "Hill", "model A"),
        ("#f-weights", "closed", "model B"),
        ("#f-size", "1B to 10B", "model A"),
    ):
        page.select_option(select, option)
        assert names(page) == [left]
        page.select_option(select, "")
    # B lacks a task, and isn't complete as long as that is shown.
    page.check("#f-complete")
    assert names(page) == ["model A", "model B"]
    page.check("#filters input[value='other tasks']")
    assert names(page) == ["model A"]


def test_a_link_shows_the_same(page: Any, browser: Any) -> None:
    """Filters, columns, sort, the open sample: in the address, and restored from it."""
    page.fill("#f-name", "model")
    page.select_option("#f-weights", "closed")
    page.uncheck("#filters input[value=lieder]")
    page.click("#columns summary")
    page.uncheck("#columns input[value=other_task]")
    heading(page, "some_task").locator("button").click()
    choose(page, task="some_task")
    wait_until_said(page, "40 of 40 samples")
    page.select_option("#s-b", index=2)
    wait_until_said(page, "40 of 40 samples")
    choose(page, which="A is right and B is wrong")
    page.fill("#s-search", "name 1")
    page.locator("#s-list button").nth(1).click()
    page.wait_for_selector("#s-detail mark")
    page.click("nav a[href='#all']")

    def shown(opened: Any) -> list[Any]:
        opened.wait_for_selector("#s-detail mark")
        return [
            opened.input_value("#f-name"), opened.input_value("#f-weights"), names(opened),
            heading(opened, "some_task").get_attribute("aria-sort"), said(opened),
            opened.locator("#t-overview th:visible").all_inner_texts(),
            opened.locator("#s-detail").inner_text(),
            opened.locator("[aria-current=true]").inner_text(),
        ]  # fmt: skip

    first = shown(page)
    assert page.url.partition("#")[2].startswith("all?")
    assert "d10" in first[6] and first[4] == "11 of 40 samples"
    other = browser.new_page(viewport={"width": 1280, "height": 900})
    other.goto(page.url)
    assert shown(other) == first
    assert other.evaluate("document.querySelector('#all').getBoundingClientRect().top") < 100
    # Another link in the same tab, and one without anything.
    page.evaluate("location.hash = '#samples?task=some_task&sample=3'")
    page.wait_for_function("document.querySelector('#s-detail h3')?.textContent.includes('d2')")
    assert names(page) == ["model A", "model B"]
    assert heading(page, "some_task").get_attribute("aria-sort") is None
    other.close()


def test_a_link_to_what_is_not_there_is_no_error(browser: Any, site: Path) -> None:
    opened = browser.new_page()
    problems: list[str] = []
    opened.on("pageerror", lambda error: problems.append(str(error)))
    link = "all?task=gone&a=gone&b=x&sample=999&sort=t-gone.1.d,t-overview.99.a,x&family=y&size=z"
    opened.goto(f"{(site / 'index.html').as_uri()}#{link}")
    wait_until_said(opened, "40 of 40 samples")
    assert names(opened) == ["model A", "model B"]
    assert problems == []
    opened.close()


def test_a_button_copies_the_link(page: Any) -> None:
    page.fill("#f-name", "a")
    page.click("#copy")
    page.wait_for_function("document.querySelector('#copy').textContent.startsWith('Cop')")
    page.wait_for_function("document.querySelector('#copy').textContent !== 'Copy link'")
    page.evaluate(
        "const f = document.createElement('textarea'); f.id = 'paste'; document.body.append(f)"
    )
    page.focus("#paste")
    page.keyboard.press("Control+V")
    assert page.input_value("#paste") == page.url
    assert page.url.endswith("?models=a")


def test_samples_one_after_the_other_with_differences_marked(page: Any) -> None:
    page.evaluate("location.hash = '#samples?task=some_task&show=wrong&sample=31'")
    page.wait_for_selector("#s-detail mark")
    assert page.locator("#s-detail output").inner_text() == "1 of 10"
    # A says "name unknown" where "name 30" is right.
    assert page.locator("#s-detail mark").all_inner_texts() == ["30", "unknown"]
    steps = page.locator("#s-detail .steps button")
    steps.nth(1).click()
    page.wait_for_function("document.querySelector('#s-detail output').innerText === '2 of 10'")
    assert "d31" in page.locator("#s-detail").inner_text()
    assert page.evaluate("document.activeElement.textContent") == "Next"
    assert "sample=32" in page.url
    steps.nth(0).click()
    page.wait_for_function("document.querySelector('#s-detail output').innerText === '1 of 10'")
    assert steps.nth(0).is_disabled()


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
    page.keyboard.press("s")
    page.wait_for_function("document.querySelectorAll('#s-list button').length === 40")
    page.locator("#s-list button").first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    page.wait_for_selector("#s-detail pre")
    assert "d1" in page.locator("#s-detail h3").first.inner_text()
    assert page.evaluate("document.activeElement.id") == "s-detail"
    heading(page, "some_task").locator("button").focus()
    page.keyboard.press("Enter")
    assert heading(page, "some_task").get_attribute("aria-sort") == "descending"
    page.focus("#f-complete")
    page.keyboard.press("Space")
    assert names(page) == ["model A"]


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
    page.evaluate("location.hash = '#samples?task=some_task&b=model A&sample=1'")
    page.evaluate("for (const fold of document.querySelectorAll('details')) fold.open = true")
    page.wait_for_selector("#s-detail pre")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_without_javascript_tables_and_plots_are_there(browser: Any, site: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    opened = context.new_page()
    opened.goto((site / "index.html").as_uri())
    for table in ("matrix", "overview"):
        assert opened.locator(f"#t-{table} tbody tr:visible").count() == 2
        assert "0.750" in opened.locator(f"#t-{table}").inner_text()
    assert opened.locator("figure.picture svg:visible").count() >= 1
    assert not opened.locator(".filters:visible, .tools:visible, button:visible").count()
    context.close()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_serious(page: Any, theme: str) -> None:
    """axe-core's rules for WCAG and good practice, with everything open."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    page.emulate_media(color_scheme=theme)
    page.evaluate("location.hash = '#samples?task=some_task&sample=31'")
    page.wait_for_selector("#s-detail mark")
    page.evaluate("for (const fold of document.querySelectorAll('details')) fold.open = true")
    found = axe.Axe().run(page).response["violations"]
    serious = [one for one in found if one["impact"] in ("serious", "critical")]
    assert [(one["id"], one["nodes"][0]["html"]) for one in serious] == []


def test_headings_and_labels_for_screen_readers(page: Any) -> None:
    assert page.evaluate("document.documentElement.lang") == "en"
    unnamed = page.evaluate(
        "[...document.querySelectorAll('input, select')]"
        ".filter(e => !e.labels.length && !e.ariaLabel).length"
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
    """30 models on 40 tasks: all there, and small enough to be sent."""
    write_many(tmp_path / "results", models=30, tasks=40, documents=8, prompt_length=20)
    page = build([tmp_path / "results"], tmp_path / "site")
    assert page.stat().st_size < 2e6
    opened = browser.new_page()
    opened.goto(page.as_uri())
    assert opened.locator("#t-overview tbody tr").count() == 30
    assert opened.locator("#t-overview thead th").count() == 41
    assert opened.locator("#t-matrix tbody td[data-value]").count() == 30 * 40
    opened.close()


@pytest.mark.parametrize(
    ("metric", "verdicts", "right"),
    [
        ("exact_match", ["wrong", "partly", "right"], 1),
        ("no_query", ["right", "partly", "wrong"], 1),
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
