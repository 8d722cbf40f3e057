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

enum { HELLO = 0x4e460001, ATTACH, ATTACHED, BEGIN, READY, REFUSED, READ, VALUES, UPDATE };
enum { WRITES = 1, COPIES = 2, STORE = 4, OPEN = 8 };
enum { BATON = 0, YIELD = 1, IDLE = 2, STOP = 3 };
/* Words of a page. */
enum { ROUND = 0, COUNT = 1, STATE = 2, RECEIVED = 8, PASSED, DROPPED, BAD, OUT_OF_TURN, BUSY, BATCHES, COUNTERS = 64, ENTRIES = 512 };
#define MALFORMED 0xffffu
#define NO_STATE 0xfffeu
#define ABSENT 0xffffu
#define AWAY 0xfffeu
#define LONGEST (1u << 16)
#define FILES 8

typedef _Atomic uint64_t word;

struct catena_setup {
    char counters[CATENA_NF_COUNTERS][41], reasons[CATENA_NF_REASONS][41];
    int counter_count, reason_count, has_state;
    uint8_t fields;
    char wrong[200];
};

/* The state of a flow that was used of late. */
struct known {
    struct catena_flow flow;
    uint32_t next; /* in its chain, from 1 */
    uint16_t length;
    uint8_t is_there, used;
    uint64_t update;
    uint8_t *value;
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
    int has_state, has_store;
    uint8_t fields;
    /* What is known of flows, in chains by their hash; `hand` is where the next leaves. */
    struct known *known;
    uint32_t *chains, known_count, known_most, chain_mask, hand;
    uint64_t last_update;
    uint8_t *updates;
    size_t updates_length;
    /* The flows of a batch that are not known. */
    struct catena_flow *missing;
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

static char body[LONGEST + 1];

static int start_state(uint32_t most) {
    uint32_t chains = 1;
    while (chains < most && chains < 1u << 24) chains *= 2;
    self.known_most = most;
    self.chain_mask = chains - 1;
    self.known = calloc(most, sizeof *self.known);
    self.chains = calloc(chains, sizeof *self.chains);
    self.updates = malloc(LONGEST);
    self.missing = calloc(self.capacity, sizeof *self.missing);
    return !self.known || !self.chains || !self.updates || !self.missing;
}

static int attach(const struct catena_nf *nf) {
    int files[FILES];
    uint32_t numbers[5];
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
    self.has_state = setup.has_state, self.fields = setup.fields;
    self.has_store = setup.has_state && (self.flags & STORE) != 0;
    if (setup.has_state && (numbers[4] < 1 || start_state(numbers[4]))) return refuse("no memory for the state of flows");
    size_t end = 0;
    for (int i = 0; i < setup.counter_count; i++) end += (size_t)sprintf(body + end, "counter %s\n", setup.counters[i]);
    for (int i = 0; i < setup.reason_count; i++) end += (size_t)sprintf(body + end, "reason %s\n", setup.reasons[i]);
    if (setup.has_state) end += (size_t)sprintf(body + end, "state\n");
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
        p->start_ = buffer * self.size, p->update_ = 0;
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
        if (self.has_store) store(entry(self.own, p->index_) + 1, p->update_);
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

/* The protocol and, in `at`, where ports are: 0 if there are none. -1 if it is no IP packet. */
static int network(const uint8_t *bytes, size_t length, uint16_t kind, struct catena_flow *flow, size_t *at) {
    *at = 0;
    if (kind == 0x0800) {
        size_t header = length ? (size_t)(bytes[0] & 15) * 4 : 0;
        if (length < 20 || bytes[0] >> 4 != 4 || header < 20 || length < header) return -1;
        flow->version = 4;
        memcpy(flow->source, bytes + 12, 4);
        memcpy(flow->destination, bytes + 16, 4);
        if (!(bytes[6] & 0x3f) && !bytes[7]) *at = header;
        return bytes[9];
    }
    if (kind != 0x86dd || length < 40 || bytes[0] >> 4 != 6) return -1;
    flow->version = 6;
    memcpy(flow->source, bytes + 8, 16);
    memcpy(flow->destination, bytes + 24, 16);
    int next = bytes[6];
    size_t place = 40;
    for (int i = 0; i < 8 && length >= 8 && place <= length - 8; i++) {
        if (next == 44) return bytes[place];
        if (next != 0 && next != 43 && next != 60) break;
        next = bytes[place];
        place += 8 + (size_t)bytes[place + 1] * 8;
    }
    *at = place;
    return next;
}

int catena_flow(const struct catena_packet *packet, struct catena_flow *flow) {
    const uint8_t *bytes = packet->data;
    size_t length = packet->length, at = 12, ports;
    memset(flow, 0, sizeof *flow);
    for (int i = 0; i < 2; i++)
        if (length >= at + 2 && ((bytes[at] == 0x81 && bytes[at + 1] == 0x00) || (bytes[at] == 0x88 && bytes[at + 1] == 0xa8))) at += 4;
    if (!self.has_state || length < at + 2) return -1;
    uint16_t kind = (uint16_t)(bytes[at] << 8 | bytes[at + 1]);
    bytes += at + 2, length -= at + 2;
    int protocol = network(bytes, length, kind, flow, &ports);
    if (protocol < 0) return -1;
    flow->protocol = (uint8_t)protocol;
    if ((protocol == 6 || protocol == 17 || protocol == 132) && ports && length >= 4 && ports <= length - 4) {
        memcpy(flow->source_port, bytes + ports, 2);
        memcpy(flow->destination_port, bytes + ports + 2, 2);
    }
    flow->fields = self.fields & CATENA_FLOW;
    if (!(self.fields & CATENA_SOURCE)) memset(flow->source, 0, 16);
    if (!(self.fields & CATENA_DESTINATION)) memset(flow->destination, 0, 16);
    if (!(self.fields & CATENA_PROTOCOL)) flow->protocol = 0;
    if (!(self.fields & CATENA_SOURCE_PORT)) memset(flow->source_port, 0, 2);
    if (!(self.fields & CATENA_DESTINATION_PORT)) memset(flow->destination_port, 0, 2);
    return 0;
}

struct catena_flow catena_reverse(const struct catena_flow *flow) {
    struct catena_flow of = *flow;
    memcpy(of.source, flow->destination, 16);
    memcpy(of.destination, flow->source, 16);
    memcpy(of.source_port, flow->destination_port, 2);
    memcpy(of.destination_port, flow->source_port, 2);
    uint8_t fields = flow->fields;
    of.fields = (uint8_t)((fields & CATENA_PROTOCOL) | (fields & CATENA_SOURCE) << 1 | (fields & CATENA_DESTINATION) >> 1
        | (fields & CATENA_SOURCE_PORT) << 1 | (fields & CATENA_DESTINATION_PORT) >> 1);
    return of;
}

void catena_state(struct catena_setup *setup, unsigned fields) {
    setup->has_state = 1;
    setup->fields = (uint8_t)fields;
}

static uint32_t *chain(const struct catena_flow *flow) {
    uint64_t hash = 0xcbf29ce484222325u, part;
    for (size_t i = 0; i < sizeof *flow; i += 8) {
        memcpy(&part, (const uint8_t *)flow + i, 8);
        hash = (hash ^ part) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 29;
    }
    return &self.chains[hash & self.chain_mask];
}

static struct known *find(const struct catena_flow *flow) {
    for (uint32_t at = *chain(flow); at; at = self.known[at - 1].next)
        if (memcmp(&self.known[at - 1].flow, flow, sizeof *flow) == 0) return &self.known[at - 1];
    return NULL;
}

/* Makes room: who was not used since the hand came by leaves. */
static struct known *leave(void) {
    for (;; self.hand = (self.hand + 1) % self.known_most) {
        struct known *of = &self.known[self.hand];
        if (of->used) {
            of->used = 0;
            continue;
        }
        uint32_t number = (uint32_t)(of - self.known) + 1, *at = chain(&of->flow);
        while (*at != number) at = &self.known[*at - 1].next;
        *at = of->next;
        self.hand = (self.hand + 1) % self.known_most;
        return of;
    }
}

static void keep(const struct catena_flow *flow, const void *value, size_t length, uint64_t update) {
    struct known *of = find(flow);
    if (!of) {
        of = self.known_count < self.known_most ? &self.known[self.known_count++] : leave();
        uint32_t *first = chain(flow);
        of->flow = *flow, of->next = *first, of->used = 0;
        *first = (uint32_t)(of - self.known) + 1;
    } else of->used = 1;
    if (value && length && (length > of->length || !of->value)) {
        free(of->value);
        if (!(of->value = malloc(length))) abort();
    }
    if (value && length) memcpy(of->value, value, length);
    of->is_there = value != NULL, of->length = value ? (uint16_t)length : of->length, of->update = update;
}

static void broken(const char *what) {
    fprintf(stderr, "error: %s\n", what);
    exit(1);
}

/* Before the host sees which updates packets wait for, it has them. */
static void send_updates(void) {
    if (self.updates_length && say(UPDATE, self.updates, self.updates_length) < 0) broken("the host takes no updates");
    self.updates_length = 0;
}

/* Reads flows from the store in one request. Those that cannot be read now stay in `flows`; how many they are. */
static uint32_t fetch(struct catena_flow *flows, uint32_t count) {
    int files[FILES];
    uint32_t done = 0, away = 0;
    if (say(READ, flows, count * sizeof *flows) < 0) broken("the host reads no state");
    while (done < count) {
        long length = hear(VALUES, body, files), at = 0;
        if (length < 2) broken("the host has ended, or says what is no state");
        while (at < length) {
            uint16_t word;
            if (done == count || length - at < 2) broken("the host says what is no state");
            memcpy(&word, body + at, 2);
            at += 2;
            if (word == ABSENT) keep(&flows[done], NULL, 0, 0);
            else if (word == AWAY) flows[away++] = flows[done];
            else if (word > CATENA_NF_VALUE || length - at < word) broken("the host says what is no state");
            else keep(&flows[done], body + at, word, 0), at += word;
            done++;
        }
    }
    return away;
}

int catena_read(struct catena_packet *packet, const struct catena_flow *flow, void *value, size_t size) {
    struct known *of = self.has_state ? find(flow) : NULL;
    if (!of && self.has_store) {
        struct catena_flow one = *flow;
        /* What was updated before it was forgotten is written before it is read. */
        send_updates();
        if (fetch(&one, 1)) return CATENA_AWAY;
        of = find(flow);
    }
    if (!of) return CATENA_ABSENT;
    of->used = 1;
    if (packet->update_ < of->update) packet->update_ = of->update;
    if (!of->is_there) return CATENA_ABSENT;
    if (value && size && of->length) memcpy(value, of->value, of->length < size ? of->length : size);
    return of->length;
}

int catena_update(struct catena_packet *packet, const struct catena_flow *flow, const void *value, size_t length) {
    if (!self.has_state || (value && length > CATENA_NF_VALUE)) return -1;
    uint64_t number = 0;
    if (self.has_store) {
        packet->update_ = number = ++self.last_update;
        if (self.updates_length + 8 + sizeof *flow + 2 + CATENA_NF_VALUE > LONGEST) send_updates();
        uint8_t *to = self.updates + self.updates_length;
        uint16_t word = value ? (uint16_t)length : ABSENT;
        memcpy(to, &number, 8);
        memcpy(to + 8, flow, sizeof *flow);
        memcpy(to + 8 + sizeof *flow, &word, 2);
        if (value && length) memcpy(to + 10 + sizeof *flow, value, length);
        self.updates_length += 10 + sizeof *flow + (value ? length : 0);
    }
    keep(flow, value, length, number);
    return 0;
}

static int by_bytes(const void *one, const void *other) { return memcmp(one, other, sizeof(struct catena_flow)); }

/* Reads the state of a batch's flows that is not known. Packets of those that cannot be read are not processed; how many are. */
static uint32_t read_state(uint32_t count) {
    uint32_t missing = 0, different = 0, kept = 0, opened = 0;
    struct catena_flow flow;
    for (uint32_t i = 0; i < count; i++)
        if (catena_flow(&self.packets[i], &flow) == 0 && !find(&flow)) self.missing[missing++] = flow;
    if (!missing) return count;
    qsort(self.missing, missing, sizeof flow, by_bytes);
    for (uint32_t i = 0; i < missing; i++)
        if (!i || by_bytes(&self.missing[i], &self.missing[different - 1])) self.missing[different++] = self.missing[i];
    uint32_t away = fetch(self.missing, different);
    if (!away) return count;
    for (uint32_t i = 0; i < count; i++) {
        struct catena_packet *p = &self.packets[i];
        if (catena_flow(p, &flow) || !bsearch(&flow, self.missing, away, sizeof flow, by_bytes)) {
            self.packets[kept++] = *p;
            continue;
        }
        uint64_t verdict = NO_STATE | (uint64_t)CATENA_DROP << 48;
        if (self.flags & OPEN) verdict = p->length | (uint64_t)p->head_room << 32 | (uint64_t)CATENA_PASS << 48, opened++;
        store(entry(self.own, p->index_), verdict);
        store(entry(self.own, p->index_) + 1, 0);
    }
    add(PASSED, opened);
    add(DROPPED, count - kept - opened);
    return kept;
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
        if (self.has_store) count = read_state(count);
        uint64_t begin = now();
        nf->process(self.packets, count);
        if (self.has_store) send_updates();
        give(count, now() - begin);
    }
    return 0;
}
