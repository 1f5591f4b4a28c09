// Preloaded into a process whose wall clock is to be wrong; the monotonic one stays right. Debian's
// libfaketime does not do: while it looks up a function that glibc no longer has, it allocates, and
// Envoy's allocator calls `poll`, which is libfaketime's, which waits for its own start.

#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static time_t ahead;

__attribute__((constructor)) static void read_ahead(void) {
    const char *text = getenv("CLOCK_AHEAD");
    ahead = text ? atol(text) : 0;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int status = syscall(SYS_clock_gettime, clock, now);
    if (status == 0 && clock == CLOCK_REALTIME) now->tv_sec += ahead;
    return status;
}
