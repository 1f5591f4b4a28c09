// Preloaded into a process whose wall clock a test controls; the monotonic clock stays right. A file
// holds two numbers, `rate` (0 or 1) and `offset` in microseconds, and may change while the process
// runs: the wall clock reads rate * (true time) + offset. Debian's libfaketime does not work here:
// during its start it looks up a function that glibc no longer has, which allocates, and Envoy's
// allocator calls `poll`, which libfaketime replaces and which waits for that start.

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *steered;

__attribute__((constructor)) static void map_file(void) {
    const char *path = getenv("PROCESS_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *memory = mmap(NULL, 2 * sizeof *steered, PROT_READ, MAP_SHARED, file, 0);
    if (memory != MAP_FAILED) steered = memory;
    close(file);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int status = syscall(SYS_clock_gettime, clock, now);
    if (status != 0 || clock != CLOCK_REALTIME || !steered) return status;
    int64_t nanoseconds = steered[0] * ((int64_t)now->tv_sec * 1000000000 + now->tv_nsec) + steered[1] * 1000;
    now->tv_sec = nanoseconds / 1000000000;
    now->tv_nsec = nanoseconds % 1000000000;
    return 0;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    (void)zone;
    struct timespec precise;
    int status = clock_gettime(CLOCK_REALTIME, &precise);
    now->tv_sec = precise.tv_sec;
    now->tv_usec = precise.tv_nsec / 1000;
    return status;
}
