"""The tree keeps its own rules: floors, sizes, words, banned calls, documentation, pins (`make check`).

Each rule is run twice: on the tree, where it finds nothing, and on a bad snippet, where it must find something.
"""

import ast
from collections.abc import Callable, Iterator, Sequence
from functools import cache

import pytest

from services.tests.tidy import code, containers, floors, text
from services.tests.tidy.source import Source, Violation, load

Rule = Callable[[Sequence[Source]], Iterator[Violation]]
Files = dict[str, str]

CORE = "services/master/core/coordinator.py"
SHELL = "services/worker/shell/agent.py"
LEARNING = "services/common/learning/models.py"
PROTOCOL = "services/common/protocol/codec.py"
KERNEL = "libkernel/src/reference/axpy.c"
COMPOSE, DOCKERFILE = "compose.yaml", "deploy/Dockerfile"
SERVICE = """services:
  one:
    image: mahe-one:${MAHE_VERSION:-0.1.0}
    user: "10001:10001"
    read_only: true
    cap_drop: [ALL]
    security_opt: ["no-new-privileges:true"]
    cpus: ${CPUS:-2}
    mem_limit: 1g
    pids_limit: 256
    ports: ["${PORT:-47820}:${PORT:-47820}", "127.0.0.1:${PAGE:-47830}:47830", {target: 47820, published: 80}]
    volumes: ["one:/var/lib/mahe"]
    environment: {MAHE_JOIN: "${MAHE_JOIN:-}", MAHE_JOIN_FILE: /run/join}
    healthcheck: {test: [CMD, python3, health.py]}
"""
IMAGE = """ARG BASE_IMAGE=python:3.13-slim
FROM ${BASE_IMAGE} AS base
USER 10001:10001
FROM base AS one
HEALTHCHECK CMD [1]
"""
HASHED = "numpy==2.0.0 \\\n    --hash=sha256:00\n"

# For each rule: snippets in which it must find something.
BAD: dict[Rule, list[Files]] = {
    floors.floors: [
        {CORE: "import numpy"},
        {CORE: "import time"},
        {CORE: "def now():\n    from uuid import uuid4"},
        {CORE: "from services.common.protocol.codec import pack"},
        {CORE: "from services.common.protocol import codec", PROTOCOL: ""},
        {CORE: "from services.common.host import locks"},
        {CORE: "from services.master.shell import store", "services/master/shell/store.py": ""},
        {SHELL: "import services.master.core.state"},
        {SHELL: "from services.master import core", "services/master/core/__init__.py": ""},
        {SHELL: "import fastapi"},
        {SHELL: "from . import trainer"},
        {SHELL: "import requests"},
        {"services/console/link.py": "from services.worker.core import session"},
        {"services/master/__main__.py": "from services.worker.__main__ import main"},
        {"services/__main__.py": "from services.master.shell import store"},
        {"services/launch/demo.py": "from services.master.settings import MasterSettings"},
        {"services/launch/demo.py": "import zmq"},
        {PROTOCOL: "import zmq"},
        {PROTOCOL: "import threading"},
        {PROTOCOL: "from services.common.kernels import ops"},
        {PROTOCOL: "from services.common.host import files"},
        {"services/common/kernels/ops.py": "import fastapi"},
        {"services/common/kernels/ops.py": "from services.common.learning import models"},
        {"services/common/host/locks.py": "import zmq"},
        {"services/common/host/locks.py": "from services.common.protocol import codec"},
        {LEARNING: "import logging"},
        {LEARNING: "import torch"},
        {LEARNING: "from services.common.host import files"},
        {"services/common/errors.py": "import pydantic"},
    ],
    floors.services_apart: [
        {"services/master/tests/test_store.py": "from services.worker.core import session"},
        {"services/common/protocol/tests/test_codec.py": "import services.master.core.state"},
    ],
    code.syntax: [{SHELL: "def broken(:"}, {SHELL: "def first[T](rows: list[T]) -> T: ..."}],
    code.function_sizes: [{SHELL: "def long():\n" + "    pass\n" * 70}],
    code.banned_calls: [
        {SHELL: "import pickle"},
        {SHELL: "from pickle import loads"},
        {SHELL: "from os.path import *"},
        {SHELL: "socket.recv_pyobj()"},
        {SHELL: "socket.send_pyobj(1)"},
        {SHELL: "yaml.load(text)"},
        {SHELL: "subprocess.run(line, shell=True)"},
        {SHELL: "numpy.load(path, allow_pickle=True)"},
        {SHELL: "archive.extractall(folder)"},
        {SHELL: "eval(text)"},
        {SHELL: "exec(text)"},
        {SHELL: "os.fork()"},
        {SHELL: "os.system(line)"},
        {SHELL: "multiprocessing.get_context('fork')"},
        {SHELL: "try:\n    go()\nexcept:\n    pass"},
    ],
    code.keyword_bags: [
        {SHELL: "def go(**options): inner(**options)"},
        {SHELL: "go = lambda **options: inner(1, **options)"},
    ],
    code.inheritance: [
        {SHELL: "class Agent(threading.Thread): pass"},
        {SHELL: "class Agent(Base): pass\nclass Base: pass"},
        {SHELL: "class Agent(Agent): pass"},
        {SHELL: "class Agent(metaclass=Meta): pass"},
    ],
    code.docstrings: [
        {SHELL: "import os"},
        {SHELL: '"""For."""\ndef go(): pass'},
        {SHELL: '"""For."""\nclass Agent: pass'},
        {"services/tests/test_it.py": "import os"},
    ],
    code.words: [
        {"services/worker/shell/client.py": ""},
        {SHELL: "def count_nodes(): pass"},
        {SHELL: "class PeerTable: pass"},
        {SHELL: "class Agent:\n    def call_server(self): pass"},
    ],
    code.sentences: [{SHELL: 'log("the server is gone")'}, {SHELL: 'log(f"{count} nodes left")'}],
    code.dead_modules: [
        {SHELL: ""},
        {SHELL: "import services.worker.shell.agent"},
    ],
    text.file_sizes: [{SHELL: "pass\n" * 401}, {"docs/GUIDE.md": "word\n" * 401}],
    text.line_sizes: [{KERNEL: "x" * 121}, {"Makefile": "x" * 121}],
    text.module_names: [{"services/worker/utils.py": ""}, {"services/common/misc/locks.py": ""}],
    text.package_hosts: [
        {"Makefile": f"pip install --{'index' + '-url'} x"},
        {"requirements/dev.txt": f"# https://{'pypi' + '.org'}/simple"},
        {"deploy/Dockerfile": f"RUN wget {'registry.npm' + 'js.org'}/preact"},
    ],
    text.page_scripts: [
        {"services/console/static/page.js": "element.innerHTML = text"},
        {"services/console/static/page.js": "eval(text)"},
    ],
    text.kernel_code: [
        {KERNEL: "#include <pthread.h>"},
        {KERNEL: "float *x = malloc(4);"},
        {KERNEL: "static int calls = 0;"},
        {KERNEL: "int calls;"},
        {KERNEL: "static float table[4] = {"},
        {KERNEL: "#include <cpuid.h>"},
    ],
    containers.compose_files: [
        {COMPOSE: SERVICE.replace(old, new)}
        for old, new in (
            ('user: "10001:10001"', "user: root"),
            ('user: "10001:10001"', "labels: {}"),
            ('user: "10001:10001"', 'user: "${MAHE_USER:-0}"'),
            ("cap_drop: [ALL]", "cap_add: [SYS_ADMIN]"),
            ("cap_drop: [ALL]", "cap_drop: [ALL]\n    privileged: true"),
            ('security_opt: ["no-new-privileges:true"]', "labels: {}"),
            ("read_only: true", "read_only: false"),
            ("read_only: true", "read_only: true\n    network_mode: host"),
            ("one:/var/lib/mahe", "/var/run/docker.sock:/var/run/docker.sock"),
            ('["one:/var/lib/mahe"]', "[{type: bind, source: /var/run/docker.sock, target: /s}]"),
            ('"127.0.0.1:${PAGE:-47830}:47830"', '"47830:47830"'),
            ('"127.0.0.1:${PAGE:-47830}:47830"', '"0.0.0.0:47822:47822"'),
            ('"127.0.0.1:${PAGE:-47830}:47830"', '"[::]:47830:47830/tcp"'),
            ("{target: 47820, published: 80}", "{target: 47830, published: 80}"),
            ("${MAHE_JOIN:-}", "${MAHE_JOIN:-abc}"),
            ('{MAHE_JOIN: "${MAHE_JOIN:-}"', "{API_TOKEN: abc"),
            ("{test: [CMD, python3, health.py]}", f"{{test: [x]}}\n    command: [join, {'mahe1' + '.abcdefgh234'}]"),
            (":${MAHE_VERSION:-0.1.0}", ":latest"),
            (":${MAHE_VERSION:-0.1.0}", ""),
            ("cpus: ${CPUS:-2}", "cpus: 0"),
            ("mem_limit: 1g", "labels: {}"),
            ("pids_limit: 256", "labels: {}"),
            ("healthcheck: {test: [CMD, python3, health.py]}", "labels: {}"),
            ("{test: [CMD, python3, health.py]}", "{disable: true}"),
        )
    ],
    containers.dockerfiles: [
        {DOCKERFILE: IMAGE.replace("USER 10001:10001\n", "")},
        {DOCKERFILE: IMAGE.replace("10001:10001", "root")},
        {DOCKERFILE: IMAGE.replace("3.13-slim", "latest")},
        {DOCKERFILE: IMAGE.replace(":3.13-slim", "")},
        {DOCKERFILE: IMAGE.replace("CMD [1]", "CMD curl localhost")},
    ],
    text.pins: [
        {"requirements/dev.txt": "numpy==2.0.0"},
        {"requirements/dev.txt": f"{HASHED}# see https://example.test"},
        {"requirements/dev.txt": HASHED, "requirements/base.txt": HASHED.replace("2.0.0", "2.0.1")},
    ],
}

# Files in which no rule but that of dead modules finds anything.
GOOD: Files = {
    CORE: '"""For."""\nfrom dataclasses import dataclass\nfrom services.common.protocol import messages\n',
    "services/common/protocol/messages.py": (
        '"""For."""\nfrom pydantic import BaseModel\n\n\nclass Message(BaseModel):\n    """Any."""\n\n\n'
        'class Hello(Message):\n    """One."""\n'
    ),
    SHELL: (
        '"""For."""\nimport time\n\nimport zmq\n\n'
        "from services.common.host import locks\nfrom services.worker import core\n"
    ),
    "services/worker/core/__init__.py": "",
    "services/common/host/locks.py": '"""For."""\nimport os\nimport time\n\nimport platformdirs\n',
    "services/common/learning/backends/torch_cnn.py": '"""For."""\nimport torch\n',
    "services/console/app.py": '"""For."""\nimport fastapi\n\n\ndef closed() -> None:\n    """Does."""\n',
    "services/__main__.py": '"""For."""\nfrom services.launch import demo\nfrom services.master.__main__ import main\n',
    "services/tests/test_all.py": (
        '"""For."""\nfrom services.master.core import coordinator\n\n\ndef test_it(**any):\n    coordinator(**any)\n'
    ),
    KERNEL: (
        "#include <stdint.h>\n/* malloc is not\n   int here; */\n"
        "static const int calls = 0;\nint go(int n) {\n    int m = 0;\n}\n"
    ),
    COMPOSE: SERVICE,
    "deploy/compose.worker.yaml": SERVICE.replace(
        "{test: [CMD, python3, health.py]}", '{disable: true}\n    restart: "no"'
    ),
    DOCKERFILE: IMAGE,
    "libkernel/src/dispatch.c": "static struct table chosen;\n",
    "requirements/dev.txt": HASHED,
    "requirements/base.txt": HASHED,
}


def sources(files: Files) -> list[Source]:
    return [Source(path, content) for path, content in files.items()]


@cache
def tree() -> list[Source]:
    return load()


@pytest.mark.parametrize("rule", BAD, ids=lambda rule: rule.__name__)
def test_the_tree_keeps(rule: Rule) -> None:
    found = [f"{path}:{line}: {rule.__name__}: {sentence}" for path, line, sentence in rule(tree())]
    assert not found, "\n" + "\n".join(found)


@pytest.mark.parametrize("rule", BAD, ids=lambda rule: rule.__name__)
def test_can_fail(rule: Rule) -> None:
    blind = [files for files in BAD[rule] if not list(rule(sources(files)))]
    assert not blind, f"{rule.__name__} finds nothing in {blind}"


@pytest.mark.parametrize("rule", BAD, ids=lambda rule: rule.__name__)
def test_finds_nothing_in_good_files(rule: Rule) -> None:
    assert rule is code.dead_modules or list(rule(sources(GOOD))) == []


def test_a_module_that_is_imported_or_run_is_not_dead() -> None:
    runs = {SHELL: 'if __name__ == "__main__": main()'}
    imported = {CORE: "", "services/master/__main__.py": "from services.master.core import coordinator"}
    assert list(code.dead_modules(sources(runs | imported))) == []


def test_every_rule_is_run() -> None:
    """A public function of the rule modules that yields violations is a rule: none may be forgotten above."""
    modules = [source for source in tree() if source.path.startswith("services/tests/tidy/")]
    written = {
        item.name
        for source in modules
        for item in source.tree.body
        if isinstance(item, ast.FunctionDef) and item.returns and ast.unparse(item.returns) == "Iterator[Violation]"
    }
    assert written == {rule.__name__ for rule in BAD}
