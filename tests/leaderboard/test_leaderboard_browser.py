"""The page in a real browser: the ways that a person takes through it, and hostile text."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.results_files import AnsweredRow, answered_rows, write_run

from lm_eval_ext.leaderboard.site import build

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

pytestmark = [pytest.mark.slow, pytest.mark.e2e, pytest.mark.xdist_group("browser")]

A = "model A"
SCRIPT = "<script>window.hurt = 1</script>"
HEBREW = "מה שלום הכלב"
CHINESE = "红烧牛肉面"
HOSTILE = SCRIPT + "<img src=x onerror='window.hurt = 2'></script>"


def rows(right: set[int]) -> list[AnsweredRow]:
    """Return 40 samples; the answers to the first three are odd, whatever their score."""
    odd_answers = {0: HOSTILE, 1: HEBREW, 2: CHINESE}
    samples: list[AnsweredRow] = []
    for number in range(40):
        answer = f"name {number}" if number in right else "name unknown"
        prompt = f"What is the name of number {number}? "
        samples.append(
            {
                "doc": {"id": f"d{number}"},
                "prompt": prompt + HOSTILE if number == 3 else prompt,
                "target": f"name {number}",
                "answer": odd_answers.get(number, answer),
                "score": float(number in right),
            }
        )
    return samples


FACETS = {
    "metric": "direct", "requirement": "existence", "family": "f",
    "comparison": "pos_neg_s>neg_neg_s",
}  # fmt: skip
ABOUT = f"family: Hill\nsize: 7B\nlicence: {HOSTILE!r}\ndate: 2025-03-04\n"


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A is right on 0 to 29, B on 20 to 39; B lacks a task and says other things; six more."""
    folder = tmp_path_factory.mktemp("results")
    write_run(folder / "a" / "1", A, "some_task", rows(set(range(30))))
    write_run(folder / "b" / "1", f"model B {HOSTILE}", "some_task", rows(set(range(20, 40))))
    write_run(folder / "a" / "2", A, "other_task", rows(set(range(10))), metric="acc")
    for name, model, right in (("a", A, 30), ("b", f"model B {HOSTILE}", 5)):
        scored = [{**row, "facets": FACETS} for row in answered_rows(40, right)]
        write_run(folder / name / "3", model, "lieder_mini", scored, metric="direct")
        (folder / name / "model.yaml").write_text(ABOUT)
    for number in range(6):  # with eight models, one can look for a name
        write_run(folder / f"c{number}", f"other {number}", "some_task", rows(set(range(number))))
    return folder


@pytest.fixture(scope="module")
def site(results: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page's folder."""
    folder = tmp_path_factory.mktemp("site")
    build([results], folder, title=f"Models {HOSTILE}")
    return folder


@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    """A real Chromium without a window; while it is open, no other test can start an event loop."""
    from playwright.sync_api import sync_playwright

    names = ("chromium", "chromium-browser", "google-chrome")
    executables = [path for path in map(shutil.which, names) if path]
    with sync_playwright() as playwright:
        downloaded = playwright.chromium.executable_path
        if Path(downloaded).is_file():
            executables.append(downloaded)
        if not executables:
            pytest.skip("no Chromium on this machine: CONTRIBUTING.md says how to install one")
        chromium = playwright.chromium.launch(executable_path=executables[0], args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture
def page(browser: "Browser", site: Path) -> Iterator["Page"]:
    """The page, opened from the disk; the test fails if its console says anything."""
    opened = browser.new_page(viewport={"width": 1280, "height": 900})
    problems: list[str] = []
    opened.on("console", lambda message: problems.append(message.text))
    opened.on("pageerror", lambda error: problems.append(str(error)))
    opened.goto((site / "index.html").as_uri())
    yield opened
    assert problems == []
    opened.close()


def exact_match_of_a(page: "Page") -> "Locator":
    """Return the overview's cell of model A's exact match."""
    column = page.evaluate(
        "[...document.querySelectorAll('#t-overview thead th')]"
        ".findIndex((head) => head.dataset.metric === 'exact_match')"
    )
    return page.locator("#t-overview tbody tr", has_text=A).locator("> *").nth(column)


def opened(page: "Page", text: str) -> str:
    """Wait until the open sample has this text; return all its text."""
    page.wait_for_function(
        "(text) => document.querySelector('#s-detail')?.innerText.includes(text)", arg=text
    )
    sample_text: str = page.locator("#s-detail").inner_text()
    return sample_text


def models(page: "Page") -> list[str]:
    names: list[str] = page.locator("#t-overview tbody tr:visible th bdi").all_inner_texts()
    return [name[:7] for name in names]


def test_a_number_leads_to_its_first_wrong_sample_and_back(page: "Page") -> None:
    number = exact_match_of_a(page).locator("a")
    value = number.inner_text()
    number.click()
    # A is right on 0 to 29, but answers 0, 1 and 2 are odd: the score alone counts.
    shown = opened(page, "d30")
    assert "name unknown" in shown
    assert "exact_match: 0" in shown
    assert "1 of 10" in shown
    assert page.input_value("#s-a") == A
    assert page.input_value("#s-show") == "wrong"
    assert page.locator("#s-detail mark").all_inner_texts() == ["unknown"]
    page.get_by_role("button", name="Next").click()
    assert "2 of 10" in opened(page, "d31")
    assert page.evaluate("document.activeElement.textContent") == "Next"
    page.get_by_role("link", name="Back to the number").click()
    page.wait_for_selector("#overview.open td.found")
    assert page.locator("td.found a").inner_text() == value
    assert page.evaluate("document.activeElement.textContent") == value


def test_filters_and_choices_are_in_the_address(page: "Page", browser: "Browser") -> None:
    assert models(page)[:2] == ["model A", "model B"], "those with most benchmarks first"
    page.fill("#find", "OTHER")
    assert set(models(page)) == {f"other {number}" for number in range(6)}
    heading = page.locator("#t-overview thead th[data-metric=exact_match]").last
    heading.click()
    page.wait_for_selector("#t-overview thead th[data-metric=exact_match][aria-sort=descending]")
    assert models(page)[0] == "other 5"
    assert heading.get_attribute("aria-sort") == "descending"
    page.click("nav a[href='#samples']")
    page.select_option("#s-task", "some_task")
    opened(page, "d0")
    page.select_option("#s-b", index=2)
    page.select_option("#s-show", "a")
    page.wait_for_function("document.querySelector('#s-said').innerText === '20 of 40 samples'")
    page.fill("#s-search", "NUMBER 15")
    page.wait_for_function("document.querySelector('#s-said').innerText === '1 of 40 samples'")
    shown = opened(page, "d15")
    visitor = browser.new_page()
    visitor.goto(page.url)
    assert opened(visitor, "d15") == shown
    assert visitor.input_value("#s-b").startswith("model B")
    assert visitor.input_value("#s-search") == "NUMBER 15"
    visitor.click("nav a[href='#overview']")
    visitor.wait_for_selector("#t-overview tbody tr", state="visible")
    assert models(visitor)[0] == "other 5"
    assert len(models(visitor)) == 6
    visitor.goto(
        f"{page.url.partition('#')[0]}#samples?task=gone&a=gone&score=x&sample=999&sort=x 9 y"
    )
    visitor.wait_for_function("document.querySelector('#s-said').innerText.includes('40 of 40')")
    visitor.close()


def test_on_a_phone_a_model_is_a_card_and_a_number_opens_its_sample(page: "Page") -> None:
    page.set_viewport_size({"width": 400, "height": 800})
    number = exact_match_of_a(page)
    assert number.evaluate("(td) => getComputedStyle(td, '::before').content").startswith('"')
    number.locator("a").click()
    opened(page, "d30")
    assert not page.locator("#s-list").is_visible()
    page.get_by_role("button", name="All samples").click()
    assert page.locator("#s-list").is_visible()
    page.locator("#s-list button").nth(3).click()
    assert "4 of 10" in opened(page, "d33")
    assert not page.locator("#s-list").is_visible()


def test_the_keyboard_alone_leads_to_a_sample(page: "Page") -> None:
    def focused() -> str:
        text: str = page.evaluate("document.activeElement.textContent.trim()")
        return text

    page.keyboard.press("Tab")
    assert focused() == "Skip to the tables"
    for _ in range(40):
        if focused() == "0.750":
            break
        page.keyboard.press("Tab")
    assert focused() == "0.750"
    page.keyboard.press("Enter")
    opened(page, "1 of 10")
    page.locator("#s-list [aria-current]").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    opened(page, "2 of 10")
    assert page.evaluate("document.activeElement.id") == "s-detail"


def test_without_javascript_tables_and_figures_are_there(browser: "Browser", site: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    plain = context.new_page()
    plain.goto((site / "index.html").as_uri())
    assert plain.locator("#t-overview tbody tr:visible").count() == 8
    assert "0.750" in plain.locator("#t-overview").inner_text()
    assert plain.locator("#t-task-lieder_mini tbody tr:visible").count() >= 1
    assert plain.locator("#lieder figure svg:visible").count() >= 1
    assert not plain.locator("form:visible, button:visible, select:visible").count()
    context.close()


def test_text_of_models_stays_text(page: "Page") -> None:
    page.evaluate("location.hash = 'samples?task=some_task&show=&sample=1'")
    for number, text in ((1, SCRIPT), (2, HEBREW), (3, CHINESE), (4, SCRIPT)):
        page.evaluate("(n) => { location.hash = `samples?task=some_task&sample=${n}` }", number)
        opened(page, f"Sample d{number - 1}")
        page.evaluate("document.querySelector('#s-detail details').open = true")
        assert text in page.locator("#s-detail").inner_text()
    assert page.evaluate("window.hurt") is None
    assert page.locator("#s-detail script, #s-detail img, td img, th img").count() == 0
    assert SCRIPT in page.title()


@pytest.mark.parametrize(("theme", "width"), [("light", 1280), ("dark", 400)])
def test_every_tab_fits_and_axe_finds_nothing_serious(page: "Page", theme: str, width: int) -> None:
    """On a desk a tab is one screen; axe-core's rules for WCAG and good practice."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    page.evaluate(axe.axe_script)  # axe.run() would do so for each tab
    page.emulate_media(color_scheme=theme)
    page.set_viewport_size({"width": width, "height": 900})
    names = page.locator("nav a").evaluate_all("links => links.map((a) => a.hash.slice(1))")
    for tab in (*names, "samples?task=some_task&sample=31"):
        page.evaluate("(tab) => { location.hash = tab }", tab)
        page.wait_for_selector(f"#{tab.partition('?')[0]}.open")
        if "?" in tab:
            opened(page, "d30")
        assert page.evaluate("document.documentElement.scrollWidth") <= width, tab
        tall = page.evaluate("document.documentElement.scrollHeight")
        assert tall <= 900 or theme == "dark", tab
        closed = page.locator("details:visible").element_handles()
        for details in closed:
            details.evaluate("(details) => { details.open = true }")
        violations = page.evaluate("axe.run({resultTypes: ['violations']})")["violations"]
        serious = [
            (violation["id"], violation["nodes"][0]["html"])
            for violation in violations
            if violation["impact"] in ("serious", "critical")
        ]
        assert serious == [], tab
        for details in closed:
            details.evaluate("(details) => { details.open = false }")
