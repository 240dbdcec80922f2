// A CUDA driver that keeps to a law, in place of a real one: what the probe of a GPU does is tested with it on any machine.
//
// A stream is a time at which it is free, an event is a time; what is enqueued begins once its stream, and the engine that
// it needs, are free. Nothing is computed and nothing is copied.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

typedef struct { double free_ns; } Stream;
typedef struct { double at_ns; } Event;
typedef unsigned long long Address;

static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
static Stream of_nobody;
static double to_device, to_host, within;

static double now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e9 + time.tv_nsec;
}

static int wait_until(double at_ns) {
    for (double left = at_ns - now_ns(); left > 0; left = at_ns - now_ns()) {
        struct timespec pause = {(time_t)(left / 1e9), (long)left % 1000000000};
        nanosleep(&pause, NULL);
    }
    return 0;
}

static double enqueue(Stream *stream, double takes_ns, double *engine) {
    stream = stream ? stream : &of_nobody;
    pthread_mutex_lock(&one_at_a_time);
    double begins = now_ns();
    begins = stream->free_ns > begins ? stream->free_ns : begins;
    if (engine) {
        begins = *engine > begins ? *engine : begins;
        *engine = begins + takes_ns;
    }
    stream->free_ns = begins + takes_ns;
    pthread_mutex_unlock(&one_at_a_time);
    return begins + takes_ns;
}

int cuInit(unsigned flags) { return 0; }
int cuDriverGetVersion(int *version) { *version = 12000; return 0; }
int cuDeviceGetCount(int *count) { *count = 1; return 0; }
int cuDeviceGet(int *device, int ordinal) { *device = ordinal; return 0; }
int cuDevicePrimaryCtxRetain(void **context, int device) { *context = &of_nobody; return 0; }
int cuDevicePrimaryCtxRelease_v2(int device) { return 0; }
int cuCtxSetCurrent(void *context) { return 0; }
int cuDeviceGetName(char *name, int size, int device) { strncpy(name, "Scripted", size); return 0; }
int cuDeviceGetUuid(char *id, int device) { memset(id, 7, 16); return 0; }
int cuDeviceGetUuid_v2(char *id, int device) { return cuDeviceGetUuid(id, device); }
int cuDeviceGetAttribute(int *value, int attribute, int device) { *value = attribute == 75 ? 9 : 8; return 0; }
int cuMemGetInfo_v2(size_t *unused, size_t *all) { *unused = *all = 80ull << 30; return 0; }
int cuCtxGetStreamPriorityRange(int *least, int *greatest) { *least = 0; *greatest = -5; return 0; }
int cuStreamCreateWithPriority(Stream **stream, unsigned flags, int priority) { *stream = calloc(1, sizeof(Stream)); return 0; }
int cuStreamSynchronize(Stream *stream) { return wait_until(enqueue(stream, 0, NULL)); }
int cuStreamDestroy_v2(Stream *stream) { free(stream); return 0; }
int cuEventCreate(Event **event, unsigned flags) { *event = calloc(1, sizeof(Event)); return 0; }
int cuEventRecord(Event *event, Stream *stream) { event->at_ns = enqueue(stream, 500, NULL); return 0; }
int cuEventSynchronize(Event *event) { return wait_until(event->at_ns); }
int cuEventElapsedTime(float *ms, Event *from, Event *to) { *ms = (to->at_ns - from->at_ns) / 1e6; return 0; }
int cuEventElapsedTime_v2(float *ms, Event *from, Event *to) { return cuEventElapsedTime(ms, from, to); }
int cuEventDestroy_v2(Event *event) { free(event); return 0; }
int cuMemAlloc_v2(Address *at, size_t bytes) {
    *at = (Address)mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return 0;
}
int cuMemFree_v2(Address at) { return 0; }
int cuMemsetD8_v2(Address at, unsigned char value, size_t bytes) { return 0; }
int cuMemcpyHtoD_v2(Address to, const void *from, size_t bytes) { return 0; }
int cuMemHostAlloc(void **at, size_t bytes, unsigned flags) { *at = malloc(bytes); return 0; }
int cuMemFreeHost(void *at) { free(at); return 0; }
int cuModuleLoadData(void **module, const void *text) { *module = &of_nobody; return 0; }
int cuModuleUnload(void *module) { return 0; }
int cuModuleGetFunction(char **function, void *module, const char *name) { *function = strdup(name); return 0; }
int cuMemcpyHtoDAsync_v2(Address to, const void *from, size_t bytes, Stream *stream) {
    enqueue(stream, bytes / 40.0, &to_device);
    return 0;
}
int cuMemcpyDtoHAsync_v2(void *to, Address from, size_t bytes, Stream *stream) {
    enqueue(stream, bytes / 40.0, &to_host);
    return 0;
}
int cuMemcpyDtoDAsync_v2(Address to, Address from, size_t bytes, Stream *stream) {
    enqueue(stream, bytes / 1000.0, &within);
    return 0;
}
int cuGetErrorString(int error, const char **text) { *text = "scripted"; return 0; }

// 100 ns a round; a copying block moves 2.5 GB/s; "task" takes what its argument says, ns.
int cuLaunchKernel(const char *function, unsigned grid, unsigned grid_y, unsigned grid_z, unsigned threads, unsigned threads_y,
                   unsigned threads_z, unsigned shared, Stream *stream, void **arguments, void **extra) {
    double takes_ns = 1000;
    if (!strcmp(function, "task"))
        takes_ns = *(double *)arguments[0];
    else if (!strcmp(function, "copy"))
        takes_ns = *(Address *)arguments[2] * 16 / (2.5 * grid);
    else if (!strcmp(function, "triad"))
        takes_ns += 100.0 * *(unsigned *)arguments[5];
    else if (!strcmp(function, "chase"))
        takes_ns += 100.0 * *(unsigned *)arguments[3];
    else
        takes_ns += 100.0 * *(unsigned *)arguments[1];
    enqueue(stream, takes_ns, NULL);
    return 0;
}
