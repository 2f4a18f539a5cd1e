"""Write a model of the bench as GGUF in float32: ``python bench/gguf.py LLAMA_CPP FOLDER``.

Needs llama.cpp's sources, and a Python with gguf, sentencepiece, torch and transformers.
"""

import runpy
import sys
from typing import Any

sources, folder = sys.argv[1:]
sys.path[:0] = [sources, f"{sources}/gguf-py"]
base = __import__("conversion.base").base
known_name = base.TextModel.get_vocab_base_pre


def tokenizer_name(model: Any, tokenizer: Any) -> str:
    """Return how a tokenizer splits words; that of the bench, as GPT-2's."""
    try:
        name: str = known_name(model, tokenizer)
    except NotImplementedError:
        return "gpt-2"
    return name


# It knows tokenizers by a digest of what they make of a text.
base.TextModel.get_vocab_base_pre = tokenizer_name
sys.argv = ["", folder, "--outtype", "f32", "--outfile", f"{folder}/model.gguf"]
runpy.run_path(f"{sources}/convert_hf_to_gguf.py", run_name="__main__")
