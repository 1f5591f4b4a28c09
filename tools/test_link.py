import unittest

from link import KEEP, wanted


class Link(unittest.TestCase):
    def test_drops_callbacks_that_are_not_kept(self):
        kept = ["-flavor", "wasm", "--export", "proxy_on_delete", "--export", "_initialize", "a.o"]
        dropped = ["--export", "proxy_on_log", "--export", "proxy_on_done"]
        self.assertEqual(list(wanted(kept[:2] + dropped + kept[2:])), kept)

    def test_shortens_numbers_where_no_debug_information_counts_on_them(self):
        self.assertEqual(list(wanted(["a.o", "--strip-all"])), ["a.o", "--strip-all", "--compress-relocations"])
        self.assertEqual(list(wanted(["a.o", "--strip-debug"])), ["a.o", "--strip-debug"])

    def test_keeps_what_a_stream_cannot_do_without(self):
        arguments = [word for name in sorted(KEEP) for word in ("--export", name)]
        self.assertEqual(list(wanted(arguments)), arguments)


if __name__ == "__main__":
    unittest.main()
