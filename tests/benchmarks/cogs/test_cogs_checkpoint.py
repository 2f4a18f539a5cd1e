"""Models with novel tokens: the new embeddings, and that nothing else changed."""

import filecmp
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from support import families

from lm_eval_ext.benchmarks.cogs.checkpoint import NOISE, load_model, matrices
from lm_eval_ext.benchmarks.cogs.tokenizer_files import NOVEL_TOKENS, OLD_TEXTS, load_tokenizer
from lm_eval_ext.benchmarks.cogs.tokens import add_tokens
from lm_eval_ext.errors import OptionError

pytestmark = pytest.mark.slow

COUNT = len(NOVEL_TOKENS)
TIED = ("byte_bpe", "unigram", "llama_legacy")
UNTIED = ("byte_bpe_files", "unigram_behind", "llama")


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sources")
    for family in (*TIED, *UNTIED):
        families.make(family, folder / family)
    return folder


def _tensors(folder: Path) -> dict[str, Any]:
    return {
        name: tensor
        for file in sorted(folder.glob("*.safetensors"))
        for name, tensor in load_file(file).items()
    }


def _logits(folder: Path) -> list[Any]:
    model, tokenizer = load_model(folder)[0].eval(), load_tokenizer(folder)
    found = []
    for text in OLD_TEXTS:
        ids = torch.tensor([tokenizer.encode(text)])
        extra = {"decoder_input_ids": ids} if model.config.is_encoder_decoder else {}
        with torch.no_grad():
            found.append(model(input_ids=ids, **extra).logits)
    return found


@pytest.mark.parametrize("init", ["random", "average", "unused"])
@pytest.mark.parametrize("family", [*TIED, *UNTIED])
def test_old_tokens_keep_their_embeddings_and_logits(
    sources: Path, tmp_path: Path, family: str, init: str
) -> None:
    source, out = sources / family, tmp_path / "out"
    if init == "unused" and not family.startswith("unigram"):
        with pytest.raises(OptionError, match=r"unused needs 21 rows.*this model has 0 of"):
            add_tokens(source, out, init=init)
        assert not list(tmp_path.iterdir())
        return
    added = add_tokens(source, out, init=init)
    assert added.tied == (family in TIED)
    old, new = _tensors(source), _tensors(out)
    assert old.keys() == new.keys()
    grown = [name for name in old if not old[name].equal(new[name])]
    vocabulary = len(load_tokenizer(source))
    if init == "unused":
        assert not grown  # T5's unused rows lie where the tokens' ids fall
    else:
        assert len(grown) == (1 if added.tied else 2)
        for name in grown:
            assert new[name].dtype == old[name].dtype
            assert len(new[name]) == added.rows[1]
            assert new[name][:vocabulary].equal(old[name][:vocabulary])
            after = max(added.ids) + 1
            assert new[name][after:].equal(old[name][after:])
            # Were two of them the same, the model could not tell them apart.
            assert len(new[name][list(added.ids)].unique(dim=0)) == COUNT
    for before, now in zip(_logits(source), _logits(out), strict=True):
        torch.testing.assert_close(now[..., :vocabulary], before[..., :vocabulary])
        assert now.shape[-1] == added.rows[1]


@pytest.mark.parametrize("family", ["unigram", "byte_bpe"])
def test_the_same_seed_gives_the_same_files(sources: Path, tmp_path: Path, family: str) -> None:
    for init in ("random", "average"):
        runs = [
            add_tokens(sources / family, tmp_path / f"{init}{run}", init=init, seed=seed)
            and tmp_path / f"{init}{run}"
            for run, seed in enumerate((3, 3, 4))
        ]
        names = sorted(path.name for path in runs[0].iterdir())
        assert names == sorted(path.name for path in runs[1].iterdir())
        assert filecmp.cmpfiles(runs[0], runs[1], names, shallow=False) == (names, [], [])
        _, differ, _ = filecmp.cmpfiles(runs[0], runs[2], names, shallow=False)
        assert differ == ["model.safetensors"]


def _rows(model: Any, init: str, count: int, seed: int = 0) -> Any:
    used = range(len(model.get_input_embeddings().weight))
    return [matrix.rows for matrix in matrices(model, init=init, used=used, count=count, seed=seed)]


@pytest.mark.parametrize("family", [*TIED, *UNTIED])
def test_random_rows_are_drawn_as_the_model_draws_its_own(sources: Path, family: str) -> None:
    model, _ = load_model(sources / family)
    config = model.config
    config_std = getattr(config, "initializer_range", None) or config.initializer_factor
    assert config_std == (1.0 if config.model_type == "t5" else 0.02)
    state = torch.random.get_rng_state()
    drawn = _rows(model, "random", 4000)
    assert torch.random.get_rng_state().equal(state)
    for rows in drawn:
        # 128,000 numbers: the standard error of their deviation is 0.2 %.
        assert float(rows.float().std()) == pytest.approx(config_std, rel=0.01)
        assert abs(float(rows.float().mean())) < 0.02 * config_std


@pytest.mark.parametrize("family", ["byte_bpe_files", "unigram_behind"])
def test_average_rows_lie_around_the_mean_with_the_embeddings_covariance(
    sources: Path, family: str
) -> None:
    model, _ = load_model(sources / family)
    inputs = model.get_input_embeddings().weight.detach().double()
    outputs = model.get_output_embeddings().weight.detach().double()
    drawn = _rows(model, "average", 20_000)
    assert len(drawn) == 2
    for matrix, rows in zip((inputs, outputs), drawn, strict=True):
        expected = NOISE * torch.cov(matrix.T, correction=0)
        scale = float(expected.diagonal().mean())
        centred = rows.double() - matrix.mean(0)
        assert float(centred.mean(0).abs().max()) < 5 * (scale / 20_000) ** 0.5 * 2
        found = centred.T @ centred / len(centred)
        assert float((found - expected).abs().max()) < 0.1 * scale


def test_unused_rows_are_copied_to_where_the_ids_fall(sources: Path) -> None:
    model, _ = load_model(sources / "unigram")
    weight = model.get_input_embeddings().weight
    used = set(range(len(weight))) - {5, 7, 9}
    (matrix,) = matrices(model, init="unused", used=used, count=3, seed=0)
    assert matrix.rows.equal(weight[[5, 7, 9]])
    with pytest.raises(OptionError, match=r"needs 4 rows .* has 3 of 130"):
        matrices(model, init="unused", used=used, count=4, seed=0)


def test_every_other_file_is_kept(sources: Path, tmp_path: Path) -> None:
    for family in ("unigram", "byte_bpe"):
        source, out = tmp_path / family, tmp_path / f"{family}_out"
        shutil.copytree(sources / family, source)
        (source / "chat_template.jinja").write_text("{{ messages }}", encoding="utf-8")
        (source / "README.md").write_text("A model.", encoding="utf-8")
        (source / "notes").mkdir()
        (source / "notes" / "run.txt").write_text("1", encoding="utf-8")
        (source / ".cache").mkdir()
        (source / "pytorch_model.bin").write_bytes(b"old weights")
        (source / "README.md").chmod(0o444)
        added = add_tokens(source, out, init="random")
        assert any("pytorch_model.bin left out" in note for note in added.notes)
        changed = {"tokenizer.json", "model.safetensors"}
        if family == "byte_bpe":
            changed.add("config.json")
            old, new = (json.loads((f / "config.json").read_bytes()) for f in (source, out))
            assert new == old | {"vocab_size": added.rows[1]}
            assert list(new) == list(old)
        names = {path.name for path in source.iterdir() if path.is_file()} - {"pytorch_model.bin"}
        assert names == {path.name for path in out.iterdir() if path.is_file()}
        assert {"generation_config.json", "chat_template.jinja", "README.md"} < names - changed
        assert {
            name for name in names if (source / name).read_bytes() != (out / name).read_bytes()
        } == changed
        assert not (out / ".cache").exists()
        assert (out / "notes" / "run.txt").read_text(encoding="utf-8") == "1"


def test_a_model_in_parts_grows_in_the_part_that_has_the_embeddings(
    sources: Path, tmp_path: Path
) -> None:
    source, out = tmp_path / "parts", tmp_path / "out"
    shutil.copytree(sources / "llama", source)
    (source / "model.safetensors").unlink()
    load_model(sources / "llama")[0].save_pretrained(source, max_shard_size="40KB")
    parts = sorted(path.name for path in source.glob("*.safetensors"))
    assert len(parts) > 2
    add_tokens(source, out, init="average")
    same, differ, _ = filecmp.cmpfiles(source, out, parts, shallow=False)
    assert same and differ
    index = json.loads((out / "model.safetensors.index.json").read_bytes())
    tensors = _tensors(out)
    assert index["metadata"]["total_size"] == sum(
        tensor.numel() * tensor.element_size() for tensor in tensors.values()
    )
    assert index["metadata"]["total_parameters"] == sum(t.numel() for t in tensors.values())
    assert index["weight_map"].keys() == tensors.keys()


def test_older_checkpoints_become_safetensors(sources: Path, tmp_path: Path) -> None:
    source, out = tmp_path / "old", tmp_path / "out"
    shutil.copytree(sources / "byte_bpe", source)
    tensors = _tensors(source)
    (source / "model.safetensors").unlink()
    # As GPT-2 was published: names without the model's first part.
    torch.save(
        {name.removeprefix("transformer."): tensor for name, tensor in tensors.items()},
        source / "pytorch_model.bin",
    )
    added = add_tokens(source, out, init="random")
    new = _tensors(out)
    assert new.keys() == tensors.keys()
    assert new["transformer.wte.weight"][: added.rows[0]].equal(tensors["transformer.wte.weight"])
    assert {path.name for path in out.iterdir()} == (
        {path.name for path in source.iterdir()} - {"pytorch_model.bin"} | {"model.safetensors"}
    )


def test_half_precision_stays_as_the_file_has_it(sources: Path, tmp_path: Path) -> None:
    """Transformers loads some of T5's half-precision weights in single precision."""
    source, out = tmp_path / "half", tmp_path / "out"
    shutil.copytree(sources / "unigram", source)
    half = {name: tensor.half() for name, tensor in _tensors(source).items()}
    save_file(half, source / "model.safetensors", metadata={"format": "pt"})
    config = json.loads((source / "config.json").read_bytes()) | {"dtype": "float16"}
    (source / "config.json").write_text(json.dumps(config), encoding="utf-8")
    add_tokens(source, out, init="average")
    assert {tensor.dtype for tensor in _tensors(out).values()} == {torch.float16}


def test_what_is_no_whole_model_is_refused(sources: Path, tmp_path: Path) -> None:
    def refused(change: Any, message: str) -> None:
        source = tmp_path / "model"
        shutil.copytree(sources / "byte_bpe", source)
        change(source)
        with pytest.raises(OptionError, match=message):
            add_tokens(source, tmp_path / "out", init="random")
        shutil.rmtree(source)
        assert not list(tmp_path.iterdir())

    def config(**keys: Any) -> Any:
        def change(source: Path) -> None:
            file = source / "config.json"
            file.write_text(json.dumps(json.loads(file.read_bytes()) | keys), encoding="utf-8")

        return change

    refused(lambda source: (source / "config.json").unlink(), "has no config.json")
    refused(lambda source: (source / "model.safetensors").unlink(), "no model can be loaded")
    refused(
        lambda source: (source / "model.safetensors").write_bytes(b"x"), "no model can be loaded"
    )
    refused(lambda source: (source / "adapter_config.json").write_text("{}"), "is an adapter")
    refused(config(quantization_config={"bits": 4}), "is quantised")
    refused(config(vocab_size=300), "no model can be loaded|do not belong together")


def test_where_the_new_folder_may_lie(
    sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, out = sources / "byte_bpe", tmp_path / "out"
    out.mkdir()
    add_tokens(source, out, init="random")  # an empty folder is taken
    before = sorted(path.name for path in out.iterdir())
    with pytest.raises(OptionError, match="exists; name a folder that is absent or empty"):
        add_tokens(source, out, init="random")
    assert sorted(path.name for path in out.iterdir()) == before
    with pytest.raises(OptionError, match="is inside the model's folder"):
        add_tokens(source, source / "novel", init="random")
    with pytest.raises(OptionError, match="cannot write"):
        add_tokens(source, out / "config.json" / "novel", init="random")
    with pytest.raises(OptionError, match="no initialisation 'mean'; use random, average, unused"):
        add_tokens(source, tmp_path / "other", init="mean")
    for seed in (-1, 2**32):
        with pytest.raises(OptionError, match=f"seed is {seed}; it must be from 0 to 4294967295"):
            add_tokens(source, tmp_path / "other", init="random", seed=seed)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with pytest.raises(OptionError, match=r"^\. is the current folder; name a folder in it"):
        add_tokens(source, Path(), init="random")
