// Preloaded into a process that valgrind slows down a hundred times: slows its clocks down as well, so that as much time passes
// between two requests as usual.

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
        // Two threads may both be the first; they then store nearly the same.
        if (began[clock] == 0) began[clock] = real;
        int64_t slow = began[clock] + (real - began[clock]) / SLOWER;
        now->tv_sec = slow / SECOND;
        now->tv_nsec = slow % SECOND;
    }
    return status;
}
