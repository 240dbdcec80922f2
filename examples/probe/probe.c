/* A probe in C: computes and moves bytes as Crosswind asks (docs/reference/probe-protocol.md).
 *
 *     cc -O3 -pthread -o my-probe probe.c
 *     crosswind probe check ./my-probe
 *     crosswind measure --runtime ./my-probe
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PLACES = 8, MOST_FLOWS = 256 };
struct flow { int socket, send; size_t bytes; };

static volatile uint64_t *counter; /* one number at the start of the file that the first line names */
static int side, diagonals, dots;  /* the matrix, and dot products per step */
static int *matrix;
static volatile int sink;          /* results go here, so that no compiler leaves the work out */
static int sockets[MOST_FLOWS], flows;

static void fail(const char *what) { printf("error %s\n", what); exit(1); }

/* Elements (i, i + d) of the square of the matrix, a few microseconds' worth a step. */
static void *compute(void *unused)
{
    pthread_setname_np(pthread_self(), "cw-compute"); /* by this name its CPU time is told apart */
    for (int row = 0, diagonal = 0;;) {
        int sum = 0;
        for (int dot = 0; dot < dots; dot++) {
            const int *left = matrix + (size_t)row * side, *right = matrix + (row + diagonal) % side;
            for (int k = 0; k < side; k++)
                sum += left[k] * right[(size_t)k * side];
            if (++row == side) {
                row = 0;
                diagonal = (diagonal + 1) % diagonals;
            }
        }
        sink = sum;
        *counter = *counter + 1;
    }
    return unused;
}

/* Messages go to and come from one place after the other: where a buffer lies decides how well it fits the caches. */
static void *traffic(void *argument)
{
    struct flow flow = *(struct flow *)argument;
    free(argument);
    pthread_setname_np(pthread_self(), "cw-traffic");
    unsigned char *messages = malloc(PLACES * flow.bytes);
    for (size_t i = 0; i < PLACES * flow.bytes; i++)
        messages[i] = (unsigned char)(i * 2654435761u >> 13);
    for (size_t moved = 0;;) {
        size_t at = moved / flow.bytes / 32 % PLACES * flow.bytes + moved % flow.bytes, left = flow.bytes - moved % flow.bytes;
        ssize_t now = flow.send ? send(flow.socket, messages + at, left, MSG_NOSIGNAL) : recv(flow.socket, messages + at, left, 0);
        if (now <= 0)
            break; /* closed, by us or by the peer */
        moved += (size_t)now;
    }
    free(messages);
    return NULL;
}

static void start(void *(*run)(void *), void *argument)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, run, argument))
        fail("cannot start a thread");
    pthread_detach(thread);
}

static void open_flow(const char *direction, char *to, const char *ticket, size_t bytes)
{
    char *colon = strrchr(to, ':');
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(colon + 1))};
    *colon = 0;
    if (inet_pton(AF_INET, to, &address.sin_addr) != 1)
        fail("this probe knows IPv4 only");
    int socket_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (flows == MOST_FLOWS || connect(socket_, (struct sockaddr *)&address, sizeof address))
        fail("cannot connect");
    if (write(socket_, ticket, strlen(ticket)) < 0) /* 64 bytes, as they are */
        fail("cannot write the ticket");
    sockets[flows++] = socket_;
    struct flow *flow = malloc(sizeof *flow);
    *flow = (struct flow){socket_, !strcmp(direction, "send"), bytes};
    start(traffic, flow);
    socklen_t length = sizeof address;
    getsockname(socket_, (struct sockaddr *)&address, &length);
    printf("ok %d\n", ntohs(address.sin_port));
}

int main(void)
{
    char line[4096], path[1024], kernel[64], direction[16], to[128], ticket[128];
    size_t bytes;
    setvbuf(stdout, NULL, _IOLBF, 0);
    while (fgets(line, sizeof line, stdin) && strcmp(line, "quit\n")) {
        if (sscanf(line, "crosswind 1 %1023s", path) == 1) {
            int file = open(path, O_RDWR | O_CLOEXEC);
            counter = mmap(NULL, sizeof *counter, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
            if (counter == MAP_FAILED)
                fail("cannot map the counter");
            printf("ok 1 c %s io=blocking\n", __VERSION__ + strcspn(__VERSION__, "0123456789"));
        } else if (sscanf(line, "compute %63s %d %d", kernel, &side, &diagonals) == 3 && !strcmp(kernel, "diagonals")) {
            matrix = malloc((size_t)side * side * sizeof *matrix);
            for (size_t i = 0; i < (size_t)side * side; i++)
                matrix[i] = (int)(i * 2654435761u >> 24) - 128;
            dots = side < 4096 ? 4096 / side : 1;
            start(compute, NULL);
            while (!*counter)
                usleep(1000);
            printf("ok %.6f\n", (double)side * diagonals / dots);
        } else if (sscanf(line, "flow %15s %127s %127s %zu", direction, to, ticket, &bytes) == 4) {
            open_flow(direction, to, ticket, bytes);
        } else if (!strcmp(line, "close\n")) {
            for (; flows; flows--) {
                shutdown(sockets[flows - 1], SHUT_RDWR); /* its thread sees the end */
                close(sockets[flows - 1]);
            }
            printf("ok\n");
        } else {
            printf("error this probe does not know: %s", line);
        }
    }
    return 0;
}
