#!/usr/bin/env python3
"""Links the module as rust-lld would, but without the callbacks that the filter does not need.

The host calls every `proxy_on_*` that it finds, for each request, so an empty callback costs a
crossing. One that is not exported costs nothing, and the linker drops the code behind it.

Numbers that the linker fills in take five bytes each unless it is told to shorten them: without
that the module would be 28 KB larger.
"""

import os
import subprocess
import sys
from pathlib import Path

KEEP = {
    "proxy_on_memory_allocate",
    "proxy_on_context_create",
    "proxy_on_vm_start",
    "proxy_on_configure",
    "proxy_on_tick",
    # Answers of the configuration centre.
    "proxy_on_http_call_response",
    "proxy_on_request_headers",
    "proxy_on_response_headers",
    # Without it the SDK never drops a stream's context, and memory grows with every request.
    "proxy_on_delete",
}


def wanted(arguments):
    """The arguments without `--export` of what is not kept, and with short numbers."""
    # Debug information, where it is kept, counts on the long numbers.
    shorten = ["--compress-relocations"] if "--strip-all" in arguments else []
    arguments = iter(arguments)
    for argument in arguments:
        if argument != "--export":
            yield argument
            continue
        name = next(arguments)
        if name in KEEP or not name.startswith("proxy_on_"):
            yield from (argument, name)
    yield from shorten


def linker():
    """The rust-lld of the toolchain in use."""
    rustc = os.environ.get("RUSTC", "rustc")
    sysroot = subprocess.check_output([rustc, "--print", "sysroot"], text=True).strip()
    version = subprocess.check_output([rustc, "-vV"], text=True)
    host = version.split("host: ")[1].split()[0]
    return Path(sysroot, "lib/rustlib", host, "bin/rust-lld")


if __name__ == "__main__":
    program = linker()
    os.execv(program, [program, *wanted(sys.argv[1:])])
