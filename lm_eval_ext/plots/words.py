"""Figures in words: alternative texts with their numbers, and captions."""

from collections.abc import Sequence

from lm_eval_ext.cards import Card
from lm_eval_ext.plots.content import Content
from lm_eval_ext.plots.declared import Declared
from lm_eval_ext.plots.points import DAGGER, Place, Point

MOST_NAMED = 4
"""Values that are named in a place; of more, only the highest and the lowest."""

_KINDS = {"dots": "Dot plot", "arrows": "Arrow plot", "curve": "Line chart"}


def alt(content: Content) -> str:
    """The alternative text: title, kind, and for each place its values."""
    figure = content.declared
    places: dict[Place, list[Point]] = {}
    for point in content.points:
        places.setdefault(point.place, []).append(point)
    own = {point.model for point in content.points if not point.published}
    models = f"{len(own)} model{'s' if len(own) > 1 else ''}"
    told = [f"{_KINDS[figure.kind]} of {models}: {figure.title} ({figure.axis})."]
    for place, there in places.items():
        heading = ", ".join(part for part in place if part)
        said = _values(figure, [one for one in there if not one.published])
        published = _values(figure, [one for one in there if one.published])
        both = [said] * bool(said) + [f"published: {published}"] * bool(published)
        told.append(f"{heading}: {'; '.join(both)}." if heading else f"{'; '.join(both)}.")
    if content.chance is not None:
        told.append(f"Chance is {content.chance:g}.")
    return " ".join(told)


def _values(figure: Declared, points: Sequence[Point]) -> str:
    ranked = sorted(points, key=lambda point: point.value, reverse=not figure.lower)
    if len(ranked) <= MOST_NAMED:
        return ", ".join(_value(figure, point) for point in ranked)
    return f"from {_value(figure, ranked[0])} to {_value(figure, ranked[-1])}"


def _value(figure: Declared, point: Point) -> str:
    text = f"{point.model} {number(figure, point.value)}"
    if point.low is not None and point.high is not None:
        text += f" [{number(figure, point.low)}, {number(figure, point.high)}]"
    return text


def number(figure: Declared, value: float) -> str:
    """With one decimal for percentages, else three."""
    return f"{value:.1f}" if figure.percent else f"{value:.3f}"


def caption(content: Content, card: Card) -> str:
    """What it is in the paper, and what its marks mean."""
    figure, points = content.declared, content.points
    told = [f"{figure.title}."]
    if figure.paper:
        told.append(f"As {figure.paper} of {card.paper.authors} ({card.paper.venue}).")
    if any(point.low is not None for point in points):
        told.append(f"Bars: 95 % intervals, clustered by {card.cluster.unit}.")
    if figure.kind == "arrows":
        first, second = figure.series
        told.append(f"Arrows lead from {first} to {second}.")
    if any(point.published and point.model != figure.line for point in points):
        told.append("Hollow marks: published values.")
    if any(point.model == figure.line for point in points):
        told.append(f"Dashed line: {figure.line}.")
    if content.chance is not None:
        told.append(f"Dotted line: chance ({content.chance:g}).")
    if content.joins:
        told.append(
            "Lines at the right join models that cannot be told apart (5 % level, Holm's method)."
            if content.joined()
            else "Too many groups of models cannot be told apart to be joined."
        )
    if any(point.model.endswith(DAGGER) for point in points):
        told.append(f"{DAGGER}: measured differently from most (see signatures).")
    return " ".join(told)
