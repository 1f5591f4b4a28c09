"""Common functions of all tools: the project's folders, messages, and commands with readable errors."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "target"
CARGO_TARGET = ROOT / os.environ.get("CARGO_TARGET_DIR", TARGET)


def say(message):
    print(message, flush=True)


def die(message):
    """Ends the tool. The message contains the problem and how to fix it."""
    sys.exit(f"error: {message}")


def end(text, lines=150):
    """The last lines of a long output, which have the reason of a failure."""
    return "\n".join(text.splitlines()[-lines:])


def relative(path):
    """The path relative to the project."""
    try:
        return str(Path(path).relative_to(ROOT))
    except ValueError:
        return str(path)


def run(command, **options):
    """Runs a command from the project's root and ends the tool if it fails."""
    words = [str(word) for word in command]
    say("$ " + shlex.join(relative(word) for word in words))
    if subprocess.run(words, cwd=ROOT, **options).returncode != 0:
        die(f"`{words[0]}` failed, see above")


def check_size(path, limit):
    """Prints the size of a file, and ends the tool if it is too large."""
    size = path.stat().st_size
    say(f"{relative(path)}: {size:,} of at most {limit:,} bytes")
    if size > limit:
        die(f"{relative(path)} is {size - limit:,} bytes too large")


def output(command):
    """The output of a command. Empty if it cannot be run or fails."""
    try:
        done = subprocess.run([str(word) for word in command], cwd=ROOT, capture_output=True, text=True)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
