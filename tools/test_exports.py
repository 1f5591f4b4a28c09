import unittest

from exports import HEADER, NEEDED, encoded, number, without_unneeded


def section(kind, body):
    return bytes([kind]) + encoded(len(body)) + body


def module(*names):
    """A module that exports functions, numbered by position, between two other sections."""
    entry = lambda place, name: encoded(len(name)) + name.encode() + b"\0" + encoded(place)
    exports = encoded(len(names)) + b"".join(entry(*it) for it in names)
    return b"\0asm\1\0\0\0" + section(3, bytes(200)) + section(7, exports) + section(10, b"code")


class Exports(unittest.TestCase):
    def test_removes_callbacks_that_are_not_needed(self):
        kept = [(1, "memory"), (300, "proxy_on_delete"), (5, "_initialize"), (2, "proxy_abi_version_0_2_1")]
        whole = module(kept[0], (7, "proxy_on_log"), *kept[1:], (9, "proxy_on_done"))
        self.assertEqual(without_unneeded(whole), module(*kept))

    def test_keeps_a_module_that_has_only_what_is_needed(self):
        whole = module(*enumerate(sorted(NEEDED)))
        self.assertEqual(without_unneeded(whole), whole)
        self.assertGreater(len(whole), 128 + HEADER)

    def test_numbers_are_read_as_they_are_written(self):
        for value in (0, 127, 128, 300, 1 << 31):
            self.assertEqual(number(encoded(value), 0), (value, len(encoded(value))))


if __name__ == "__main__":
    unittest.main()
