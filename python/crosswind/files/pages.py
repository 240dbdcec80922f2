"""What the HTML pages that stand alone have in common: data and programs inside script elements."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any


def script_json(value: Any) -> str:
    r"""Return JSON that is safe inside a script element: no string in it ends the element or begins a comment.

    Examples
    --------
    >>> script_json("</script>")
    '"\\u003c/script\\u003e"'
    """
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def script_hash(program: str) -> str:
    """Return the source by which a Content-Security-Policy permits this program and no other.

    Examples
    --------
    >>> script_hash("")
    "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='"
    """
    return f"'sha256-{base64.b64encode(hashlib.sha256(program.encode()).digest()).decode()}'"
