// Preloaded into a process that is a hundred times slower than by itself: its clocks are, too, so that it finds as much
// time between two requests as ever, and its timers fire after as many of them.

#define _GNU_SOURCE
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { SLOWER = 100 };
static const int64_t SECOND = 1000000000;

static int64_t began[2];

int clock_gettime(clockid_t clock, struct timespec *now) {
    int status = syscall(SYS_clock_gettime, clock, now);
    if (status == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC)) {
        int64_t real = now->tv_sec * SECOND + now->tv_nsec;
        // Threads may both be the first, and then find the same but for nothing.
        if (began[clock] == 0) began[clock] = real;
        int64_t slow = began[clock] + (real - began[clock]) / SLOWER;
        now->tv_sec = slow / SECOND;
        now->tv_nsec = slow % SECOND;
    }
    return status;
}
