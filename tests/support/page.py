"""What a leaderboard page has for its browser of samples."""

import base64
import json
import re
import zlib
from pathlib import Path
from typing import Any


def samples_in(page: Path) -> dict[str, Any]:
    """By task, the content that the page's script unpacks."""
    text = page.read_text()
    (listed,) = re.findall(r'id="content">([^<]*)<', text)
    found = re.findall(r'id="samples-\d+">([^<]*)<', text)
    return {
        one["task"]: json.loads(zlib.decompress(base64.b64decode(content)))
        for one, content in zip(json.loads(listed), found, strict=True)
    }


def answers(content: Any, model: str) -> list[str]:
    """A model's answers; 0 stands for the right one."""
    found = content["models"][model]["answers"]
    return [
        document[2] if one == 0 else one
        for one, document in zip(found, content["documents"], strict=True)
    ]
