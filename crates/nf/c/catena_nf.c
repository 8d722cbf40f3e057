/* The NF runtime in C. docs/nf-abi.md describes what goes on here.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include "catena_nf.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { HELLO = 0x4e460001, ATTACH, ATTACHED, BEGIN, READY, REFUSED };
enum { WRITES = 1, COPIES = 2 };
enum { BATON = 0, YIELD = 1, IDLE = 2, STOP = 3 };
/* Words of a page. */
enum { ROUND = 0, COUNT = 1, STATE = 2, RECEIVED = 8, PASSED, DROPPED, BAD, OUT_OF_TURN, BUSY, BATCHES, COUNTERS = 64, ENTRIES = 512 };
#define MALFORMED 0xffffu
#define LONGEST (1u << 16)
#define FILES 8

typedef _Atomic uint64_t word;

struct catena_setup {
    char counters[CATENA_NF_COUNTERS][41], reasons[CATENA_NF_REASONS][41];
    int counter_count, reason_count;
    char wrong[200];
};

static struct {
    word *host, *before, *own;
    uint8_t *region;
    const uint8_t *from;
    int wake, wake_next;
    uint32_t flags, buffers, size, capacity;
    struct catena_packet *packets;
    uint64_t round, counters[CATENA_NF_COUNTERS];
    int counter_count;
} self;

static uint64_t load(word *at) { return atomic_load_explicit(at, memory_order_relaxed); }
static uint64_t acquire(word *at) { return atomic_load_explicit(at, memory_order_acquire); }
static void store(word *at, uint64_t value) { atomic_store_explicit(at, value, memory_order_relaxed); }
static void release(word *at, uint64_t value) { atomic_store_explicit(at, value, memory_order_release); }

static int name(struct catena_setup *setup, char names[][41], int *count, int most, const char *text) {
    size_t length = text ? strlen(text) : 0;
    for (int i = 0; i < *count; i++)
        if (length && strcmp(names[i], text) == 0) return i;
    static const char good[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    if (length == 0 || length > 40 || strspn(text, good) != length || *count == most) {
        snprintf(setup->wrong, sizeof setup->wrong, "'%.40s' is no name, or one too many", text ? text : "");
        return 0;
    }
    memcpy(names[*count], text, length + 1);
    return (*count)++;
}

int catena_counter(struct catena_setup *setup, const char *text) {
    return name(setup, setup->counters, &setup->counter_count, CATENA_NF_COUNTERS, text);
}

uint16_t catena_reason(struct catena_setup *setup, const char *text) {
    return (uint16_t)name(setup, setup->reasons, &setup->reason_count, CATENA_NF_REASONS, text);
}

int catena_refuse(struct catena_setup *setup, const char *why) {
    snprintf(setup->wrong, sizeof setup->wrong, "%s", why);
    return 1;
}

void catena_count(int counter, uint64_t more) {
    if (counter >= 0 && counter < CATENA_NF_COUNTERS) self.counters[counter] += more;
}

static int say(uint32_t kind, const void *body, size_t length) {
    uint32_t head[2] = {kind, CATENA_NF_VERSION};
    struct iovec parts[2] = {{head, sizeof head}, {(void *)body, length}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    return sendmsg(0, &message, MSG_NOSIGNAL) < 0 ? -1 : 0;
}

static int refuse(const char *why) {
    fprintf(stderr, "error: %s\n", why);
    say(REFUSED, why, strlen(why));
    return 1;
}

/* Receives a message of a kind; its length, or -1. */
static long hear(uint32_t kind, char *body, int files[FILES]) {
    uint32_t head[2];
    union { struct cmsghdr header; char space[CMSG_SPACE(FILES * sizeof(int))]; } control;
    struct iovec parts[2] = {{head, sizeof head}, {body, LONGEST}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2, .msg_control = &control, .msg_controllen = sizeof control};
    long got;
    do got = recvmsg(0, &message, MSG_CMSG_CLOEXEC);
    while (got < 0 && errno == EINTR);
    for (int i = 0; i < FILES; i++) files[i] = -1;
    struct cmsghdr *rights = got > 0 ? CMSG_FIRSTHDR(&message) : NULL;
    if (rights && rights->cmsg_level == SOL_SOCKET && rights->cmsg_type == SCM_RIGHTS)
        memcpy(files, CMSG_DATA(rights), rights->cmsg_len - CMSG_LEN(0));
    if (got < (long)sizeof head || head[0] != kind || (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC))) return -1;
    if (head[1] != CATENA_NF_VERSION) return -2;
    return got - (long)sizeof head;
}

static void *map(int file, size_t length, int writable) {
    struct stat status;
    int seals = fcntl(file, F_GET_SEALS);
    if (seals < 0 || !(seals & F_SEAL_SHRINK) || fstat(file, &status) < 0 || (size_t)status.st_size < length) return NULL;
    void *at = mmap(NULL, length, PROT_READ | (writable ? PROT_WRITE : 0), MAP_SHARED | MAP_POPULATE, file, 0);
    close(file);
    return at == MAP_FAILED ? NULL : at;
}

static int attach(const struct catena_nf *nf) {
    static char body[LONGEST + 1];
    int files[FILES];
    uint32_t numbers[4];
    if (say(HELLO, "", 0) < 0) return refuse("the host does not listen");
    long length = hear(ATTACH, body, files);
    if (length == -2) return refuse("the host has another version of the NF ABI");
    if (length < (long)sizeof numbers) return refuse("another message than was due");
    memcpy(numbers, body, sizeof numbers);
    self.flags = numbers[0], self.buffers = numbers[1], self.size = numbers[2], self.capacity = numbers[3];
    if (self.buffers < 1 || self.buffers > 1u << 20 || self.size < 256 || self.size > 1u << 16 || self.size % 64
        || self.capacity < 1 || self.capacity > 1024)
        return refuse("a layout that the ABI has not");
    size_t region = (size_t)self.buffers * self.size;
    size_t page = ((size_t)ENTRIES * 8 + 32 * (size_t)self.capacity + 4095) / 4096 * 4096;
    self.own = map(files[0], page, 1);
    self.wake = files[1], self.wake_next = files[2];
    int owns = (self.flags & (WRITES | COPIES)) != 0;
    if (owns) self.region = map(files[3], region, 1);
    if (!self.own || (owns && !self.region)) return refuse("memory that cannot be mapped");
    say(ATTACHED, "", 0);
    length = hear(BEGIN, body, files);
    if (length < 0) return refuse("another message than was due");
    body[length] = 0;
    self.host = map(files[0], page, 0);
    self.before = map(files[1], page, 0);
    const uint8_t *read = !owns || (self.flags & COPIES) ? map(files[2], region, 0) : self.region;
    if (self.flags & COPIES) self.from = read;
    else if (!owns) self.region = (uint8_t *)read;
    self.packets = calloc(self.capacity, sizeof *self.packets);
    if (!self.host || !self.before || !read || !self.packets) return refuse("memory that cannot be mapped");
    mlock(self.region, region);
    static struct catena_setup setup;
    if (nf->init && nf->init(body, &setup) != 0 && !setup.wrong[0]) catena_refuse(&setup, "the configuration is wrong");
    if (setup.wrong[0]) return refuse(setup.wrong);
    self.counter_count = setup.counter_count;
    size_t end = 0;
    for (int i = 0; i < setup.counter_count; i++) end += (size_t)sprintf(body + end, "counter %s\n", setup.counters[i]);
    for (int i = 0; i < setup.reason_count; i++) end += (size_t)sprintf(body + end, "reason %s\n", setup.reasons[i]);
    self.round = load(self.own + ROUND);
    return say(READY, body, end) < 0;
}

/* Waits for the turn; 0 if there is none any more. */
static int wait_for_turn(void) {
    uint64_t times;
    int woke = 0;
    for (;;) {
        uint64_t round = acquire(self.host + ROUND), state = acquire(self.host + STATE);
        if (round != self.round && acquire(self.before + ROUND) == round) {
            self.round = round;
            return acquire(self.host + STATE) < STOP;
        }
        if (woke) store(self.own + OUT_OF_TURN, load(self.own + OUT_OF_TURN) + 1);
        woke = 0;
        if (state >= STOP) return 0;
        if (state == YIELD) sched_yield();
        else woke = read(self.wake, &times, sizeof times) == sizeof times;
    }
}

static word *entry(word *page, uint32_t index) { return page + ENTRIES + 4 * (size_t)index; }

static void add(int at, uint64_t more) { store(self.own + at, load(self.own + at) + more); }

static uint32_t take(void) {
    uint64_t came = load(self.host + COUNT), count = came < self.capacity ? came : self.capacity;
    uint32_t taken = 0, bad = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t verdict = load(entry(self.before, i)), place = load(entry(self.host, i) + 1);
        uint64_t time = load(entry(self.host, i) + 2), more = load(entry(self.host, i) + 3);
        uint32_t length = (uint32_t)verdict, head = (verdict >> 32) & 0xffff, buffer = (uint32_t)place;
        if (verdict >> 48 != CATENA_PASS) {
            store(entry(self.own, i), 0);
            continue;
        }
        if ((uint64_t)head + length > self.size || buffer >= self.buffers) {
            bad++;
            store(entry(self.own, i), MALFORMED | (uint64_t)CATENA_DROP << 48);
            continue;
        }
        struct catena_packet *p = &self.packets[taken++];
        p->start_ = buffer * self.size;
        p->data = self.region + p->start_ + head;
        p->length = length, p->verdict = CATENA_PASS, p->reason = 0, p->index_ = i;
        p->time = time, p->hash = (uint32_t)(place >> 32), p->port = (uint16_t)more, p->group = (uint16_t)(more >> 16);
        p->head_room = (uint16_t)head, p->tail_room = (uint16_t)(self.size - head - length);
        p->writable = (self.flags & WRITES) != 0;
        if (self.from) memcpy(p->data, self.from + p->start_ + head, length);
        else __builtin_prefetch(p->data);
    }
    add(RECEIVED, taken + bad);
    if (bad) add(BAD, bad);
    return taken;
}

static void give(uint32_t count, uint64_t busy) {
    uint64_t passed = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct catena_packet *p = &self.packets[i];
        uint64_t verdict = p->reason | (uint64_t)CATENA_DROP << 48;
        if (p->verdict == CATENA_PASS) {
            uint64_t head = (uint64_t)(p->data - (self.region + p->start_));
            verdict = p->length | (head & 0xffff) << 32 | (uint64_t)CATENA_PASS << 48;
            passed++;
        }
        store(entry(self.own, p->index_), verdict);
    }
    add(PASSED, passed);
    add(DROPPED, count - passed);
    add(BUSY, busy);
    add(BATCHES, 1);
    for (int i = 0; i < self.counter_count; i++) store(self.own + COUNTERS + i, self.counters[i]);
    release(self.own + ROUND, self.round);
    uint64_t one = 1;
    if (acquire(self.host + STATE) != YIELD && write(self.wake_next, &one, sizeof one) < 0) return;
}

static uint64_t now(void) {
    struct timespec of;
    clock_gettime(CLOCK_MONOTONIC, &of);
    return (uint64_t)of.tv_sec * 1000000000u + (uint64_t)of.tv_nsec;
}

int catena_nf_main(const struct catena_nf *nf) {
    int type;
    socklen_t length = sizeof type;
    if (getsockopt(0, SOL_SOCKET, SO_TYPE, &type, &length) < 0) {
        fprintf(stderr, "error: this is a network function, which its host starts: `catena nf run PROGRAM --pcap FILE`\n");
        return 1;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (attach(nf)) return 1;
    while (wait_for_turn()) {
        uint32_t count = take();
        uint64_t begin = now();
        nf->process(self.packets, count);
        give(count, now() - begin);
    }
    return 0;
}
