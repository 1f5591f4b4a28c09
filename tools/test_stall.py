import time
import unittest

from stall import STILL, Watch


class Stall(unittest.TestCase):
    def test_notes_how_long_it_was_kept_from_running(self):
        with Watch() as watch:
            # Keeps the interpreter's lock, as a busy machine keeps the processor.
            sum(range(20_000_000))
            time.sleep(0.02)
        self.assertGreater(watch.longest, 0)
        self.assertEqual(watch.stood_still, watch.longest >= STILL)


if __name__ == "__main__":
    unittest.main()
