"""Draws docs/architecture.svg from the real imports of the package.

    python docs/figure.py            # writes the figure
    python docs/figure.py --check    # exits with status 1 if the file is out of date

There is a box per package (a top-level module or subpackage) with its files and lines, in the
layers of the import contract in pyproject.toml. Arrows are imports between packages, without those
that a chain of other imports implies (the transitive reduction).
"""

# ruff: noqa: T201 (a script that prints)

import argparse
import sys
from dataclasses import dataclass, field
from html import escape
from itertools import pairwise
from pathlib import Path
from statistics import fmean

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
PACKAGE = "lm_eval_ext"
PARTED = "benchmarks"
"""The package whose subpackages have boxes of their own inside its box."""

FIGURE = ROOT / "docs" / "architecture.svg"

BOX, BOX_HEIGHT, GAP, ROW, MARGIN = 128, 46, 20, 92, 24
"""Sizes in pixels: a box, the space between boxes, the distance of rows, the border."""

SWEEPS = 200
"""Passes over the rows that look for an order with few crossings, and for even places."""

PULLS = (8, 2, 1)
"""How strongly neighbours in two rows pull each other, by how many of them are packages."""

STYLE = """
.card { fill: #ffffff; stroke: #d0d7e2; }
.box { fill: #eef3fa; stroke: #5b6b82; }
.parted { fill: #e6f3e8; stroke: #4f7a57; }
.part { fill: #ffffff; stroke: #4f7a57; }
.import { fill: none; stroke: #6b7a90; stroke-width: 1.3; }
.head { fill: #6b7a90; }
text { font-family: system-ui, sans-serif; text-anchor: middle; fill: #1c2733; }
.name { font-size: 14px; font-weight: 600; }
.size { font-size: 11px; }
.note { font-size: 12px; text-anchor: start; }
"""


@dataclass
class Node:
    """A package in its row, or (without a name) the place where arrows to a package pass a row."""

    name: str
    target: str
    width: float
    x: float = 0.0
    above: list["Node"] = field(default_factory=list)
    below: list["Node"] = field(default_factory=list)


def packages_and_imports() -> tuple[list[str], set[tuple[str, str]]]:
    """The packages, and which imports which."""
    import grimp

    # The start-up file has imported the installed package, which need not be this one.
    for name in [name for name in sys.modules if name.partition(".")[0] == PACKAGE]:
        del sys.modules[name]
    graph = grimp.build_graph(PACKAGE, cache_dir=None)
    packages = sorted(name.partition(".")[2] for name in graph.find_children(PACKAGE))
    imports = set()
    for module in graph.modules:
        for imported in graph.find_modules_directly_imported_by(module):
            one, two = (name.split(".")[1:2] for name in (module, imported))
            if one and two and one != two:
                imports.add((one[0], two[0]))
    return packages, imports


def reduced(imports: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """Imports without those that a chain of others implies."""

    def reachable(package: str) -> set[str]:
        found = {two for one, two in imports if one == package}
        return found.union(*map(reachable, found))

    return {
        (one, two)
        for one, two in imports
        if not any(two in reachable(between) for first, between in imports if first == one)
    }


def layers(packages: list[str], imports: set[tuple[str, str]]) -> list[list[str]]:
    """The packages by layer, from the top; those that the contract leaves out go to an end."""
    try:
        import tomllib
    except ModuleNotFoundError:  # Python 3.10, where import-linter brings it
        import tomli as tomllib

    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    (layered,) = (one["layers"] for one in contracts if one["type"] == "layers")
    found = [[name.strip().partition(".")[2] for name in row.split("|")] for row in layered]
    left = [package for package in packages if not any(package in row for row in found)]
    importing = {one for one, _ in imports}
    found[0] += [package for package in left if package in importing]
    found[-1] += [package for package in left if package not in importing]
    return found


def placed(rows: list[list[str]], imports: set[tuple[str, str]]) -> list[list[Node]]:
    """The nodes of each row, in an order with few crossings and with their places."""
    wide = len(parts()) * (BOX + GAP / 2) + GAP / 2
    nodes = [
        [Node(package, package, wide if package == PARTED else BOX) for package in row]
        for row in rows
    ]
    row_of = {package: number for number, row in enumerate(rows) for package in row}
    found = {(node.target, row_of[node.name]): node for row in nodes for node in row}
    for one, two in sorted(imports):
        upper = found[one, row_of[one]]
        for number in range(row_of[one] + 1, row_of[two] + 1):
            if (two, number) not in found:  # arrows to one package share their way
                found[two, number] = Node("", two, 0)
                nodes[number].append(found[two, number])
            lower = found[two, number]
            if lower not in upper.below:
                upper.below.append(lower)
                lower.above.append(upper)
            upper = lower
    order(nodes)
    for sweep in range(SWEEPS):
        for row in nodes if sweep % 2 else nodes[::-1]:
            spread(row)
    return nodes


def order(nodes: list[list[Node]]) -> None:
    """Orders each row by the mean place of what its nodes are connected to."""
    best: tuple[int, list[list[Node]]] = (crossings(nodes), [list(row) for row in nodes])
    for sweep in range(SWEEPS):
        downwards = sweep % 2 == 0
        for row in nodes if downwards else nodes[::-1]:
            places = {id(node): place for one in nodes for place, node in enumerate(one)}
            means = {}
            for node in row:
                beside = node.above if downwards else node.below
                means[id(node)] = fmean(places[id(one)] for one in beside or [node])
            row.sort(key=lambda node: means[id(node)])
        if (count := crossings(nodes)) < best[0]:
            best = (count, [list(row) for row in nodes])
    for row, ordered in zip(nodes, best[1], strict=True):
        row[:] = ordered


def crossings(nodes: list[list[Node]]) -> int:
    """How many pairs of arrows cross."""
    count = 0
    for upper, lower in pairwise(nodes):
        places = {id(node): place for place, node in enumerate(lower)}
        ends = [sorted(places[id(one)] for one in node.below) for node in upper]
        flat = [(start, end) for start, row in enumerate(ends) for end in row]
        count += sum(a < c and b > d for a, b in flat for c, d in flat)
    return count


def spread(row: list[Node]) -> None:
    """Moves a row's nodes towards what they are connected to, as near as their widths allow.

    The nearest places in order, by pooling those that would overlap.
    """
    offsets = [0.0]
    for one, two in pairwise(row):
        offsets.append(offsets[-1] + (one.width + two.width) / 2 + GAP)
    blocks: list[list[float]] = []
    for node, offset in zip(row, offsets, strict=True):
        beside = node.above + node.below
        # Passing arrows pull each other most, so that long ways are straight.
        pulls = [PULLS[bool(one.name) + bool(node.name)] for one in beside]
        wished = fmean([one.x for one in beside], pulls) if beside else node.x
        blocks.append([wished - offset])
        while len(blocks) > 1 and fmean(blocks[-2]) > fmean(blocks[-1]):
            blocks[-2:] = [blocks[-2] + blocks[-1]]
    bases = [fmean(block) for block in blocks for _ in block]
    for node, base, offset in zip(row, bases, offsets, strict=True):
        node.x = base + offset


def parts() -> list[str]:
    """The subpackages of the package that shows them."""
    folder = ROOT / PACKAGE / PARTED
    return sorted(one.name for one in folder.iterdir() if (one / "__init__.py").is_file())


def size(*names: str) -> str:
    """The files and lines of Python of a package.

    Lines have two digits that count, or the figure would be out of date after every change.
    """
    place = ROOT.joinpath(PACKAGE, *names)
    files = sorted(place.rglob("*.py")) if place.is_dir() else [place.with_suffix(".py")]
    lines = sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files)
    lines = round(lines, 2 - len(str(lines)))
    return f"{lines:,} lines" if len(files) == 1 else f"{len(files)} files, {lines:,} lines"


def box(x: float, y: float, width: float, kind: str, names: tuple[str, ...]) -> str:
    """A package's box with its name and size; x is its middle, y its upper end."""
    return (
        f'<rect class="{kind}" x="{x - width / 2:.1f}" y="{y:.1f}" width="{width:.1f}" '
        f'height="{BOX_HEIGHT}" rx="6"/>'
        f'<text class="name" x="{x:.1f}" y="{y + 20:.1f}">{escape(names[-1])}</text>'
        f'<text class="size" x="{x:.1f}" y="{y + 36:.1f}">{escape(size(*names))}</text>'
    )


def draw() -> str:
    """The figure as SVG; the same for the same code."""
    packages, imports = packages_and_imports()
    imports = reduced(imports)
    nodes = placed(layers(packages, imports), imports)
    left = min(node.x - node.width / 2 for row in nodes for node in row) - MARGIN
    tops, heights = [], []
    y = float(MARGIN)
    for row in nodes:
        for node in row:
            node.x -= left
        tops.append(y)
        heights.append(BOX_HEIGHT * 2 if any(node.name == PARTED for node in row) else BOX_HEIGHT)
        y += heights[-1] + ROW - BOX_HEIGHT
    width = max(node.x + node.width / 2 for row in nodes for node in row) + MARGIN
    height = tops[-1] + heights[-1] + MARGIN
    arrows, boxes = [], []
    for number, row in enumerate(nodes):
        top = tops[number]
        for node in row:
            bottom = top + heights[number]
            if node.name == PARTED:
                boxes.append(parted(node, top, heights[number]))
            elif node.name:
                top_of_box = top + (heights[number] - BOX_HEIGHT) / 2
                bottom = top_of_box + BOX_HEIGHT
                boxes.append(box(node.x, top_of_box, node.width, "box", (node.name,)))
            else:
                arrows.append(f'<path class="import" d="M{node.x:.1f} {top:.1f}V{bottom:.1f}"/>')
            for lower in node.below:
                end = tops[number + 1]
                if lower.name and lower.name != PARTED:
                    end += (heights[number + 1] - BOX_HEIGHT) / 2
                middle = (bottom + end) / 2
                head = ' marker-end="url(#head)"' if lower.name else ""
                arrows.append(
                    f'<path class="import" d="M{node.x:.1f} {bottom:.1f}C{node.x:.1f} '
                    f'{middle:.1f} {lower.x:.1f} {middle:.1f} {lower.x:.1f} {end:.1f}"{head}/>'
                )
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
            f'width="{width:.0f}" height="{height:.0f}" role="img">',
            f"<title>The packages of {PACKAGE} and their imports</title>",
            f"<style>{STYLE}</style>",
            '<defs><marker id="head" viewBox="0 0 8 8" refX="7.5" refY="4" markerWidth="8" '
            'markerHeight="8" markerUnits="userSpaceOnUse" orient="auto">'
            '<path class="head" d="M0 0.5L8 4L0 7.5z"/></marker></defs>',
            f'<rect class="card" x="0.5" y="0.5" width="{width - 1:.0f}" '
            f'height="{height - 1:.0f}" rx="10"/>',
            *arrows,
            *boxes,
            f'<text class="note" x="{MARGIN}" y="{height - MARGIN - 16:.0f}">Arrows are imports'
            "</text>"
            f'<text class="note" x="{MARGIN}" y="{height - MARGIN:.0f}">(without those that a '
            "chain of others implies).</text>",
            "</svg>",
            "",
        ]
    )


def parted(node: Node, top: float, height: float) -> str:
    """The box of a package with its subpackages' boxes inside."""
    start = node.x - node.width / 2
    drawn = (
        f'<rect class="parted" x="{start:.1f}" y="{top:.1f}" width="{node.width:.1f}" '
        f'height="{height}" rx="6"/><text class="name" x="{node.x:.1f}" y="{top + 24:.1f}">'
        f"{escape(node.name)}</text>"
    )
    for place, part in enumerate(parts()):
        x = start + GAP / 2 + BOX / 2 + place * (BOX + GAP / 2)
        drawn += box(x, top + height - BOX_HEIGHT - GAP / 2, BOX, "part", (PARTED, part))
    return drawn


def main() -> None:
    """Writes or checks the figure."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="only say whether it is up to date")
    wanted = draw()
    if parser.parse_args().check:
        if not FIGURE.is_file() or FIGURE.read_text(encoding="utf-8") != wanted:
            sys.exit(f"{FIGURE.relative_to(ROOT)} is out of date; run python docs/figure.py")
        return
    FIGURE.write_text(wanted, encoding="utf-8")
    print(FIGURE.relative_to(ROOT))


if __name__ == "__main__":
    main()
