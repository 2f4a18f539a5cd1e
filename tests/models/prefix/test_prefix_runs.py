"""Runs attend as each of their texts would alone, whatever they share and whoever is complete."""

from collections.abc import Sequence

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import scaled_dot_product_attention

from lm_eval_ext.models.prefix import runs
from lm_eval_ext.models.prefix.engine import Layer, NewTokens, Slots
from lm_eval_ext.models.prefix.runs import GrowingText, Run, divide_into_runs
from lm_eval_ext.models.prefix.tree import Leaf, build_tree, lay_out

HEADS = 2
GROUPS = 3
SIZE = 8
STEPS = 6
"""Most generated tokens of a text."""

texts = st.lists(st.integers(0, 1), min_size=1, max_size=9)
prompts = st.lists(texts, min_size=1, max_size=8, unique_by=tuple)


def alone(
    queries: torch.Tensor, states: Sequence[torch.Tensor], window: int | None
) -> torch.Tensor:
    """Attend from a text's last token (heads x queries for each x size) to the text."""
    begin = 0 if window is None else max(0, states[0].shape[1] - window)
    keys, values = (state[:, begin:] for state in states)
    return scaled_dot_product_attention(queries[None], keys[None], values[None])[0]


@pytest.mark.parametrize("max_scores", [1, 1 << 24], ids=["text by text", "all together"])
@pytest.mark.parametrize("shared", [0, 40], ids=["nothing in common", "a long beginning"])
@pytest.mark.parametrize("window", [None, 1, 3, 8, 45])
@settings(max_examples=40)
@given(prompts, st.data())
def test_a_run_attends_as_its_texts_alone(
    max_scores: int,
    shared: int,
    window: int | None,
    tokens: list[list[int]],
    data: st.DataObject,
) -> None:
    """All steps agree with a plain attention over each text's keys and values."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "MAX_SCORES", max_scores)
        check_run(tokens, shared, window, data)


def check_run(
    tokens: list[list[int]], shared: int, window: int | None, data: st.DataObject
) -> None:
    """Let the texts of all runs grow, and compare each step with :func:`alone`."""
    leaves = build_tree((number, [7] * shared + text, 0) for number, text in enumerate(tokens))
    pack = lay_out(leaves)
    generator = torch.Generator().manual_seed(len(pack.tokens))

    def random(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator)

    slots = Slots(len(pack.tokens))
    prompt_states = [random(HEADS, slots.size, SIZE) for _ in range(2)]
    slots.write(0, slice(0, slots.size), *prompt_states)
    states_of: dict[Leaf, list[torch.Tensor]] = {}
    for leaf, path in zip(leaves, pack.paths, strict=True):
        states_of[leaf] = [state[:, path] for state in prompt_states]
    layer = Layer(number=0, scaling=None, window=window, is_last=False)
    for layout in divide_into_runs(pack.paths, STEPS, 10**6):
        chosen = slice(layout.first, layout.end)
        run_texts = [GrowingText(leaf, [0]) for leaf in leaves[chosen]]
        run = Run(layout, run_texts, pack.paths[chosen], slots)
        while run.texts and len(run.texts[0].tokens) < STEPS:
            count = len(run.texts)
            # Tokens of another run come before and after it in the same pass.
            new_states = [random(HEADS, count + 3, SIZE) for _ in range(2)]
            queries = random(HEADS, GROUPS, count + 3, SIZE)
            output = torch.full((count + 3, HEADS, GROUPS, SIZE), torch.nan)
            run.step(2).attend(layer, NewTokens(queries, new_states[0], new_states[1], output))
            for number, text in enumerate(run.texts):
                states = states_of[text.leaf]
                for kind in range(2):
                    new_state = new_states[kind][:, 2 + number, None]
                    states[kind] = torch.cat([states[kind], new_state], dim=1)
                expected = alone(queries[:, :, 2 + number], states, window)
                torch.testing.assert_close(output[2 + number], expected)
                text.tokens.append(0)
            of_other_runs = torch.cat([output[:2], output[2 + count :]])
            assert bool(of_other_runs.isnan().all())
            run.keep(data.draw(st.lists(st.booleans(), min_size=count, max_size=count)))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_scores_are_as_exact_as_those_of_torch(dtype: torch.dtype) -> None:
    """A short dtype rounds keys, values and the result, but no score."""
    generator = torch.Generator().manual_seed(0)
    leaves = build_tree((number, [7] * 40 + [number], 0) for number in range(6))
    pack = lay_out(leaves)

    def random(*shape: int) -> torch.Tensor:
        return (3 * torch.randn(*shape, generator=generator)).to(dtype)

    slots = Slots(len(pack.tokens))
    prompt_states = [random(HEADS, slots.size, SIZE) for _ in range(2)]
    slots.write(0, slice(0, slots.size), *prompt_states)
    (layout,) = divide_into_runs(pack.paths, STEPS, 10**6)
    run = Run(layout, [GrowingText(leaf, [0]) for leaf in leaves], pack.paths, slots)
    new_states = [random(HEADS, len(leaves), SIZE) for _ in range(2)]
    queries = random(HEADS, GROUPS, len(leaves), SIZE)
    output = torch.empty((len(leaves), HEADS, GROUPS, SIZE), dtype=dtype)
    layer = Layer(number=0, scaling=None, window=None, is_last=False)
    run.step(0).attend(layer, NewTokens(queries, new_states[0], new_states[1], output))
    errors, errors_of_torch = [], []
    for number, path in enumerate(pack.paths):
        states = []
        for prompt_state, new_state in zip(prompt_states, new_states, strict=True):
            states.append(torch.cat([prompt_state[:, path], new_state[:, number, None]], dim=1))
        text_queries = queries[:, :, number]
        exact = alone(text_queries.double(), [state.double() for state in states], None)
        errors.append((output[number] - exact).abs().max())
        errors_of_torch.append((alone(text_queries, states, None) - exact).abs().max())
    assert max(errors) <= 2 * max(errors_of_torch) + 1e-12
