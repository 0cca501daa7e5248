"""The virtual environment in which run.py starts the engines."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import Any


def venv_folder() -> Path:
    """Also the cache of the FalkorDB server."""
    return Path(os.environ.get("LUKASA_PEERS_VENV") or Path(tempfile.gettempdir(), "lukasa-peers-venv")).absolute()


def say(*words: Any) -> None:
    print("peers:", *words, file=sys.stderr, flush=True)


def prepared_python() -> Path:
    """The interpreter of the virtual environment, with the packages of requirements.txt. A package that cannot be
    installed appears as the error of its engine."""
    python = venv_folder() / "bin/python"
    install: list[str | Path] = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    wanted = Path(__file__).with_name("requirements.txt").read_text().split()
    probe = "import importlib.metadata as m; print(*(d.name + '==' + d.version for d in m.distributions()))"
    try:
        if not python.exists():
            say("making a virtual environment in", venv_folder())
            venv.create(venv_folder(), with_pip=True)
        present = subprocess.run([python, "-c", probe], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        say("no virtual environment:", error)
        return Path(sys.executable)
    if missing := sorted(set(wanted) - set(present.lower().split())):
        say("installing", *missing)
        if subprocess.run([*install, *missing], stdout=sys.stderr).returncode:
            for requirement in missing:  # one failure must not prevent the others
                subprocess.run([*install, requirement], stdout=sys.stderr)
    return python
