"""Removes the exports that the filter does not need from the linked module.

The SDK exports every callback, and the host calls each `proxy_on_*` that it finds, for each request: an empty callback costs a crossing.
"""

PREFIX = "proxy_on_"
NEEDED = {
    "proxy_on_memory_allocate",
    "proxy_on_context_create",
    # Without it the SDK never drops a stream's context, and memory grows with every request.
    "proxy_on_delete",
    "proxy_on_configure",
    "proxy_on_tick",
    # Responses of Redis and of the configuration server.
    "proxy_on_http_call_response",
    "proxy_on_request_headers",
    "proxy_on_response_headers",
}

HEADER = 8
EXPORT_SECTION = 7


def without_unneeded(module):
    """The module without these exports, otherwise unchanged."""
    parts, at = [module[:HEADER]], HEADER
    while at < len(module):
        size, start = number(module, at + 1)
        end = start + size
        parts.append(exports(module[start:end]) if module[at] == EXPORT_SECTION else module[at:end])
        at = end
    return b"".join(parts)


def exports(section):
    """An export section with the needed exports of another one."""
    count, at = number(section, 0)
    kept = []
    for _ in range(count):
        length, name = number(section, at)
        # One byte for the kind, then an index.
        _, end = number(section, name + length + 1)
        text = section[name : name + length].decode()
        if text in NEEDED or not text.startswith(PREFIX):
            kept.append(section[at:end])
        at = end
    body = encoded(len(kept)) + b"".join(kept)
    return bytes([EXPORT_SECTION]) + encoded(len(body)) + body


def number(data, at):
    """A number in LEB128, and its end."""
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def encoded(value):
    """A number in LEB128."""
    parts = []
    while value >= 0x80:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*parts, value])
