// Preloaded into a proxy whose monotonic clock a test moves ahead: a file holds the seconds. Debian's
// libfaketime does not work with Envoy, as tests/kit/process_clock.c says.

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
    const char *path = getenv("STEADY_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *memory = mmap(NULL, sizeof *ahead, PROT_READ, MAP_SHARED, file, 0);
    if (memory != MAP_FAILED) ahead = memory;
    close(file);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int status = syscall(SYS_clock_gettime, clock, now);
    if (status == 0 && ahead && (clock == CLOCK_MONOTONIC || clock == CLOCK_MONOTONIC_COARSE)) now->tv_sec += *ahead;
    return status;
}
