"""Files of figures, and what is refused."""

import re
import sys
from pathlib import Path

import pytest

from lm_eval_ext.errors import OptionError
from lm_eval_ext.plots.figures import Figure, figure_of, write
from lm_eval_ext.plots.theme import LIGHT, css
from lm_eval_ext.results.models import Model

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def figure(models: list[Model]) -> Figure:
    return figure_of("lieder-1", models)


def test_files_have_their_format_and_the_width(models: list[Model], tmp_path: Path) -> None:
    figure = figure_of("conceptual-4", models)  # one panel, which is drawn soonest
    pdf, png, html = (
        figure.save(tmp_path / f"a.{one}").read_bytes() for one in ("pdf", "png", "html")
    )
    (box,) = re.findall(rb"MediaBox ?\[0 0 ([\d.]+) [\d.]+\]", pdf)
    assert abs(float(box) - 936) <= 8
    assert png.startswith(b"\x89PNG")
    assert abs(int.from_bytes(png[16:20], "big") - 2 * 936) <= 16
    assert figure.title.encode() in html
    assert not re.findall(rb"<(?:script|link)[^>]* (?:src|href)=", html), "it needs no network"


def test_an_exported_figure_has_the_key_of_its_lines(figure: Figure) -> None:
    """What a dotted line, a bar and a hollow mark are stands below the title."""
    drawn = re.sub('aria-label="[^"]*"|</?[a-z][^>]*>', "", figure._repr_svg_())
    assert "95 % intervals" in drawn and "Dotted line: chance (0.5)." in drawn
    assert "Hollow marks" not in drawn and not figure.values["published"].any()


def test_an_svg_for_a_page_takes_its_colours(figure: Figure) -> None:
    svg = figure.svg(theme="page")
    used = set(re.findall(r"var\((--[a-z0-9-]+)\)", svg))
    assert {"--plot-ink", "--plot-paper", "--plot-1"} <= used
    assert all(f"{name}:" in css() for name in used)
    assert not re.findall(r"#[0-9a-f]{6}", svg)
    assert 'role="img" aria-label="Singular and plural continuations' in svg
    assert figure.title not in re.sub('aria-label="[^"]*"', "", svg)
    assert "<script" not in svg


def test_the_command_writes_all_or_one(models: list[Model], tmp_path: Path) -> None:
    one = tmp_path / "new" / "one.svg"
    assert list(write(models, ["conceptual-4"], one)) == [one]
    assert LIGHT.paper in one.read_text()
    names = ["conceptual-2", "conceptual-4"]
    assert [path.stem for path in write(models, names, tmp_path / "all")] == names


@pytest.mark.parametrize(
    ("names", "output", "problem"),
    [
        (["lider-1"], "a.svg", "no figure 'lider-1'; did you mean lieder-1"),
        (["cogs-1"], "a.svg", "cogs-1 needs results of cogs_unmodified_gen"),
        (["lieder-1"], "a.gif", "a.gif: use .svg, .pdf, .png, .html, .json"),
        ([], "a.svg", "for one --figure a file"),
        (["lieder-1"], None, "-o takes a folder"),
        (["conceptual-4"], "file/a.svg", "cannot write"),
    ],
)
def test_what_cannot_be_drawn_is_one_line_and_no_file(
    models: list[Model], tmp_path: Path, *, names: list[str], output: str | None, problem: str,
) -> None:  # fmt: skip
    (tmp_path / "file").write_text("in the way")
    path = None if output is None else tmp_path / output
    with pytest.raises(OptionError, match=re.escape(problem)) as raised:
        list(write(models, names, path))
    assert "\n" not in str(raised.value)
    assert [one.name for one in tmp_path.iterdir()] == ["file"]


def test_without_the_extra_one_line_says_what_to_install(
    models: list[Model], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    with pytest.raises(OptionError, match=r"pip install 'lm-eval-ext\[plot\]'"):
        list(write(models, ["lieder-1"], tmp_path / "a.svg"))
    assert not list(tmp_path.iterdir())
