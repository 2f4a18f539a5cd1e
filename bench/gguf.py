"""Write a model of the bench as GGUF in float32: ``python bench/gguf.py LLAMA_CPP FOLDER``.

Needs llama.cpp's sources, and a Python with gguf, sentencepiece, torch and transformers.
"""

import runpy
import sys

sources, folder = sys.argv[1:]
sys.path[:0] = [sources, f"{sources}/gguf-py"]
base = __import__("conversion.base").base
# It knows tokenizers by a digest of what they make of a text; this one splits words as GPT-2's.
base.TextModel.get_vocab_base_pre = lambda *_: "gpt-2"
sys.argv = ["", folder, "--outtype", "f32", "--outfile", f"{folder}/model.gguf"]
runpy.run_path(f"{sources}/convert_hf_to_gguf.py", run_name="__main__")
