/* Network functions for Catena in C: the NF runtime API, version 2.
 *
 * A network function fills in `struct catena_nf` and calls catena_nf_main():
 *
 *     static int init(const char *config, struct catena_setup *setup) { ... return 0; }
 *     static void process(struct catena_packet *packets, uint32_t count) { ... }
 *     int main(void) {
 *         static const struct catena_nf nf = { init, process };
 *         return catena_nf_main(&nf);
 *     }
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CATENA_NF_H
#define CATENA_NF_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CATENA_NF_VERSION 2
#define CATENA_NF_COUNTERS 64
#define CATENA_NF_REASONS 32
#define CATENA_NF_VALUE 1024

/* What becomes of a packet. It passes if nothing is said. */
enum catena_verdict { CATENA_PASS = 1, CATENA_DROP = 2 };

/* A packet of a batch. Bytes before `data` (head_room) and behind it (tail_room) may be written to as well: to add bytes in
 * front, decrease `data` and increase `length`. Nothing may be written if the manifest has `writes: none` (`writable` is 0). */
struct catena_packet {
    uint8_t *data;      /* from the Ethernet header on */
    uint32_t length;
    uint16_t verdict;   /* enum catena_verdict */
    uint16_t reason;    /* of a dropped packet, by catena_reason() */
    uint64_t time;      /* when it came: nanoseconds since 1970 */
    uint32_t hash;      /* of its flow; 0 if not known */
    uint16_t port;      /* at which it came */
    uint16_t group;     /* of its flow; 0 if it has none */
    uint16_t head_room;
    uint16_t tail_room;
    uint32_t writable;
    uint32_t index_;    /* the runtime's */
    uint32_t start_;
    uint64_t update_;
};

/* Fields of a packet that make its flow. */
enum catena_fields {
    CATENA_SOURCE = 1, CATENA_DESTINATION = 2, CATENA_PROTOCOL = 4, CATENA_SOURCE_PORT = 8, CATENA_DESTINATION_PORT = 16,
    CATENA_FLOW = 31    /* the 5-tuple */
};

/* A flow: a match. Fields that it has not are 0 and match all. Ports and addresses are in network order; ports are 0 of what has
 * none, and of fragments. */
struct catena_flow {
    uint8_t fields, version, protocol, zero;
    uint8_t source_port[2], destination_port[2];
    uint8_t source[16], destination[16];
};

/* What catena_read() returns instead of a length: nothing is kept, or it cannot be read now. */
enum { CATENA_ABSENT = -1, CATENA_AWAY = -2 };

struct catena_setup;

struct catena_nf {
    /* Makes it by its configuration. Returns 0, or another number if the configuration is wrong: see catena_refuse(). */
    int (*init)(const char *config, struct catena_setup *setup);
    /* Processes a batch. */
    void (*process)(struct catena_packet *packets, uint32_t count);
};

/* In init(): names a counter, which reads like an element's. */
int catena_counter(struct catena_setup *setup, const char *name);
/* In init(): names a reason to drop packets. */
uint16_t catena_reason(struct catena_setup *setup, const char *name);
/* In init(): says what is wrong. Returns 1. */
int catena_refuse(struct catena_setup *setup, const char *why);

/* In init(): says that it keeps state of flows, and which fields of a packet make its flow. Before each batch, the state of these
 * flows is read. */
void catena_state(struct catena_setup *setup, unsigned fields);

/* The flow of a packet as it is now, by the fields that catena_state() names. Returns 0, or -1 if it is not IP. */
int catena_flow(const struct catena_packet *packet, struct catena_flow *flow);
/* The flow of the opposite direction. */
struct catena_flow catena_reverse(const struct catena_flow *flow);
/* Reads what is kept of a flow: at most `size` bytes of it are copied. Returns how long it is, or CATENA_ABSENT or CATENA_AWAY.
 * The packet leaves the chain after all updates of that flow before. */
int catena_read(struct catena_packet *packet, const struct catena_flow *flow, void *value, size_t size);
/* Keeps a value of a flow, CATENA_NF_VALUE bytes at most, or none if `value` is NULL. The packet leaves the chain when that is
 * stored. Returns 0, or -1 if the value is too long. */
int catena_update(struct catena_packet *packet, const struct catena_flow *flow, const void *value, size_t length);

/* Adds to a counter. */
void catena_count(int counter, uint64_t more);

/* Runs a network function until its host ends: all of main(). */
int catena_nf_main(const struct catena_nf *nf);

#ifdef __cplusplus
}
#endif
#endif
