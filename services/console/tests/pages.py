"""What the tests of the page share: the answers of a scripted master, and hostile text."""

from typing import Any

from services.console.tests import scripted_cluster as cluster
from services.console.tests.scripted_master import ScriptedMaster, answers

HOSTILE = (  # R28: elements, bidi, the end of a block, a link of a terminal (OSC 8)
    '<img src=x onerror="document.title=1">\u202e & "quoted" <script>document.title=2</script></pre></li>'
    "\x1b]8;;http://evil.example\x1b\\press\x1b]8;;\x1b\\"
)


def prepare(master: ScriptedMaster) -> None:
    """Answers to what the page asks."""
    item = {"round": 12, "bytes": 300_000, "sha256": master.keep_file(b"z" * 300_000), "best": True}
    joins = {"id": 1, "label": "page", "uses_left": 20, "expires_at_ms": 1_796_003_600_000, "state": "valid"}
    replies: dict[str, dict[str, Any]] = {
        "list_datasets": {"items": cluster.DATASETS},
        "list_checkpoints": {"items": [item]},
        "list_join_strings": {"items": [joins]},
        "create_join_string": {**joins, "join_string": cluster.JOIN_STRING},
        "create_run": {"run": "digits-8"},
        "stop_run": {"run": "run-7"},
        "remove_worker": {"worker": "w2"},
    }
    for name, result in replies.items():
        master.replies[name] = answers(result)
