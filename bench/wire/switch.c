/* A switch in user space with slow ports, for kernels that have no netem: Linux, root.
 *
 *     switch MBIT DELAY_US QUEUE_KIB NAMESPACE...
 *
 * Makes a TAP device `tap0` in each namespace and carries Ethernet frames between them. As on a real switch each port
 * has two directions at MBIT each, a frame is stored whole before it goes on, and the output of a port has a queue of
 * QUEUE_KIB that drops what does not fit. The input of a port does not drop: like a network card it takes the next
 * frame from its machine only when the last one is out. DELAY_US is what a cable of that length would add, one way.
 * Says "ready"; ends on SIGTERM, or when its maker does, and then tells how many frames it has dropped.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum {
    PORTS_MAX = 16,
    FRAME_MAX = 1536,
    FRAMES_MAX = 16384,         /* in one queue; the cable holds frames as well */
    GAP_BYTES = 24,             /* preamble 8, checksum 4, gap between frames 12 */
    FRAME_MIN = 60,
    AHEAD_NS = 400 * 1000,      /* so much of a port's time is taken at once: fewer wake-ups, the same rate */
    GRAIN_NS = 60 * 1000,       /* frames that are due so soon go out together */
    IDLE_NS = 200 * 1000 * 1000
};

struct frame {
    int64_t due_ns;
    int length;
    uint8_t bytes[FRAME_MAX];
};

struct port {
    int device;
    uint8_t address[6];
    int64_t input_free_ns, output_free_ns;
    struct frame *queue;
    unsigned head, tail;        /* tail - head frames wait */
    long carried, dropped;
};

static struct port ports[PORTS_MAX];
static int count;
static double ns_per_byte;
static int64_t delay_ns, queue_ns;
static volatile sig_atomic_t ending;

static void end(int number) { (void)number; ending = 1; }

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static int64_t now_ns(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return at.tv_sec * INT64_C(1000000000) + at.tv_nsec;
}

static int64_t later(int64_t a, int64_t b) { return a > b ? a : b; }

static void open_port(struct port *port, const char *space) {
    char path[256];
    struct ifreq request = {.ifr_flags = IFF_TAP | IFF_NO_PI, .ifr_name = "tap0"};
    snprintf(path, sizeof path, "/run/netns/%s", space);
    int place = open(path, O_RDONLY | O_CLOEXEC);
    if (place < 0 || setns(place, CLONE_NEWNET)) fail(path);
    close(place);
    port->device = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (port->device < 0 || ioctl(port->device, TUNSETIFF, &request)) fail("tap0");
    port->queue = malloc(sizeof *port->queue * FRAMES_MAX);
    if (port->queue == NULL) fail("memory");
}

/* To the output of one port; `in_ns` is when the switch has the whole frame. */
static void put(struct port *port, const uint8_t *bytes, int length, int64_t in_ns, int64_t takes_ns) {
    int64_t start = later(port->output_free_ns, in_ns);
    if (start - in_ns > queue_ns || port->tail - port->head == FRAMES_MAX) {
        port->dropped++;
        return;
    }
    struct frame *frame = &port->queue[port->tail++ % FRAMES_MAX];
    port->output_free_ns = start + takes_ns;
    frame->due_ns = port->output_free_ns + delay_ns;
    frame->length = length;
    memcpy(frame->bytes, bytes, (size_t)length);
    port->carried++;
}

static void take_one(struct port *from, const uint8_t *bytes, int length, int64_t now) {
    int on_wire = (length < FRAME_MIN ? FRAME_MIN : length) + GAP_BYTES;
    int64_t takes_ns = (int64_t)(on_wire * ns_per_byte);
    struct port *only = NULL;
    memcpy(from->address, bytes + 6, 6);
    from->input_free_ns = later(from->input_free_ns, now) + takes_ns;
    for (int i = 0; i < count; i++)
        if (!memcmp(ports[i].address, bytes, 6)) only = &ports[i];
    for (int i = 0; i < count; i++)
        if (&ports[i] != from && (only == NULL || only == &ports[i]))
            put(&ports[i], bytes, length, from->input_free_ns, takes_ns);
}

static void take(struct port *port) {
    uint8_t bytes[65536];
    int64_t now = now_ns();
    while (port->input_free_ns < now + AHEAD_NS) {
        ssize_t length = read(port->device, bytes, sizeof bytes);
        if (length <= 14) return;
        if (length <= FRAME_MAX) take_one(port, bytes, (int)length, now);
    }
}

/* Write what is due; when the next frame is. */
static int64_t give(struct port *port, int64_t now) {
    while (port->head != port->tail) {
        struct frame *frame = &port->queue[port->head % FRAMES_MAX];
        if (frame->due_ns > now + GRAIN_NS / 2) return frame->due_ns;
        if (write(port->device, frame->bytes, (size_t)frame->length) < 0 && errno == EAGAIN) return now + GRAIN_NS;
        port->head++;
    }
    return now + IDLE_NS;
}

static void carry(void) {
    struct pollfd watched[PORTS_MAX];
    while (!ending) {
        int64_t now = now_ns(), next = now + IDLE_NS;
        for (int i = 0; i < count; i++) {
            int64_t due = give(&ports[i], now), free_ns = ports[i].input_free_ns - AHEAD_NS / 2;
            int busy = ports[i].input_free_ns >= now + AHEAD_NS;
            if (due < next) next = due;
            if (busy && free_ns < next) next = free_ns;
            watched[i] = (struct pollfd){.fd = busy ? -1 : ports[i].device, .events = POLLIN};
        }
        int64_t wait = later(next - now_ns(), 0);
        struct timespec limit = {wait / 1000000000, wait % 1000000000};
        if (ppoll(watched, (nfds_t)count, &limit, NULL) <= 0) continue;
        for (int i = 0; i < count; i++)
            if (watched[i].revents & POLLIN) take(&ports[i]);
    }
}

int main(int arguments, char **words) {
    struct sched_param first = {.sched_priority = 1};
    if (arguments < 6 || arguments - 4 > PORTS_MAX) {
        fprintf(stderr, "usage: %s MBIT DELAY_US QUEUE_KIB NAMESPACE NAMESPACE...\n", words[0]);
        return 2;
    }
    ns_per_byte = 8e3 / atof(words[1]);
    delay_ns = (int64_t)(atof(words[2]) * 1e3);
    queue_ns = (int64_t)(atof(words[3]) * 1024 * ns_per_byte);
    count = arguments - 4;
    for (int i = 0; i < count; i++) open_port(&ports[i], words[4 + i]);
    signal(SIGTERM, end);
    signal(SIGINT, end);
    prctl(PR_SET_PDEATHSIG, SIGTERM); /* nobody else would end it when its maker is killed */
    int real_time = sched_setscheduler(0, SCHED_FIFO, &first) == 0; /* a switch does not wait for a busy processor */
    printf("ready%s\n", real_time ? "" : " without real-time priority");
    fflush(stdout);
    carry();
    long carried = 0, dropped = 0;
    for (int i = 0; i < count; i++) carried += ports[i].carried, dropped += ports[i].dropped;
    printf("carried %ld dropped %ld\n", carried, dropped);
    return 0;
}
