"""Saved models as somebody with bad intentions would leave them."""

import hashlib
import json


def edit(folder, **changes):
    """Change the description, as somebody with bad intentions would: consistently."""
    file = folder / "model.json"
    content = {**json.loads(file.read_text()), **changes}
    file.write_text(json.dumps({k: v for k, v in content.items() if v is not ...}))


def sign(folder):
    """Put the checksum right, as whoever can write a file can do too."""
    file = folder / "model.json"
    rest = {k: v for k, v in json.loads(file.read_text()).items() if k != "sha256"}
    text = json.dumps(rest, sort_keys=True, ensure_ascii=False)
    edit(folder, sha256=hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest())


def exchange_weights(folder, content):
    (folder / "weights.safetensors").write_bytes(content)
    edit(folder, weights_sha256=hashlib.sha256(content).hexdigest())
