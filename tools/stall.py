"""Tells when the machine stood still."""

import threading
import time

# Longer than any bound that tests give to a delay.
STILL = 0.1
PAUSE = 0.005


class Watch:
    """Sleeps a little again and again, and notes when it woke much too late, in seconds of Unix time."""

    def __enter__(self):
        self.stalls = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self._thread.join()

    def longest(self, begin, end):
        """For how long at most the machine stood still at once, of which a part lay within that time."""
        within = [woke - due for due, woke in self.stalls if due < end and begin < woke]
        return max(within, default=0.0)

    def _watch(self):
        while not self._over.is_set():
            began = time.monotonic()
            time.sleep(PAUSE)
            late = time.monotonic() - began - PAUSE
            if late >= STILL:
                woke = time.time()
                self.stalls.append((woke - late, woke))
