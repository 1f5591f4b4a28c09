import time
import unittest

from stall import STILL, Watch


class Stall(unittest.TestCase):
    def test_notes_when_it_was_kept_from_running(self):
        with Watch() as watch:
            before = time.time()
            # Keeps the interpreter's lock, as a busy machine keeps the processor.
            sorted(range(6_000_000, 0, -1), key=str)
            after = time.time()
            time.sleep(0.02)
        self.assertEqual(watch.longest(before - 20, before - 10), 0)
        self.assertTrue(all(woke - due >= STILL for due, woke in watch.stalls))
        self.assertGreaterEqual(after, before)

    def test_counts_what_lies_partly_within(self):
        watch = Watch()
        watch.stalls = [(10.0, 10.2), (20.0, 20.5)]
        self.assertAlmostEqual(watch.longest(10.1, 12), 0.2)
        self.assertAlmostEqual(watch.longest(0, 30), 0.5)
        self.assertEqual(watch.longest(10.3, 19.9), 0)
        self.assertEqual(watch.longest(20.5, 30), 0)


if __name__ == "__main__":
    unittest.main()
