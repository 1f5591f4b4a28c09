// Preloaded into a process whose wall clock is to be wrong; the monotonic one stays right. How wrong
// stands in a file, in microseconds, and may change while the process runs. Debian's libfaketime does
// not do: while it looks up a function that glibc no longer has, it allocates, and Envoy's allocator
// calls `poll`, which is libfaketime's, which waits for its own start.

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *ahead;

__attribute__((constructor)) static void map_file(void) {
    const char *path = getenv("CLOCK_AHEAD");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *memory = mmap(NULL, sizeof *ahead, PROT_READ, MAP_SHARED, file, 0);
    if (memory != MAP_FAILED) ahead = memory;
    close(file);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int status = syscall(SYS_clock_gettime, clock, now);
    if (status == 0 && clock == CLOCK_REALTIME && ahead) {
        int64_t shift = *ahead, nanoseconds = now->tv_nsec + shift % 1000000 * 1000;
        now->tv_sec += shift / 1000000 + nanoseconds / 1000000000;
        now->tv_nsec = nanoseconds % 1000000000;
        if (now->tv_nsec < 0) {
            now->tv_nsec += 1000000000;
            now->tv_sec -= 1;
        }
    }
    return status;
}
