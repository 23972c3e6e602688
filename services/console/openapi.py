"""What the API's description says beyond what the routes say: the token, the shape of problems, what the tags are."""

from typing import Any

from fastapi import FastAPI

from services.console.guard import PROTECTED, TOKEN_HEADER
from services.console.problems import ProblemBody

DESCRIPTION = (
    "Everything the page does. Each request under /api carries the header X-MAHE-Token; the token is in console.json "
    "in the console's data folder. Times are in ms since the Unix epoch, durations named by their unit, sizes in "
    "bytes. Lists are `items` and `next_cursor`, which is the next page's `cursor` and null on the last one. "
    "Errors are problems (RFC 9457) with a stable `code`."
)
TAGS = [
    {"name": "state", "description": "Everything at once: where a page begins"},
    {"name": "events", "description": "What happens, as it happens"},
    {"name": "runs", "description": "Trainings, their rounds and checkpoints"},
    {"name": "rounds", "description": "What a run learnt, step by step"},
    {"name": "checkpoints", "description": "Versions of the model that are kept"},
    {"name": "presets", "description": "Ways to train, by one word"},
    {"name": "datasets", "description": "What there is to learn from"},
    {"name": "workers", "description": "The PCs that train"},
    {"name": "folders", "description": "Places for a model on the master's PC"},
    {"name": "join strings", "description": "How a PC gets in"},
    {"name": "support", "description": "For whoever helps with a fault"},
    {"name": "health", "description": "For whoever watches the process; without a token"},
]
_SCHEMAS = "#/components/schemas/"


def describe(app: FastAPI) -> dict[str, Any]:
    """The description of `app`, once its routers are all there."""
    schema = app.openapi()
    problem = ProblemBody.model_json_schema(ref_template=f"{_SCHEMAS}{{model}}", mode="serialization")
    parts = schema.setdefault("components", {})
    parts.setdefault("schemas", {}).update({**problem.pop("$defs"), ProblemBody.__name__: problem})
    parts["schemas"] = dict(sorted(parts["schemas"].items()))
    parts["securitySchemes"] = {"token": {"type": "apiKey", "in": "header", "name": TOKEN_HEADER}}
    for path, operations in schema["paths"].items():
        if path.startswith(PROTECTED + "/"):
            for operation in operations.values():
                operation["security"] = [{"token": []}]
    return schema
