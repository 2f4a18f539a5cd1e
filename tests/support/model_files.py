"""Models' files, as ``lm-eval-ext run --models`` takes them."""

from pathlib import Path

GOOD = """\
display_name: A model
notes: for a test
model: hf
model_args:
  pretrained: somewhere
apply_chat_template: true
gen_kwargs: {temperature: 0}
batch_size: auto:4
seed: [1, 2, 3, 4]
"""


def write_model_file(folder: Path, text: str, name: str = "m.yaml") -> Path:
    """Write a model's file; return it."""
    file = folder / name
    file.write_text(text)
    return file
