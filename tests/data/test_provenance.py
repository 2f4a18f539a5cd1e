"""Provenance of documents that come from several sources."""

import hashlib
from dataclasses import replace

import pytest
from support.file_server import MANY_NAMES

from lm_eval_ext.data import require_all
from lm_eval_ext.harness.provenance import NOTHING, Provenance, describe_sources


def signed(provenance: Provenance) -> dict[str, str]:
    """Return what a signature shows."""
    return {
        "source": provenance.source,
        "revision": provenance.revision,
        "sha256": provenance.sha256,
    }


@pytest.mark.usefixtures("server")
def test_sources_and_revisions_are_joined() -> None:
    """A signature names every source with its revision, and one checksum over all of them."""
    many, toy = require_all("many", MANY_NAMES[:3]), require_all("toy")
    revision = "ab" * 20
    toy = replace(toy, files=tuple(replace(file, revision=revision) for file in toy.files))
    joined = signed(describe_sources([many, toy]))
    digests = "".join(sorted((many.sha256, toy.sha256)))
    assert joined == {
        "source": "many+toy",
        "revision": f"{many.files[0].revision}+ababababa",
        "sha256": hashlib.sha256(digests.encode()).hexdigest(),
    }
    swapped = signed(describe_sources([toy, many]))
    assert swapped["sha256"] == joined["sha256"], "the order of sources says nothing"
    assert signed(describe_sources([many]).joined(describe_sources([toy]))) == joined
    fewer = signed(describe_sources([many, require_all("toy", ["beta"])]))
    assert fewer["sha256"] != joined["sha256"]


@pytest.mark.usefixtures("server")
def test_a_single_source_keeps_its_revision_and_checksum() -> None:
    """Nothing is cut or hashed again where there is nothing to join."""
    of_user = describe_sources([], {"questions": "a" * 64})
    assert signed(of_user) == {"source": "own questions", "revision": "own", "sha256": "a" * 64}
    toy = require_all("toy")
    only_toy = describe_sources([toy])
    assert signed(only_toy) == {
        "source": "toy",
        "revision": toy.files[0].revision,
        "sha256": toy.sha256,
    }
    assert only_toy.joined(NOTHING) == only_toy
