"""Databases of our own hand, in several styles of naming; how natural the questions are."""

from pathlib import Path

from support.databases import written

HERE = Path(__file__).parent


def built(name: str, folder: Path) -> Path:
    """Write a database to a folder: shop, league, clinic, mess or factory."""
    path = folder / f"{name}.sqlite"
    if name == "factory":
        from support.generated import factory

        return factory.build(path)
    return written(path, (HERE / f"{name}.sql").read_text(encoding="utf-8"))


def lexicon_of(name: str) -> Path | None:
    """Return the lexicon of a database that needs it."""
    return HERE / "clinic.yaml" if name == "clinic" else None
